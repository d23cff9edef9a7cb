"""A broker on a full or failing disk: the responses clients get, and the records on disk afterwards.

Whichever call fails, each response is KAFKA_STORAGE_ERROR or an acknowledgement whose records survive, and
no batch is half written. Other partitions keep working. After ENOSPC a partition accepts records again once
there is space. After a failed sync it never acknowledges another record.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.broker_in_hand import BrokerInHand, frame_of
from model.dose import dose, note
from model.log_oracle import NOW_MS, batch, read_all
from model.power_rights import CONFIG as GUARDED
from model.power_rights import Rights, found_in

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

CONFIG = {"log_segment_bytes": 1_500, "log_index_interval_bytes": 150, "port": 0, "log_retention_ms": -1}
#: Numbers of the write at which the fault is injected, one run for each.
CALLS = range(1, 501, dose(11, 1))
PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1))
Fault = Callable[[int, str, Path], BaseException | None]


def started(folder: Path, disk: SimulatedDisk, **more: Any) -> BrokerInHand:
    config = BrokerConfig.from_properties({"data_dir": folder, **CONFIG, **more})
    broker = BrokerInHand(config, background=False, clock=VirtualClock(start_ms=NOW_MS), disk=disk)
    broker.start()
    return broker


def nth(verb: str, number: int, code: int, times: int = 1) -> Fault:
    """Return a fault that fails ``times`` calls of ``verb``, beginning with call ``number``."""
    left = [number]

    def fault(call: int, called: str, path: Path) -> BaseException | None:
        if called != verb:
            return None
        left[0] -= 1
        return OSError(code, "planted", str(path)) if -times < left[0] <= 0 else None

    return fault


def is_offline(broker: BrokerInHand, tp: TopicPartition) -> bool:
    try:
        broker.logs.log(tp)
    except KafkaStorageError:
        return True
    return False


class Writer:
    """A producer that alternates between two partitions and records each response."""

    def __init__(self, broker: BrokerInHand) -> None:
        self.broker = broker
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {tp: {} for tp in PARTITIONS}
        self.refused: list[tuple[TopicPartition, bytes]] = []
        self._waiting: list[tuple[TopicPartition, bytes, list[Any]]] = []

    def send(self, tp: TopicPartition, value: bytes) -> None:
        data = ProduceRequest.PartitionProduceData(index=tp.partition, records=batch([value], NOW_MS))
        topic = ProduceRequest.TopicProduceData(name=tp.topic, partition_data=[data])
        frame = frame_of(ProduceRequest(acks=-1, timeout_ms=10**6, topic_data=[topic]), 9)
        self._waiting.append((tp, value, self.broker.give(frame)))

    def flush(self) -> None:
        self.broker.flush()
        for tp, value, answers in self._waiting:
            assert len(answers) == 1, f"{value!r} got no response"
            response = decode_response(answers[0], ProduceRequest, 9)[1].responses[0].partition_responses[0]
            if response.error_code:
                assert response.error_code == KafkaStorageError.errno
                self.refused.append((tp, value))
            else:
                assert response.base_offset not in self.acknowledged[tp]
                self.acknowledged[tp][response.base_offset] = value
        self._waiting.clear()

    def write(self, count: int, name: str) -> None:
        for index in range(count):
            self.send(PARTITIONS[index % 2], b"%s %d" % (name.encode(), index) + b"x" * 60)
            if index % 3 == 2:
                self.flush()
        self.flush()


def check(broker: BrokerInHand, writer: Writer, *, only: bool) -> None:
    """Check that the log holds every acknowledged record and, with ``only``, no other."""
    for tp in PARTITIONS:
        log = broker.logs.log(tp)
        assert log is not None
        found = {record.offset: record.value for record in read_all(log)}
        assert writer.acknowledged[tp].items() <= found.items()
        if only:
            assert writer.acknowledged[tp] == found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("times", [1, 7], ids=["once", "for a while"])
def test_full_disk_at_any_write_refuses_batches_whole_and_goes_on_when_there_is_space(
    tmp_path: Path, times: int
) -> None:
    refused = 0
    for number in CALLS:
        disk = SimulatedDisk()
        broker = started(tmp_path, disk)
        broker.services.topics.create("t", 2, {})
        writer = Writer(broker)
        disk.fault = nth("pwritev", number, errno.ENOSPC, times)
        writer.write(130, "before")
        check(broker, writer, only=True)
        disk.fault = lambda call, verb, path: None
        was_refused = len(writer.refused)
        writer.write(4, "after")
        assert len(writer.refused) == was_refused, "refused although there is space again"
        check(broker, writer, only=True)
        broker.abandon()
        disk = disk.kill_process()
        again = started(tmp_path, disk)
        check(again, writer, only=True)
        again.abandon()
        refused += was_refused
    note(f"no space for {times} writes", at_each_of=len(CALLS), records_refused=refused)
    assert refused >= len(CALLS) // 4


def test_full_disk_at_any_write_refuses_a_change_of_rights_whole_and_goes_on_when_there_is_space(
    tmp_path: Path,
) -> None:
    for number in range(1, 25):
        disk = SimulatedDisk()
        broker = started(tmp_path, disk, **GUARDED)
        rights = Rights(random.Random(number))
        disk.fault = nth("pwritev", number, errno.ENOSPC)
        refused = 0
        for _ in range(12):
            findings = rights.change(broker)
            refused += len(findings)
            assert all(f"error_code={KafkaStorageError.errno}," in each for each in findings), findings
            assert found_in(broker) == rights.answered
        assert refused == 1
        broker.abandon()
        again = started(tmp_path, disk.kill_process(), **GUARDED)
        assert found_in(again) == rights.answered
        again.abandon()


def test_failing_write_ends_one_partition_and_no_other(tmp_path: Path) -> None:
    ended = 0
    for number in CALLS[:: dose(3, 1)]:
        disk = SimulatedDisk()
        broker = started(tmp_path, disk)
        broker.services.topics.create("t", 2, {})
        writer = Writer(broker)
        disk.fault = nth("pwritev", number, errno.EIO)
        writer.write(130, "before")
        disk.fault = lambda call, verb, path: None
        offline = [tp for tp in PARTITIONS if is_offline(broker, tp)]
        assert len(offline) <= 1
        ended += len(offline)
        writer.write(4, "after")
        for tp, value in writer.refused:
            assert tp in offline, f"{value!r} was refused by a partition that is online"
        broker.abandon()
        again = started(tmp_path, disk.kill_process())
        check(again, writer, only=False)
        again.abandon()
    note("a write fails with EIO", at_each_of=len(CALLS[:: dose(3, 1)]), partitions_offline=ended)


@pytest.mark.parametrize("verb", ["fdatasync", "fsync_dir"])
def test_failing_sync_acknowledges_nothing_ever_and_ends_one_partition(tmp_path: Path, verb: str) -> None:
    failures = 0
    for number in range(1, dose(40, 100)):
        disk = SimulatedDisk()
        broker = started(tmp_path, disk)
        broker.services.topics.create("t", 2, {})
        writer = Writer(broker)
        disk.fault = nth(verb, number, errno.EIO)
        writer.write(90, "before")
        disk.fault = lambda call, called, path: None
        offline = [tp for tp in PARTITIONS if is_offline(broker, tp)]
        acknowledged = {tp: dict(writer.acknowledged[tp]) for tp in PARTITIONS}
        writer.write(4, "after")
        assert len(offline) <= 1
        for tp in offline:
            assert writer.acknowledged[tp] == acknowledged[tp], "acknowledged after a failed sync"
            failures += 1
        for tp, value in writer.refused:
            assert tp in offline, f"{value!r} was refused by a partition that is online"
        broker.abandon()
        for seed in range(3):
            found = disk.copy().lose_power(VirtualClock(start_ms=NOW_MS, seed=seed))
            again = started(tmp_path, found)
            check(again, writer, only=False)
            again.abandon()
    note(f"{verb} fails with EIO", at_each_of=number, partitions_offline=failures)
    assert failures > 0


class SmallDisk(Disk):
    """The real file system with a size limit: :attr:`left` more bytes can be written to logs."""

    left = 1 << 30

    def pwritev(self, fd: int, buffers: Any, position: int) -> None:
        data = b"".join(bytes(buffer) for buffer in buffers)
        if len(data) > self.left:
            super().pwritev(fd, [data[: max(self.left, 0)]], position)
            self.left = 0
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= len(data)
        super().pwritev(fd, [data], position)


def test_clients_of_a_full_broker_wait_for_space_and_lose_nothing(tmp_path: Path) -> None:
    disk = SmallDisk()
    config = BrokerConfig.from_properties({"data_dir": tmp_path, "port": 0, "log_segment_bytes": 50_000})
    tp = TopicPartition("t", 0)
    with KafkaBroker(config, disk=disk) as broker:
        servers = broker.bootstrap_servers
        with (
            KafkaProducer(bootstrap_servers=servers, batch_size=2_000, retry_backoff_ms=20) as producer,
            KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer,
        ):
            values = [b"%d " % number + b"x" * 500 for number in range(300)]
            producer.send("t", values[0]).get(BUDGET_S)
            disk.left = 60_000
            futures = [producer.send("t", value, partition=0) for value in values[1:]]
            consumer.assign([tp])
            eventually(lambda: not disk.left)
            # Existing records are readable while the disk is full.
            found: list[bytes] = []
            read_until(consumer, found, lambda: bool(found))
            assert not all(future.is_done for future in futures)
            disk.left = 1 << 30
            assert [future.get(BUDGET_S).offset for future in futures] == list(range(1, 300))
            read_until(consumer, found, lambda: consumer.position(tp) == 300)
    assert found == values


def read_until(consumer: KafkaConsumer, found: list[bytes], is_done: Callable[[], bool]) -> None:
    """Append values to ``found`` until ``is_done`` returns true."""

    def read() -> None:
        for records in consumer.poll(timeout_ms=50).values():
            found.extend(record.value for record in records)

    eventually(is_done, lambda: f"{len(found)} records", step=read)
