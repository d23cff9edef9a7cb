"""Records acknowledged with acks=1 or acks=all are visible to the next request of any client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.broker_harness import batch
from model.held_disk import HeldDisk
from model.raw_line import Line

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.protocol import encode_request
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.produce import ProduceRequest

LATEST, MAX_TIMESTAMP = -1, -3
#: Enough to detect a race between the response and the high watermark, seen in nine rounds of ten.
ROUNDS = 300
FIRST_MS = 1_000_000


class Scene:
    """A broker with ``flush=ack``, a topic ``t`` of two partitions, and a disk whose calls can be blocked."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.disk = HeldDisk()
        self.broker = KafkaBroker(
            BrokerConfig.from_properties({"data_dir": folder, "port": 0, "log_retention_ms": -1}),
            disk=self.disk,
        )
        self.broker.start()
        stack.callback(self.broker.stop)
        stack.callback(self.disk.may_go.set)
        self._stack = stack
        self.reader = self.connect()
        self.broker.call(lambda: self.services.topics.create("t", 2, {}))

    @property
    def services(self) -> Any:
        return self.broker.services

    def connect(self) -> Line:
        return self._stack.enter_context(Line(self.broker.bootstrap_servers))

    def waiting_produces(self) -> int:
        return self.broker.call(lambda: len(self.services.replica_manager.produce_purgatory))

    def offset(self, timestamp: int) -> int:
        """Return the offset that ListOffsets returns to another client."""
        partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])
        answer = self.reader.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
        found: int = answer.topics[0].partitions[0].offset
        return found

    def high_watermark(self, fetch_offset: int) -> int:
        """Return the high watermark from a Fetch by another client, which must return a record."""
        partition = FetchRequest.FetchPartition(
            partition=0, fetch_offset=fetch_offset, partition_max_bytes=1 << 20
        )
        topic = FetchRequest.FetchTopic(topic="t", partitions=[partition])
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic]
        )
        (answer,) = self.reader.ask(request, 12).responses[0].partitions
        assert answer.records
        found: int = answer.high_watermark
        return found

    def delete_before(self, offset: int) -> tuple[int, int]:
        """Call DeleteRecords, and return its error code and low watermark."""
        partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[partition])
        (answer,) = (
            self.reader.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2).topics[0].partitions
        )
        return answer.error_code, answer.low_watermark


def produce(acks: int, *indexes: int, **batch_settings: Any) -> ProduceRequest:
    data = [
        ProduceRequest.PartitionProduceData(index=index, records=batch(b"value", **batch_settings))
        for index in indexes or (0,)
    ]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def outcomes(answer: Any) -> list[tuple[int, int]]:
    """Return the error code and base offset of each partition."""
    return [(each.error_code, each.base_offset) for each in answer.responses[0].partition_responses]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(tmp_path, stack)


def test_acknowledged_record_is_visible_to_the_next_request(scene: Scene) -> None:
    writer, wrong = scene.connect(), []
    for offset in range(ROUNDS):
        assert outcomes(writer.ask(produce(1, timestamp=FIRST_MS + offset), 9)) == [(0, offset)]
        seen = {
            "latest": scene.offset(LATEST),
            "by time": scene.offset(FIRST_MS + offset),
            "max timestamp": scene.offset(MAX_TIMESTAMP),
            "high watermark": scene.high_watermark(offset),
        }
        expected = {
            "latest": offset + 1,
            "by time": offset,
            "max timestamp": offset,
            "high watermark": offset + 1,
        }
        if seen != expected:
            wrong.append((offset, seen))
        if offset % 10 == 9:
            assert scene.delete_before(offset + 1) == (0, offset + 1)
    assert not wrong


@pytest.mark.parametrize("acks", [1, -1])
def test_answer_waits_for_the_disk_and_a_repeated_batch_does_too(scene: Scene, acks: int) -> None:
    scene.disk.hold("fdatasync", ".log")
    request = produce(acks, producer_id=7, producer_epoch=0, base_sequence=0)
    first, again = scene.connect(), scene.connect()
    first.say(request, 9)
    assert scene.disk.is_held.wait(BUDGET_S)
    again.say(request, 9)
    eventually(lambda: scene.waiting_produces() == 2)
    assert scene.offset(LATEST) == 0, "visible before it is on disk: a crash could lose it"
    scene.disk.may_go.set()
    assert [outcomes(line.hear()) for line in (first, again)] == [[(0, 0)], [(0, 0)]]
    assert scene.offset(LATEST) == 1


def test_produce_to_several_partitions_is_answered_once_for_all(scene: Scene) -> None:
    scene.disk.hold("fdatasync", ".log")
    writer = scene.connect()
    writer.say(produce(1, 0, 1), 9)
    assert scene.disk.is_held.wait(BUDGET_S)
    assert scene.waiting_produces() == 1
    scene.disk.may_go.set()
    assert outcomes(writer.hear()) == [(0, 0), (0, 0)]


def test_produce_with_acks_0_waits_for_nothing(scene: Scene) -> None:
    scene.disk.hold("fdatasync", ".log")
    writer = scene.connect()
    writer.say_bytes(frame_without_answer(produce(0)))
    assert scene.disk.is_held.wait(BUDGET_S)
    assert scene.waiting_produces() == 0
    assert scene.offset(LATEST) == 0


def frame_without_answer(request: ProduceRequest) -> bytes:
    return b"".join(bytes(piece) for piece in encode_request(request, 9, 1, "raw"))


def test_largest_timestamp_is_found_while_another_record_is_being_written(scene: Scene) -> None:
    assert outcomes(scene.connect().ask(produce(1, timestamp=FIRST_MS), 9)) == [(0, 0)]
    scene.disk.hold("fdatasync", ".log")
    writer = scene.connect()
    writer.say(produce(1, timestamp=FIRST_MS + 1), 9)
    assert scene.disk.is_held.wait(BUDGET_S)
    assert (scene.offset(MAX_TIMESTAMP), scene.offset(FIRST_MS), scene.offset(FIRST_MS + 1)) == (0, 0, -1)
    scene.disk.may_go.set()
    assert outcomes(writer.hear()) == [(0, 1)]
    assert scene.offset(MAX_TIMESTAMP) == 1


def test_consumer_that_seeks_to_the_end_is_behind_what_a_producer_has_sent(scene: Scene) -> None:
    servers, partition = scene.broker.bootstrap_servers, TopicPartition("t", 0)
    with (
        KafkaProducer(bootstrap_servers=servers, acks=1, enable_idempotence=False) as producer,
        KafkaConsumer(bootstrap_servers=servers) as consumer,
    ):
        consumer.assign([partition])
        for offset in range(20):
            assert producer.send("t", b"v", partition=0).get(BUDGET_S).offset == offset
            assert consumer.end_offsets([partition]) == {partition: offset + 1}
            consumer.seek_to_end(partition)
            assert consumer.position(partition) == offset + 1
