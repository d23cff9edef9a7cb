"""Fuzz targets for the files of a data folder and the text files that configure a broker."""

from __future__ import annotations

import base64
import json
import struct
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from fuzz.harness import Target
from model.kafkas_metadata import begun, led_by, metadata_batch

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.dynamic_config import DynamicConfigs
from kafkacore.broker.config.properties_file import parse_properties
from kafkacore.broker.log import checkpoints
from kafkacore.broker.log._indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetIndex, TimeIndex
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.log.producer_state import read_snapshot, snapshot_bytes
from kafkacore.broker.log.topics_file import TopicState, read_topics, write_topics
from kafkacore.broker.log.transaction_index import (
    AbortedTransaction,
    TransactionIndex,
    aborted_bytes,
    read_aborted,
)
from kafkacore.broker.metadata import end_offset_checkpoint, metadata_log
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.kafkas_epochs import leader_epochs
from kafkacore.broker.metadata.records import MetadataRecord, decode_record, encode_record
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.quota import Quotas
from kafkacore.broker.storage.checked_json import checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.identity import load_or_create_cluster_id
from kafkacore.broker.storage.producer_ids import ProducerIdManager
from kafkacore.errors import CorruptRecordError
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock
from kafkacore.testing.disk import SimulatedDisk
from kafkacore.wire import crc32c

FOLDER = Path("/data")
_FILE = FOLDER / "file"
_CONFIG = BrokerConfig.from_properties({"data_dir": FOLDER, "port": 0})
_INT64 = range(-(2**63), 2**63)
_INT32 = range(-(2**31), 2**31)


class OneFile(Disk):
    """A folder in which every requested file has the content of the current input."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_file(self, path: Path) -> bytes:
        return self._data

    def exists(self, path: Path) -> bool:
        return True

    def write_file(self, path: Path, data: bytes) -> None:
        assert path.parent == FOLDER, "a file elsewhere"


def read_producer_snapshot(data: bytes) -> None:
    """Read the snapshot as it is, and with a corrected CRC."""
    if len(data) >= 6:
        again = data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]
        for entry in read_snapshot(again):
            assert entry.producer_id in _INT64
    read_snapshot(data)


def read_offset_checkpoint(data: bytes) -> None:
    """Read an offset checkpoint. Invalid lines are skipped; values of the other lines are in range."""
    for topic_partition, offset in checkpoints.read_offsets(OneFile(data), _FILE).items():
        assert topic_partition.partition in _INT32, "partition"
        assert offset in _INT64, f"offset {offset}"


def read_epoch_checkpoint(data: bytes) -> None:
    try:
        found = checkpoints.parse_leader_epochs(data)
    except ValueError:
        return
    for epoch, start in found:
        assert epoch in _INT32, f"epoch {epoch}"
        assert start in _INT64, f"offset {start}"


def read_topic_id(data: bytes) -> None:
    checkpoints.read_topic_id(OneFile(data), FOLDER)


def with_json_crc(data: bytes) -> bytes:
    """Return the same content with a matching CRC, if it is JSON."""
    try:
        content = json.loads(data)
        content.pop("crc32c", None)
        return checked_json(content)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return data


def read_topics_file(data: bytes) -> None:
    for content in (with_json_crc(data), data):
        found = read_topics(OneFile(content), FOLDER)
        assert found is not None
        for topic in found[0]:
            assert Path(topic.name).name == topic.name, "a name that contains a path"
            assert topic.partition_count in _INT32, f"{topic.partition_count} partitions"


def read_dynamic_configs(data: bytes) -> None:
    for content in (with_json_crc(data), data):
        DynamicConfigs(_CONFIG, OneFile(content))


def read_meta_properties(data: bytes) -> None:
    load_or_create_cluster_id(FOLDER, 1, VirtualClock(), OneFile(data))


def read_producer_ids(data: bytes) -> None:
    manager = ProducerIdManager(FOLDER, OneFile(data))
    assert manager.next_producer_id() in _INT64, "a producer id outside the range of the protocol"


def read_properties_text(data: bytes) -> None:
    """Read the properties as a broker's configuration, including the values."""
    properties = parse_properties(data.decode("utf-8", "replace"))
    properties.pop("data_dir", None)
    BrokerConfig.from_properties({**properties, "data_dir": FOLDER})


def read_indexes(data: bytes) -> None:
    """Read the offset or time index, by the first byte. A search must terminate whatever the entries are."""
    if not data:
        return
    made = (OffsetIndex, TimeIndex)[data[0] & 1]
    path = FOLDER / "00000000000000000100.index"
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    fd = disk.open(path, create=True)
    disk.pwritev(fd, [data[1:]], 0)
    disk.close(fd)
    index = made(OpenFiles(disk, 10), path, 100, 1 << 20)
    _ = (index.last, index.is_full, index.file.is_increasing(index.file.count))
    for target in (0, 100, 105, 2**62):
        index.lookup(target)
    if isinstance(index, OffsetIndex):
        index.entry_before(50)


def read_aborted_transactions(data: bytes) -> None:
    """Search the index for ranges, and read all of it. A search must terminate whatever the entries are."""
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    disk.write_file(_FILE, data)
    index = TransactionIndex(OpenFiles(disk, 10), _FILE)
    for start, end in ((0, 1), (5, 15), (0, 2**62)):
        with suppress(CorruptRecordError):
            found, _ = index.collect(start, end)
            assert all(one.first_offset < end and one.last_offset >= start for one in found)
    index.check(0, 1000)
    for one in read_aborted(data):
        assert one.first_offset < one.last_offset in range(1000)


def read_metadata_log(data: bytes) -> None:
    """Read the metadata log as a file without a known end, including the records."""
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    disk.write_file(FOLDER / metadata_log.FILE_NAME, data)
    quotas = Quotas(_CONFIG, VirtualClock())
    log = metadata_log.MetadataLog(FOLDER / metadata_log.FILE_NAME, disk, VirtualClock())
    metadata = ClusterMetadata(log, ChangeQueue(), VirtualClock(), quotas.set_entity, _CONFIG)
    metadata.load(was_clean=False)


def read_kafkas_epochs(data: bytes) -> None:
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    disk.write_file(FOLDER / "00000000000000000000.log", data)
    assert all(epoch in _INT32 for epoch in leader_epochs(FOLDER, disk).values())


def read_metadata_record(data: bytes) -> None:
    written = encode_record(decode_record(data))
    assert encode_record(decode_record(written)) == written


def read_end_offset_checkpoint(data: bytes) -> None:
    for content in (with_json_crc(data), data):
        assert end_offset_checkpoint.EndOffsetCheckpoint(_FILE, OneFile(content)).read() in _INT64


def metadata_records() -> list[MetadataRecord]:
    acl_id = UUID(int=7)
    entry = AccessControlEntryRecord(
        id=acl_id,
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=2,
    )
    part = ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)
    return [
        entry,
        UserScramCredentialRecord(
            name="a", mechanism=1, salt=b"s", stored_key=b"k" * 32, server_key=b"l" * 32, iterations=4096
        ),
        ClientQuotaRecord(entity=[part], key="producer_byte_rate", value=5.0, remove=False),
        FeatureLevelRecord(name="transaction.version", feature_level=1),
        RemoveAccessControlEntryRecord(id=acl_id),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
    ]


def metadata_log_file() -> bytes:
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    log = metadata_log.MetadataLog(FOLDER / metadata_log.FILE_NAME, disk, VirtualClock())
    for record in metadata_records():
        log.append([record])
    return disk.read_file(FOLDER / metadata_log.FILE_NAME)


def topics_file() -> bytes:
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    topics = [
        TopicState("a", UUID(int=5), 3, {"cleanup.policy": "compact"}),
        TopicState("b-1", UUID(int=6), 1, {}),
    ]
    write_topics(disk, FOLDER, topics, [UUID(int=9)])
    return disk.read_file(FOLDER / "topics.json")


def offset_checkpoint() -> bytes:
    disk = SimulatedDisk()
    disk.mkdir(FOLDER)
    checkpoints.write_offsets(disk, _FILE, {TopicPartition("a", 0): 17, TopicPartition("b-1", 12): 0})
    return disk.read_file(_FILE)


def producer_snapshot() -> bytes:
    entries = [ProducerStateEntry(7, 1, 1000), ProducerStateEntry(9, 0, 2000, 3, 40)]
    entries[0].batches.append(BatchMetadata(0, 4, 10, 14, 1000))
    return snapshot_bytes(entries)


_PROPERTIES = b"""# comment
listeners=PLAINTEXT://127.0.0.1:9092
log.retention.ms : 1000
num.partitions=3
auto.create.topics.enable \\
    = true
max.connections.per.ip.overrides=127.0.0.1:5,::1:7
message.max.bytes=\\u0031000
"""


def targets() -> list[Target]:
    dynamic = checked_json(
        {"version": 1, "brokers": {"": {"log.retention.ms": "1000"}, "1": {"message.max.bytes": "5000"}}}
    )
    uuid_text = base64.urlsafe_b64encode(UUID(int=7).bytes).rstrip(b"=")
    indexes = [
        b"\x00" + b"".join(OFFSET_ENTRY.pack(n * 5, n * 400) for n in range(1, 9)),
        b"\x01" + b"".join(TIME_ENTRY.pack(n * 1000, n * 5) for n in range(1, 9)),
    ]
    aborted = [aborted_bytes([AbortedTransaction(1, 9, 7, 10), AbortedTransaction(11, 19, 8, 20)])]
    return [
        Target("snapshot", read_producer_snapshot, [producer_snapshot()]),
        Target("offset-checkpoint", read_offset_checkpoint, [offset_checkpoint(), b"0\n0\n"]),
        Target("epoch-checkpoint", read_epoch_checkpoint, [checkpoints.leader_epochs([(0, 0), (3, 17)])]),
        Target("topic-id", read_topic_id, [b"version: 0\ntopic_id: " + uuid_text + b"\n"]),
        Target("topics", read_topics_file, [topics_file()], takes_memory=True),
        Target("dynamic-configs", read_dynamic_configs, [dynamic], takes_memory=True),
        Target("meta-properties", read_meta_properties, [b"cluster.id=abc\nnode.id=1\nversion=1\n"]),
        Target("producer-ids", read_producer_ids, [b'{"next_block_start": 2000}\n']),
        Target("properties", read_properties_text, [_PROPERTIES], takes_memory=True),
        Target("indexes", read_indexes, indexes, head=1, takes_memory=True),
        Target("metadata-log", read_metadata_log, [metadata_log_file()], takes_memory=True),
        Target(
            "kafkas-epochs",
            read_kafkas_epochs,
            [metadata_batch(begun(0, 4), led_by(0, -1))],
            takes_memory=True,
        ),
        Target("metadata-record", read_metadata_record, [encode_record(each) for each in metadata_records()]),
        Target(
            "end-offset-checkpoint",
            read_end_offset_checkpoint,
            [checked_json({"next_offset": 7})],
            takes_memory=True,
        ),
        Target("aborted", read_aborted_transactions, aborted),
    ]
