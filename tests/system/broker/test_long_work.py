"""Requests that need long (de)compression: a worker thread does it, while other clients are served."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from eventually import BUDGET_S, eventually
from model.broker_harness import batch
from model.raw_line import Line
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, encode_records

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.errors import (
    InvalidRecordError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.old_fetch import OldFetchRequest, OldFetchResponse
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression, compression, read_batches
from kafkacore.record.compression import compress
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Writer, crc32c

WORKER = "kafka-long-work"
NETWORK = "kafka-broker-network"
FETCH = 1
FIRST_MS = 1000
EMPTY_FRAME = lz4.frame.compress(b"", store_size=False)
RECORDS = [ModelRecord(0, FIRST_MS, None, b"heavy"), ModelRecord(1, FIRST_MS + 1, None, b"heavier")]
T0 = TopicPartition("t", 0)


def packed(codec: int, before: bytes = b"", records: list[ModelRecord] = RECORDS) -> bytes:
    """Return a batch whose compressed records follow the bytes ``before``, which contain no record."""
    content = bytes(compress(codec, encode_records(records, ModelBatch())))
    return sealed(codec, before + content, records)


def sealed(codec: int, content: bytes, records: list[ModelRecord] = RECORDS) -> bytes:
    """Return a batch whose CRC the library computes; the model's CRC takes seconds for a megabyte."""
    made = bytearray(encode_batch(records, ModelBatch(attributes=codec), b"") + content)
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">I", made, 17, crc32c(memoryview(made)[21:]))
    return bytes(made)


def frames(size: int) -> bytes:
    """Return a valid batch with ``size`` bytes of empty lz4 frames."""
    return packed(Compression.LZ4, EMPTY_FRAME * (size // len(EMPTY_FRAME)))


def bomb(size: int) -> bytes:
    return packed(Compression.GZIP, records=[ModelRecord(0, FIRST_MS, None, bytes(size))])


#: More compressed bytes than the network thread decompresses itself.
HEAVY = frames(100_000)


class Gate:
    """Wrappers of the codecs in this process that record each call and can block the worker thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        #: Thread, codec and limit of each decompression; thread and codec of each compression.
        self.decompressed: list[tuple[str, int, int]] = []
        self.compressed: list[tuple[str, int]] = []
        self.is_held = threading.Event()
        self.may_go = threading.Event()
        self.may_go.set()
        for number, codec in compression.CODECS.items():
            watched = codec._replace(
                compress=self._writing(number, codec.compress),
                decompress=self._reading(number, codec.decompress),
            )
            monkeypatch.setitem(compression.CODECS, number, watched)

    def hold(self) -> None:
        self.is_held.clear()
        self.may_go.clear()

    def _pass(self) -> str:
        name = threading.current_thread().name
        if name == WORKER:
            self.is_held.set()
            assert self.may_go.wait(BUDGET_S)
        return name

    def _reading(self, codec: int, function: Callable[[memoryview, int], Any]) -> Any:
        def read(data: memoryview, max_size: int) -> Any:
            self.decompressed.append((self._pass(), codec, max_size))
            return function(data, max_size)

        return read

    def _writing(self, codec: int, function: Callable[[Any, int | None], Any]) -> Any:
        def write(data: Any, level: int | None) -> Any:
            self.compressed.append((self._pass(), codec))
            return function(data, level)

        return write


class Scene:
    """A broker with a topic ``t`` of two partitions and a worker that can be blocked, and clients of it."""

    def __init__(self, folder: Path, stack: ExitStack, gate: Gate) -> None:
        self.gate = gate
        self.folder = folder
        self.broker = KafkaBroker(BrokerConfig(data_dir=folder, port=0, flush="os"))
        self.broker.start()
        stack.callback(self.broker.stop)
        stack.callback(gate.may_go.set)
        self._stack = stack
        self.slow, self.other = self.connect(), self.connect()
        self.broker.call(lambda: self.create("t", **{"max.message.bytes": "8000000"}))

    def create(self, name: str, **configs: str) -> None:
        assert self.broker.services is not None
        self.broker.services.topics.create(name, 2, configs)

    def connect(self) -> Line:
        return self._stack.enter_context(Line(self.broker.bootstrap_servers))

    def log(self, topic: str = "t", partition: int = 0) -> Any:
        assert self.broker.services is not None
        return self.broker.services.cluster.led_log(TopicPartition(topic, partition), 1)

    def values(self) -> list[bytes | None]:
        log = self.broker.call(self.log)
        found: list[bytes | None] = []
        while (data := log.read(len(found), 1 << 24)).next_offset > len(found):
            found += [record.value for each in read_batches(bytes(data.records)) for record in each]
        return found

    def begin_heavy(self) -> None:
        """Block the worker while it validates a Produce to ``t``."""
        self.gate.hold()
        self.slow.say(produce(HEAVY), 9)
        assert self.gate.is_held.wait(BUDGET_S)

    def check_others_are_served(self) -> None:
        assert error_of(self.other.ask(produce(batch(b"other"), partition=1), 9)) == 0
        small = batch(b"small", compression=Compression.GZIP)
        assert error_of(self.other.ask(produce(small, partition=1), 9)) == 0
        assert len(records_of(self.other.ask(fetch(1), 4))) > 0


def produce(*records: bytes, partition: int = 0, acks: int = 1, topic: str = "t") -> ProduceRequest:
    """Return a request that writes each batch to its own partition."""
    data = [
        ProduceRequest.PartitionProduceData(index=partition + index, records=each)
        for index, each in enumerate(records)
    ]
    named = ProduceRequest.TopicProduceData(name=topic, partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[named])


def fetch(partition: int = 0) -> FetchRequest:
    wanted = FetchRequest.FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 24)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 24,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[wanted])],
    )


def by_time(timestamp: int) -> ListOffsetsRequest:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])])


def produced(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def error_of(answer: Any) -> int:
    code: int = produced(answer).error_code
    return code


def records_of(answer: Any) -> bytes:
    return bytes(answer.responses[0].partitions[0].records)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture
def scene(tmp_path: Path, gate: Gate) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(tmp_path, stack, gate)


# ---- Produce -----------------------------------------------------------------------------------------------
def test_others_are_served_while_a_batch_is_validated(scene: Scene) -> None:
    scene.begin_heavy()
    scene.check_others_are_served()
    assert scene.values() == []
    scene.gate.may_go.set()
    answer = produced(scene.slow.hear())
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert scene.values() == [b"heavy", b"heavier"]


def test_requests_of_one_connection_stay_in_order(scene: Scene) -> None:
    scene.begin_heavy()
    scene.slow.say(produce(batch(b"after")), 9)
    scene.check_others_are_served()
    scene.gate.may_go.set()
    assert [produced(scene.slow.hear()).base_offset for _ in range(2)] == [0, 2]


@pytest.mark.parametrize("megabytes", [1, 4])
def test_many_empty_lz4_frames_are_validated_by_the_worker(scene: Scene, megabytes: int) -> None:
    scene.slow.say(produce(frames(megabytes << 20)), 9)
    scene.check_others_are_served()
    assert error_of(scene.slow.hear()) == 0
    assert {thread for thread, codec, _ in scene.gate.decompressed if codec == Compression.LZ4} == {WORKER}


def test_ordinary_batches_stay_on_the_network_thread(scene: Scene) -> None:
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        assert error_of(scene.other.ask(produce(batch(bytes(100_000), compression=codec)), 9)) == 0
    assert {thread for thread, _, _ in scene.gate.decompressed} == {NETWORK}


def test_a_bomb_is_decompressed_a_little_before_it_moves(scene: Scene) -> None:
    assert error_of(scene.other.ask(produce(bomb(16 << 20)), 9)) == 0
    here, there = scene.gate.decompressed
    assert here == (NETWORK, Compression.GZIP, 4 << 20)
    assert there == (WORKER, Compression.GZIP, 64 << 20)


def test_batches_of_one_request_share_the_network_thread(scene: Scene) -> None:
    """Send two batches that the network thread would decompress itself if each came alone."""
    answer = scene.other.ask(produce(bomb(3 << 20), bomb(3 << 20)), 9)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0, 0]
    assert [thread for thread, _, _ in scene.gate.decompressed] == [NETWORK, NETWORK, WORKER]


@pytest.mark.parametrize(
    ("codec", "level", "size", "thread"),
    [
        ("gzip", None, 200_000, NETWORK),
        ("gzip", None, 300_000, WORKER),
        ("zstd", "22", 30_000, NETWORK),
        ("zstd", "22", 50_000, WORKER),
        ("lz4", None, 900_000, NETWORK),
        ("lz4", "17", 100_000, WORKER),
    ],
)
def test_slow_compression_for_the_topic_is_done_by_the_worker(
    scene: Scene, codec: str, level: str | None, size: int, thread: str
) -> None:
    levels = {} if level is None else {f"compression.{codec}.level": level}
    scene.broker.call(lambda: scene.create("packed", **{"compression.type": codec}, **levels))
    scene.gate.compressed.clear()
    assert error_of(scene.other.ask(produce(batch(bytes(size)), topic="packed"), 9)) == 0
    assert [name for name, _ in scene.gate.compressed] == [thread]


def test_what_the_worker_refuses_is_told_to_the_client(scene: Scene) -> None:
    broken = sealed(Compression.LZ4, EMPTY_FRAME * 10_000 + b"junk")
    answer = produced(scene.other.ask(produce(broken), 9))
    assert answer.error_code == InvalidRecordError.errno
    assert "is malformed: lz4" in answer.error_message
    assert scene.values() == []


def test_a_refused_batch_without_acks_closes_the_connection(scene: Scene) -> None:
    broken = sealed(Compression.LZ4, EMPTY_FRAME * 10_000 + b"junk")
    scene.slow.say(produce(broken, acks=0), 9)
    with pytest.raises(AssertionError, match="closed the connection"):
        scene.slow.hear_bytes()
    scene.check_others_are_served()


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_topic_that_is_deleted_meanwhile_gets_nothing(scene: Scene, is_made_again: bool) -> None:
    scene.begin_heavy()
    is_deleted = threading.Event()
    assert scene.broker.services is not None
    topics = scene.broker.services.topics
    scene.broker.call(lambda: topics.delete_soon("t", lambda _: is_deleted.set()))
    assert is_deleted.wait(BUDGET_S)
    if is_made_again:
        scene.broker.call(lambda: scene.create("t"))
    scene.gate.may_go.set()
    assert error_of(scene.slow.hear()) == UnknownTopicOrPartitionError.errno
    if is_made_again:
        assert scene.values() == []


def test_a_log_that_goes_offline_meanwhile_refuses(scene: Scene) -> None:
    scene.begin_heavy()

    def fail() -> None:
        scene.log().failure = "t-0 is offline"

    scene.broker.call(fail)
    scene.gate.may_go.set()
    assert error_of(scene.slow.hear()) == KafkaStorageError.errno


def test_what_a_client_sent_before_it_left_is_appended_in_order(scene: Scene) -> None:
    scene.gate.hold()
    scene.slow.say_at_once([(produce(each, acks=0), 9) for each in (HEAVY, batch(b"a"), HEAVY, batch(b"b"))])
    assert scene.gate.is_held.wait(BUDGET_S)
    scene.slow.close()
    scene.check_others_are_served()
    scene.gate.may_go.set()
    eventually(lambda: len(scene.values()) == 6)
    assert scene.values() == [b"heavy", b"heavier", b"a", b"heavy", b"heavier", b"b"]
    server = scene.broker._server
    assert server is not None
    eventually(lambda: server.connection_count == 1)


def test_a_stop_meanwhile_neither_appends_nor_acknowledges(scene: Scene) -> None:
    scene.begin_heavy()
    scene.broker.request_stop()
    eventually(lambda: not scene.broker.is_running)
    scene.gate.may_go.set()
    scene.broker.stop()
    with pytest.raises((AssertionError, ConnectionError)):
        scene.slow.hear_bytes()
    assert WORKER not in {thread.name for thread in threading.enumerate()}
    with KafkaBroker(BrokerConfig(data_dir=scene.folder, port=0)) as again:
        log = again.call(lambda: again.services.cluster.led_log(T0, 1))  # type: ignore[union-attr]
        assert log.log_end_offset == 0


def say_old_fetch(line: Line, version: int) -> None:
    wanted = OldFetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
    topic = OldFetchRequest.FetchTopic(topic="t", partitions=[wanted])
    writer = Writer()
    for value in (FETCH, version):
        writer.write_int16(value)
    writer.write_int32(1)
    writer.write_nullable_string("old", False)
    request = OldFetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=[topic])
    request.encode(writer, version)
    line.say_bytes(b"".join(bytes(piece) for piece in writer.pieces()))


def hear_old_fetch(line: Line, version: int) -> bytes:
    cursor = Cursor(line.hear_bytes())
    cursor.read_int32()
    partition = OldFetchResponse.decode(cursor, version).responses[0].partitions[0]
    assert partition.error_code == 0
    return bytes(partition.records)


# ---- Fetch, ListOffsets ------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", [0, 2, 3])
def test_others_are_served_while_records_are_converted(scene: Scene, version: int) -> None:
    assert error_of(scene.other.ask(produce(batch(b"a", b"b", compression=Compression.GZIP)), 9)) == 0
    scene.gate.hold()
    say_old_fetch(scene.slow, version)
    assert scene.gate.is_held.wait(BUDGET_S)
    scene.check_others_are_served()
    scene.gate.may_go.set()
    found = [each.value for one in read_batches(hear_old_fetch(scene.slow, version)) for each in one]
    assert found == [b"a", b"b"]


def test_an_old_fetch_converts_little_more_than_4_mib(scene: Scene) -> None:
    for size in (3 << 20, 3 << 20, 1):
        assert error_of(scene.other.ask(produce(bomb(size)), 9)) == 0
    say_old_fetch(scene.slow, 3)
    found = list(read_batches(hear_old_fetch(scene.slow, 3)))
    assert [each.base_offset for each in found] == [0, 1]


def test_a_search_by_time_does_not_hold_the_log(scene: Scene) -> None:
    assert error_of(scene.other.ask(produce(batch(b"a", b"b", compression=Compression.GZIP)), 9)) == 0
    scene.gate.hold()
    scene.slow.say(by_time(FIRST_MS + 1), 7)
    assert scene.gate.is_held.wait(BUDGET_S)
    assert error_of(scene.other.ask(produce(batch(b"c")), 9)) == 0
    scene.check_others_are_served()
    scene.gate.may_go.set()
    found = scene.slow.hear().topics[0].partitions[0]
    assert (found.offset, found.timestamp) == (1, FIRST_MS + 1)


def test_the_latest_time_is_searched_by_the_worker(scene: Scene) -> None:
    assert error_of(scene.other.ask(produce(batch(b"a", b"b", compression=Compression.GZIP)), 9)) == 0
    scene.gate.decompressed.clear()
    found = scene.slow.ask(by_time(-3), 7).topics[0].partitions[0]
    assert (found.offset, found.timestamp) == (1, FIRST_MS + 1)
    assert [thread for thread, _, _ in scene.gate.decompressed] == [WORKER]
