"""Misuse of compiled classes that used to crash the interpreter now raises a typed error."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kafkacore.broker.log._batch_filter import BatchFilter
from kafkacore.broker.log._batches import stored_header
from kafkacore.broker.log._key_walk import map_batch
from kafkacore.broker.log._offset_map import OffsetMap
from kafkacore.broker.log._producer_batches import ProducerBatches
from kafkacore.broker.storage._disk_write import pwritev_all
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.decode._avro_reader import AvroReader
from kafkacore.decode._json_columns import JsonColumns
from kafkacore.decode.avro_program import Convert, NodeSpec, Op, compile_program
from kafkacore.decode.avro_schema import parse_schema
from kafkacore.decode.json_schema import Node, root_of
from kafkacore.errors import CorruptRecordError, IllegalStateError, InvalidRecordError
from kafkacore.metrics._sensor import Sensor
from kafkacore.network import FrameReader, NetworkSend
from kafkacore.network._poller import Poller
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult, _index_of
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._topic_state import TopicState
from kafkacore.record import Compression, RecordBatchBuilder, RecordSource, encode, read_batches
from kafkacore.record._columns import ColumnBuilder
from kafkacore.record._legacy_builder import LegacyBatchBuilder
from kafkacore.record._validation import with_codec
from kafkacore.structs import TopicPartition
from kafkacore.wire import _blocks as blocks
from kafkacore.wire._failing_memory import call_with_failure
from kafkacore.wire._writer import Writer

TP = TopicPartition("t", 0)
SCHEMA = pa.schema(
    [("a", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("m", pa.map_(pa.string(), pa.string()))]
)
DOCUMENTS = [
    b'{"a": %d, "t": "2020-01-02T03:04:05 Europe/Berlin", "m": {"k\\u00e9": "v", "l": null}}' % at
    for at in range(50)
] + [b'{"a": nonsense', b"", b'{"a": "x"}']


# ---- Two threads, or a callback ------------------------------------------------------------------
def run_in_threads(call: Callable[[], object], rounds: int = 200) -> list[Exception]:
    """Run ``call`` ``rounds`` times in each of two threads, and return the exceptions."""
    raised: list[Exception] = []
    both = threading.Barrier(2)

    def work() -> None:
        both.wait()
        for _ in range(rounds):
            try:
                call()
            except Exception as error:  # noqa: BLE001
                raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return raised


class Zones:
    """A stand-in for ``json_zones`` that knows every zone, as UTC."""

    session_offset_s = None

    def __init__(self) -> None:
        self.on_question: Callable[[], object] = lambda: None

    def is_known(self, name: str) -> bool:
        self.on_question()
        return True

    def to_instants(self, name: str | None, local: pa.Buffer) -> pa.Buffer:
        return local


JSON_ROOT = root_of(SCHEMA)


def json_decoder(zones: Zones | None = None) -> JsonColumns:
    return JsonColumns(JSON_ROOT, zones or Zones(), False, False, True, True, 2**24)


def test_json_decoder_in_two_threads_is_refused() -> None:
    decoder = json_decoder()
    values = pa.array(DOCUMENTS * 20, pa.binary())
    expected = decoder.decode(values)[0]
    wrong = []

    def decode() -> None:
        if decoder.decode(values)[0] != expected:
            wrong.append(1)

    raised = run_in_threads(decode, 50)
    assert not wrong
    assert {type(each) for each in raised} <= {RuntimeError}
    assert all("give each thread its own" in str(each) for each in raised)


def test_json_decoder_in_its_own_callback_is_refused() -> None:
    zones = Zones()
    decoder = json_decoder(zones)
    values = pa.array(DOCUMENTS, pa.binary())
    zones.on_question = lambda: decoder.decode(values)
    with pytest.raises(RuntimeError, match="in use by another call"):
        decoder.decode(values)
    zones.on_question = lambda: None
    assert decoder.decode(values)[0][0][0].as_py() == 0


AVRO_SCHEMA = pa.schema([("a", pa.string())])
AVRO_PROGRAM = compile_program(
    parse_schema('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'), AVRO_SCHEMA
)


def avro_reader() -> AvroReader:
    reader = AvroReader(AVRO_SCHEMA, False, 2**24)
    reader.add_program(0, AVRO_PROGRAM)
    return reader


def test_avro_decoder_in_two_threads_is_refused() -> None:
    reader = avro_reader()
    values = pa.array([b"\x06abc"] * 2000, pa.binary())
    validity, offsets, data = values.buffers()
    wrong = []

    def read() -> None:
        columns, bad = reader.read(validity, offsets, data, 0, len(values), lambda schema_id: None)
        if bad is not None or columns[0] != pa.array(["abc"] * 2000):
            wrong.append(1)

    raised = run_in_threads(read)
    assert not wrong
    assert {type(each) for each in raised} <= {RuntimeError}


def test_avro_columns_taken_by_a_callback_are_refused() -> None:
    reader = AvroReader(pa.schema([("a", pa.string())]), True, 2**24)
    values = pa.array([b"\0\0\0\0\1\x06abc"], pa.binary())
    _, offsets, data = values.buffers()

    def ask(schema_id: int) -> None:
        reader.columns.take()

    with pytest.raises(RuntimeError, match="in use by another call"):
        reader.read(None, offsets, data, 0, 1, ask)


def test_message_builder_in_two_threads_is_refused() -> None:
    value = bytes(100_000)

    def fill() -> None:
        builder = LegacyBatchBuilder(1, Compression.GZIP)
        offsets = iter(range(1000))
        raised = run_in_threads(lambda: builder.append(next(offsets), 0, None, value), 5)
        raised += run_in_threads(builder.close, 1)
        assert {type(each) for each in raised} <= {RuntimeError, IllegalStateError, ValueError}

    for _ in range(3):
        fill()


def test_size_of_columns_that_another_thread_fills_is_refused_or_right() -> None:
    batch = bytes(encode([bytes(50)] * 5000)[0])
    builder = ColumnBuilder(["value"])

    def append() -> None:
        builder.append(next(read_batches(batch)))

    stop = threading.Event()
    sizes: list[int] = []

    def measure() -> None:
        while not stop.is_set():
            try:
                sizes.append(builder.nbytes)
            except RuntimeError:
                continue

    thread = threading.Thread(target=measure)
    thread.start()
    for _ in range(50):
        append()
    stop.set()
    thread.join()
    assert builder.num_rows == 250_000
    assert sizes == sorted(sizes)


def test_poller_that_waits_in_another_thread_is_not_closed() -> None:
    poller = Poller()
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        poller.wait(60_000)

    thread = threading.Thread(target=wait)
    thread.start()
    waits.wait()
    while True:
        # set() fails only after the other thread has begun to wait.
        try:
            poller.set(0, 0, 0)
        except IllegalStateError:
            break
    with pytest.raises(IllegalStateError, match="another thread is polling"):
        poller.close()
    poller.wakeup()
    thread.join()
    poller.close()


# ---- Arguments that C code did not check ---------------------------------------------------------
class Values:
    """An array of one row with the interface that the decoder uses, but without pyarrow's checks."""

    offset = null_count = 0

    def __init__(self, buffers: list[pa.Buffer | None]) -> None:
        self.buffers = lambda: buffers

    def __len__(self) -> int:
        return 1


def test_json_decoder_checks_offsets() -> None:
    decoder = json_decoder()
    for offsets in ([0, 100], [5, 2], [-3, 1]):
        values = Values([None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(b"{}")])
        with pytest.raises(ValueError, match="offsets that decrease"):
            decoder.decode(values)  # type: ignore[arg-type]


def record_of(field: Node) -> Node:
    return Node(16, 0, pa.struct([("a", field.arrow_type)]), names=("a",), children=(field,))


@pytest.mark.parametrize(
    "root",
    [
        record_of(Node(14, 4, pa.list_(pa.int64()))),
        record_of(Node(5, 1, pa.int64())),
        record_of(Node(99, 8, pa.int64())),
        record_of(Node(9, 4, pa.date32(), pattern=b"[\xff")),
        Node(5, 8, pa.int64()),
    ],
)  # fmt: skip
def test_json_decoder_checks_its_schema(root: Node) -> None:
    with pytest.raises(ValueError, match=r"kind|pattern|root"):
        JsonColumns(root, Zones(), False, False, False, False, 2**20)


@pytest.mark.parametrize(
    "spec",
    [
        NodeSpec(Op.RECORD, path=(), children=(7,)),
        NodeSpec(Op.NUMBER, Convert.TO_INT64, path=(0,)),
        NodeSpec(Op.BYTES, Convert.TO_UUID, path=(0,)),
        NodeSpec(Op.MEMBERS),
        NodeSpec(Op.RECORD, path=(9,)),
        NodeSpec(Op.ENUM, Convert.TO_TEXT, size=1, path=(0,), blob=b"x", ends=(500,)),
    ],
)
def test_avro_program_is_checked(spec: NodeSpec) -> None:
    reader = AvroReader(pa.schema([("a", pa.string())]), False, 2**20)
    with pytest.raises(ValueError, match=r"node|path"):
        reader.add_program(0, [spec])


def test_avro_union_in_itself_ends() -> None:
    endless = AvroReader(pa.schema([("a", pa.string())]), False, 2**20)
    endless.add_program(0, [NodeSpec(Op.UNION, children=(0,))])
    values = pa.array([bytes(3_000_000)], pa.binary())
    _, offsets, data = values.buffers()
    assert endless.read(None, offsets, data, 0, 1, print)[1] == b"\1"


class LyingList(list[bytes]):
    def __len__(self) -> int:
        return 1


def test_write_of_more_pieces_than_the_list_says(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        pwritev_all(file.fileno(), LyingList([b"%03d" % at for at in range(200)]), 0)
    assert path.read_bytes() == b"".join(b"%03d" % at for at in range(200))


def old_batch() -> Any:
    builder = LegacyBatchBuilder(1)
    builder.append(0, 5, None, b"v")
    return next(read_batches(bytes(builder.close())))


def test_header_of_an_old_message_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="format 1"):
        stored_header(old_batch(), 0, 0, False, 5)
    with pytest.raises(InvalidRecordError, match="format 1"):
        with_codec(old_batch(), 1)


def test_compaction_of_an_old_message_is_refused() -> None:
    offsets = OffsetMap(2400, 0.5, 1)
    batches = BatchFilter(
        offsets, base_offset=0, end_offset=5, last_offsets={}, now_ms=5, delete_retention_ms=5,
        index_interval_bytes=4096, max_index_bytes=4096,
    )  # fmt: skip
    with pytest.raises(CorruptRecordError):
        batches.filter_batch(old_batch())
    with pytest.raises(CorruptRecordError):
        map_batch(offsets, old_batch(), 0)
    with pytest.raises(IllegalStateError, match="not been set up"):
        BatchFilter.__new__(BatchFilter).filter(b"")


def test_offset_map_without_a_slot_is_refused() -> None:
    for memory, load in ((0, 0.5), (-1, 0.5), (2400, 0.0), (2400, float("nan"))):
        with pytest.raises(ValueError, match="invalid size of an offset map"):
            OffsetMap(memory, load, 1)


def test_producer_entry_with_a_batch_that_is_no_tuple_is_refused() -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(0, None, b"v")
    batch = next(read_batches(builder.close(producer_id=7, producer_epoch=0, base_sequence=0)))
    producers = ProducerBatches("t-0")
    producers.entries[7] = SimpleNamespace(producer_epoch=0, batches=[1])
    with pytest.raises(TypeError):
        producers.check(batch)


def test_topic_with_partitions_that_it_has_not_is_refused() -> None:
    queues = [PartitionQueue(TP)]
    for available in ((1,), (-1,), (0, 0)):
        with pytest.raises(ValueError, match="partition"):
            TopicState("t", queues, available)
    for queue in (None, "queue"):
        with pytest.raises(TypeError):
            TopicState("t", [queue], ())  # type: ignore[list-item]


@pytest.mark.parametrize(
    "parts",
    [[], [(0, None)], [(1, ProduceResult(TP))], [(0, ProduceResult(TP)), (0, ProduceResult(TP))], [1]],
)
def test_batch_divided_into_what_is_no_parts_is_refused(parts: list[Any]) -> None:
    result = ProduceResult(TP)
    with pytest.raises((TypeError, ValueError)):
        result.divide(parts)
    with pytest.raises(ValueError, match="a new batch that has not been divided"):
        result.divide([(0, result)])
    assert not FutureRecordMetadata(result).is_done


def test_index_of_what_is_no_future_is_refused() -> None:
    with pytest.raises(TypeError):
        _index_of((1,))


def test_frame_is_sent_once_and_not_read_after_its_end() -> None:
    send = NetworkSend("peer", [bytearray(b"abc"), b"x" * 1000])
    assert send.drain()[4:7] == b"abc"
    assert send.drain() == b""


class Exports:
    """An exporter that returns the same capsules for each call."""

    def __init__(self, data: Any) -> None:
        self.capsules = data.__arrow_c_array__()
        self.stream = pa.table({"a": data}).column(0).__arrow_c_stream__()


def test_arrow_data_are_moved_out_of_their_capsules() -> None:
    exports = Exports(pa.array([b"abc", None, b"d" * 1000]))
    array = SimpleNamespace(__arrow_c_array__=lambda: exports.capsules)
    source = RecordSource(array)
    with pytest.raises(ValueError, match="malformed"):
        RecordSource(array)
    # The capsules are freed; the source owns their content.
    exports.capsules = ()
    gc.collect()
    assert [each.value for batch in read_batches(encode(source)[0]) for each in batch] == [
        b"abc",
        None,
        b"d" * 1000,
    ]
    stream = SimpleNamespace(__arrow_c_stream__=lambda: exports.stream)
    assert len(RecordSource(stream)) == 3
    with pytest.raises(ValueError, match="already been consumed"):
        RecordSource(stream)


def test_columns_of_names_that_equal_everything_are_refused() -> None:
    class Offset(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return other == "offset" and not isinstance(other, Offset)

    with pytest.raises(ValueError, match="choose from"):
        ColumnBuilder([Offset("offset") for _ in range(1000)])


# ---- Recursion -----------------------------------------------------------------------------------
def test_chain_of_futures_does_not_overflow_the_stack() -> None:
    first = last = RequestFuture()
    for _ in range(100_000):
        following = RequestFuture()
        last.chain(following)
        last = following
    try:
        first.complete(1)
    except RecursionError:
        return
    assert last.value() == 1


def test_family_of_sensors_does_not_overflow_the_stack() -> None:
    sensor = Sensor("s")
    for _ in range(8):
        sensor = Sensor("s", parents=(sensor,))
    sensor.record(1.0, 1.0)
    with pytest.raises(ValueError, match="generations"):
        Sensor("s", parents=(sensor,))


# ---- Failing allocations -------------------------------------------------------------------------
def used() -> tuple[int, int]:
    state = blocks.statistics()
    return state["used_blocks"], state["used_bytes"]


# These tests are about compiled code, so Python code that creates functions runs in advance. If Python 3.12.1
# or 3.13.0 cannot allocate a function, such as a lambda or a generator expression, it releases the code
# object twice and crashes later (https://github.com/python/cpython/issues/122752).
JSON_ZONES = Zones()
JSON_VALUES = pa.array(DOCUMENTS, pa.binary())


def decode_json() -> None:
    json_decoder(JSON_ZONES).decode(JSON_VALUES)


AVRO_VALUES = pa.array([b"\x06abc"] * 100 + [None], pa.binary())


def decode_avro() -> None:
    validity, offsets, data = AVRO_VALUES.buffers()
    avro_reader().read(validity, offsets, data, 0, len(AVRO_VALUES), print)


BATCH = bytes(encode([bytes(at) for at in range(200)], [b"k"] * 200, [[("h", b"x")]] * 200)[0])


def read_columns() -> None:
    builder = ColumnBuilder(["offset", "timestamp", "timestamp_type", "key", "value", "headers"])
    builder.append(next(read_batches(BATCH)))
    pa.record_batch(builder.finish())


def encode_columns() -> None:
    headers = [[("name", bytearray(b"value"))], None]
    encode(
        [bytearray(100), None], [b"k", bytearray(b"key")], headers, [1, None], compression=Compression.GZIP
    )


ARROW = pa.table(
    {"value": pa.chunked_array([[b"abc", b"d"], [None]]).dictionary_encode(), "key": ["a", "b", "c"]}
)


def encode_arrow() -> None:
    encode(RecordSource.from_arrow(ARROW))


def convert_down() -> None:
    builder = LegacyBatchBuilder(0, Compression.LZ4)
    for at in range(3):
        builder.append(at, 0, None, bytes(5000))
    builder.close()


def receive_frames() -> None:
    reader = FrameReader("peer")
    for size in (10, 20_000, 40_000):
        reader.feed(size.to_bytes(4, "big"))
        reader.feed(bytes(size))


def write_pieces() -> None:
    writer = Writer(16)
    writer.write_buffer(bytes(1000))
    NetworkSend("peer", [*writer.pieces(), *[b"piece"] * 10]).drain()


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize(
    "work",
    [
        decode_json, decode_avro, read_columns, encode_columns, encode_arrow, convert_down, receive_frames,
        write_pieces,
    ],
)  # fmt: skip
def test_each_allocation_may_fail(work: Callable[[], None], objects: bool) -> None:
    """A failed allocation raises ``MemoryError`` and leaks no blocks."""
    work()
    gc.collect()
    before = used()
    for number in allocations(objects):
        try:
            if not call_with_failure(work, number, objects=objects):
                return
        except MemoryError:
            pass
        gc.collect(0)
        assert used() == before, f"allocation {number} leaks blocks"
    if not objects:
        pytest.fail("the work made more allocations than expected")


def allocations(objects: bool) -> Iterator[int]:
    """Yield the numbers of allocations to fail: each of the first, then larger steps for objects."""
    number = 1
    while number < 5000:
        yield number
        number += 1 if not objects or number < 50 else max(number // 20, 1)


def test_failing_allocations_inside_one_another_are_refused() -> None:
    with pytest.raises(RuntimeError, match="another call_with_failure is in progress"):
        call_with_failure(lambda: call_with_failure(list, 1), 1_000_000)
    assert not call_with_failure(list, 1_000_000)
