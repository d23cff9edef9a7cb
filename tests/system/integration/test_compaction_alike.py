"""Apache Kafka and our log compact the same log: the same batches and records are left.

Apache Kafka writes a topic and its files are copied. Then Apache Kafka compacts its files, and our log the
copy. The records use all codecs, and include tombstones, idempotent producers, and committed and aborted
transactions.
"""

from __future__ import annotations

import random
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from eventually import eventually
from model.raw_line import Line
from model.topic_reader import await_markers
from peers.apache_kafka import ApacheKafka
from peers.jars import run_java

from kafkacore import KafkaProducer
from kafkacore.broker.log import LogManager
from kafkacore.broker.log.transaction_index import AbortedTransaction, read_aborted
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.structs import TopicPartition

TOPIC = "compared"
FOLDER = f"{TOPIC}-0"
RECORDS = 50_000
BATCH = 40
KEYS = 3_000
#: Longer than Apache Kafka needs for a compaction: a second one would remove the tombstones, too.
DELETE_RETENTION_MS = 10_000
CREATE_VERSION, ALTER_VERSION, PRODUCE_VERSION = 7, 1, 9
TOPIC_RESOURCE, SET = 2, 0
#: UNKNOWN_TOPIC_OR_PARTITION and NOT_LEADER_OR_FOLLOWER.
NOT_LED_YET = (3, 6)

CONFIG = {
    # The smallest value that Apache Kafka 4.3 accepts.
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "retention.ms": "-1",
}


class Batch(NamedTuple):
    """The properties of a batch that compaction may change."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int]
    codec: Compression
    is_transactional: bool
    is_control: bool
    has_delete_horizon: bool
    max_timestamp: int
    records: tuple[tuple[Any, ...], ...]


def batches(folder: Path, end_offset: int) -> list[Batch]:
    """Return all batches before ``end_offset`` in a partition's files."""
    found = []
    for path in sorted(folder.glob("*.log")):
        for one in read_batches(path.read_bytes()):
            if one.last_offset < end_offset:
                records = tuple((r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in one)
                found.append(
                    Batch(
                        one.base_offset,
                        one.last_offset,
                        (one.producer_id, one.producer_epoch, one.base_sequence),
                        one.compression if records else Compression.NONE,
                        one.is_transactional,
                        one.is_control,
                        one.has_delete_horizon,
                        one.max_timestamp,
                        records,
                    )
                )
    return found


def aborted(folder: Path) -> set[AbortedTransaction]:
    """Return the aborted transactions in the transaction indexes."""
    return {one for path in folder.glob("*.txnindex") for one in read_aborted(path.read_bytes())}


def active_base(folder: Path) -> int:
    return max(int(path.stem) for path in folder.glob("*.log"))


class CompactingKafka:
    """Apache Kafka with one topic that is compacted only on request."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self.kafka = kafka
        self.folder = kafka.segments_dir / FOLDER
        self._chance = random.Random(7)
        make = CreateTopicsRequest
        configs = [make.CreatableTopicConfig(name=name, value=value) for name, value in CONFIG.items()]
        topic = make.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
        with Line(kafka.bootstrap_servers) as asked:
            made = asked.ask(make(topics=[topic], timeout_ms=30_000), CREATE_VERSION)
        assert made.topics[0].error_code == 0

    def set_policy(self, policy: str) -> None:
        make = IncrementalAlterConfigsRequest
        config = make.AlterableConfig(name="cleanup.policy", config_operation=SET, value=policy)
        resource = make.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=[config]
        )
        with Line(self.kafka.bootstrap_servers) as asked:
            answer = asked.ask(make(resources=[resource]), ALTER_VERSION)
        assert answer.responses[0].error_code == 0

    def _batch(self, count: int) -> bytes:
        chance = self._chance
        builder = RecordBatchBuilder(1 << 20, chance.choice(list(Compression)))
        for index in range(count):
            key = b"key %d" % int(chance.triangular(0, KEYS, 0))
            value = None if chance.random() < 0.05 else chance.randbytes(chance.choice([0, 20, 200, 400]))
            headers = [("h", b"x")] if chance.random() < 0.1 else []
            builder.append(1_700_000_000_000 + index, key, value, headers)
        return bytes(builder.close())

    def fill(self, records: int) -> None:
        """Write ``records`` without a producer id, with transactions in between."""
        make = ProduceRequest
        with Line(self.kafka.bootstrap_servers) as asked:
            for number in range(records // BATCH):
                partition = make.PartitionProduceData(index=0, records=self._batch(BATCH))
                data = make.TopicProduceData(name=TOPIC, partition_data=[partition])
                asked_for = make(acks=-1, timeout_ms=30_000, topic_data=[data])
                self._write(asked, asked_for)
                if number % 200 == 100:
                    self._transactions()
        await_markers(self.kafka.bootstrap_servers, TOPIC, 1)

    def _write(self, asked: Line, request: ProduceRequest) -> None:
        def is_written() -> bool:
            error_code = asked.ask(request, PRODUCE_VERSION).responses[0].partition_responses[0].error_code
            # A topic exists before its leader knows that it leads.
            assert error_code in {0, *NOT_LED_YET}
            return error_code == 0

        eventually(is_written)

    def _transactions(self) -> None:
        """Write committed and aborted transactions, some with keys that are overwritten later."""
        name = uuid.uuid4().hex[:8]
        options: dict[str, Any] = {"bootstrap_servers": self.kafka.bootstrap_servers}
        with KafkaProducer(transactional_id=name, compression_type="lz4", **options) as producer:
            producer.init_transactions()
            for commits in (True, False, True, False):
                producer.begin_transaction()
                for key in (f"key {self._chance.randrange(50)}", f"own {name} {commits}"):
                    producer.send(TOPIC, key=key.encode(), value=b"in a transaction" * 20)
                producer.flush()
                (producer.commit_transaction if commits else producer.abort_transaction)()
        with KafkaProducer(**options) as producer:
            producer.send(TOPIC, key=b"key 1", value=b"of a producer that has a number")

    def copy(self, target: Path) -> int:
        """Copy the topic's files, and return the offset before which they may be compacted."""
        # Files that an earlier compaction replaced are deleted with a delay.
        shutil.copytree(self.folder, target / FOLDER, ignore=shutil.ignore_patterns("*.deleted"))
        return active_base(self.folder)

    def compact(self) -> None:
        """Compact everything but the active segment, once."""
        end = active_base(self.folder)
        self.set_policy("compact")
        path = self.kafka.segments_dir / "cleaner-offset-checkpoint"
        eventually(
            lambda: path.exists() and f"{TOPIC} 0 {end}\n" in path.read_text(),
            lambda: f"not compacted up to {end}",
        )
        self.set_policy("delete")


def compact_copy(data_dir: Path) -> None:
    """Compact the copy with our log."""
    config = {**CONFIG, "cleanup.policy": "compact"}
    with LogManager(data_dir, clock=SYSTEM_CLOCK, default_config=config, background=False) as manager:
        log = manager.log(TopicPartition(TOPIC, 0))
        assert log is not None
        assert manager.clean_filthiest() is not None
        manager.flush_dirty()
        assert manager.uncleanable == {}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompactingKafka]:
    properties = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), properties) as kafka:
        yield CompactingKafka(kafka)


@pytest.mark.kafka(
    "LogCleanerTest.testMultiPassSegmentCleaningWithAbortedTransactions",
    "LogCleanerTest.testBasicTransactionAwareCleaning",
    "LogCleanerTest.testCleanWithTransactionsSpanningSegments",
    "LogCleanerTest.testCommitMarkerRemoval",
    "LogCleanerTest.testDeletedBatchesWithNoMessagesRead",
    "LogCleanerTest.testCommitMarkerRetentionWithEmptyBatch",
    "LogCleanerTest.testCleanEmptyControlBatch",
    "LogCleanerTest.testCommittedTransactionSpanningSegments",
    "LogCleanerTest.testAbortedTransactionSpanningSegments",
    "LogCleanerTest.testAbortMarkerRemoval",
    "LogCleanerTest.testEmptyBatchRemovalWithSequenceReuse",
    "LogCleanerTest.testAbortMarkerRetentionWithEmptyBatch",
    "LogCleanerTest.testLogCleanerRetainsLastSequenceEvenIfTransactionAborted",
    "LogCleanerTest.testCleaningWithKeysConflictingWithTxnMarkerKeys",
)
def test_both_leave_the_same_and_go_on_from_what_the_other_left(
    kafka: CompactingKafka, tmp_path: Path
) -> None:
    left: list[list[Batch]] = []
    compacted_ms = 0.0
    for turn, records in enumerate((RECORDS, RECORDS // 4)):
        kafka.fill(records)
        copy = tmp_path / f"copy {turn}"
        end = kafka.copy(copy)
        whole = batches(copy / FOLDER, end)
        # The delete horizons of the previous turn have passed for both.
        over_ms = compacted_ms + DELETE_RETENTION_MS + 100 if turn else 0.0
        SYSTEM_CLOCK.sleep_ms(max(over_ms - SYSTEM_CLOCK.monotonic_ms(), 0.0))
        kafka.compact()
        compacted_ms = SYSTEM_CLOCK.monotonic_ms()
        theirs = batches(kafka.folder, end)
        compact_copy(copy)
        ours = batches(copy / FOLDER, end)
        assert len(theirs) < len(whole)
        assert sum(len(one.records) for one in theirs) < sum(len(one.records) for one in whole) / 2
        for our_batch, their_batch in zip(ours, theirs, strict=True):
            assert our_batch == their_batch
        assert aborted(copy / FOLDER) == aborted(kafka.folder)
        left.append(ours)
        check_dump(copy / FOLDER)
    first, second = left
    # Every case that depends on more than the key has occurred.
    for kind in (first, second):
        assert any(one.has_delete_horizon for one in kind)
        assert any(one.is_control for one in kind)
        assert any(one.is_transactional and not one.is_control for one in kind)
        assert any(not one.records for one in kind)
    tombstones = {record[:3] for one in first for record in one.records if record[3] is None}
    assert tombstones
    assert not tombstones & {record[:3] for one in second for record in one.records}


def check_dump(folder: Path) -> None:
    """Check that Kafka's DumpLogSegments reads our files and finds the indexes correct."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".log", ".index", ".timeindex"))
    output = run_java(
        "org.apache.kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--files",
        ",".join(map(str, files)),
    ).decode()
    complaint = re.search(
        r"mismatch|invalid|corrupt|isvalid: false|not .*(ordered|sorted)|exception", output, re.I
    )
    assert complaint is None, output[max(complaint.start() - 300, 0) : complaint.end() + 300]
    assert output.count("| offset: ") > 1000
