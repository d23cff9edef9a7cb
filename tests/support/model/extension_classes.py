"""Call every extension class of the package in ways that must not crash the interpreter.

    python -m model.extension_classes NOTE

It runs in a process of its own and writes the current call to the file NOTE, so that a crash leaves the class
and the call on record. Other errors are printed, one per line.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import importlib
import importlib.machinery
import io
import logging
import math
import mmap
import pickle
import pkgutil
import random
import struct
import sys
import tempfile
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa

import kafkacore
from kafkacore.broker.handlers import consumer_group_heartbeat
from kafkacore.consumer._memory import PinLedger
from kafkacore.decode._avro_reader import AvroReader
from kafkacore.decode.avro_program import compile_program
from kafkacore.decode.avro_schema import parse_schema
from kafkacore.metrics._sensor import Sensor
from kafkacore.network._poller import Poller
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.record import Compression, encode, read_batch_headers, read_batches
from kafkacore.structs import TopicPartition

FACTORIES: dict[str, Callable[[], Any]] = {}
HEAP_TYPE = 1 << 9
#: Types whose values are shown in the note. Formatting any other value would be one more call.
PLAIN = {int, float, str, bytes, bytearray, tuple, list, type(None)}
MAX_SECONDS = 100
TP = TopicPartition("t", 0)
BATCH = bytes(encode([b"value one", b"two", None], [b"k", None, b"key"], timestamp_ms=5)[0])
LARGE_BATCH = bytes(encode([bytes(5000)] * 3)[0])

#: Classes of values: a copy equals the original in every attribute.
COPYABLE = {
    "kafkacore.consumer._record.ConsumerRecord",
    "kafkacore.record._header.BatchHeader",
    "kafkacore.wire._uuid.Uuid",
}
#: Classes whose instances Python code can never reach.
INTERNAL = {
    "kafkacore.cli._record_lines._Lines",
    "kafkacore.record._arrow_table.ArrowColumn",
    "kafkacore.record._arrow_table._Chunks",
    "kafkacore.producer._batch_future._Segment",
}
#: Methods that wait for ever with some arguments, and the arguments they are called with instead.
WAITING: dict[str, list[tuple[Any, ...]]] = {
    "NativeHeartbeat.run": [(0,), (None,), ("x",)],
    "Poller.wait": [(0,), (-1,), (None,)],
    "ProduceResult.wait": [(0,), (-1,), ("x",)],
    "ProduceResult._wait_here": [(0,), (-1, True), ("x",)],
    "Selector.poll": [(0,), (-1, True), (None,)],
}
"""By ``Class.method``."""
NOT_CALLED = {"call_with_failure"}
VALUES: list[Any] = [
    None, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), 2**70, 0.5, math.nan, "", "x", "\ud800", b"", bytes(70),
    bytearray(b"x"), [], (), {}, set(), [None], (None, None), [b"x"], object, int,
]  # fmt: skip


class Anything:
    """An object with every attribute, which returns itself from every call."""

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> Anything:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class StillClock:
    """A clock on which every wait ends immediately."""

    random = random.Random(5)

    def monotonic_ms(self) -> float:
        return 1.0

    def wall_ms(self) -> int:
        return 1

    def wait_for(self, *args: object) -> bool:
        return False


def made_by(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(factory: Callable[[], Any]) -> Callable[[], Any]:
        FACTORIES[f"kafkacore.{name}"] = factory
        return factory

    return add


def sensor() -> Sensor:
    return Sensor("s")


class Files:
    """A stand-in for the folder of a log's files. It is always empty."""

    lock = contextlib.nullcontext()
    disk = Anything()

    def file(self, path: object, creates: bool) -> Any:
        return SimpleNamespace(
            path=path, is_unsynced=False, pread=lambda size, at: b"", pwritev=lambda *a: None,
            truncate=lambda *a: None, hold=lambda: 0, release_hold=lambda: None, release=lambda: None,
            fdatasync=lambda: None, move=lambda *a, **k: None,
        )  # fmt: skip

    def size(self, path: object) -> None:
        return None

    def opened(self, file: object) -> int:
        return 10**6

    def closed(self, file: Any) -> None:
        file.fd = -1


def of(name: str, *args: object, **kwargs: object) -> Any:
    """Return a factory that calls the class with these arguments. It calls factories among them first."""
    module, _, cls = name.rpartition(".")

    def make() -> Any:
        given = [each() if isinstance(each, Made) else each for each in args]
        named = {key: each() if isinstance(each, Made) else each for key, each in kwargs.items()}
        return getattr(importlib.import_module(f"kafkacore.{module}"), cls)(*given, **named)

    FACTORIES[f"kafkacore.{name}"] = make
    return Made(make)


class Made:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __call__(self) -> Any:
        return self.make()


ZONES = SimpleNamespace(session_offset_s=0, is_known=lambda name: True, to_instants=lambda name, local: local)
FETCH_CONFIG = SimpleNamespace(
    fetch_max_wait_ms=500,
    fetch_min_bytes=1,
    fetch_max_bytes=1000,
    client_rack="",
    max_partition_fetch_bytes=1000,
    read=SimpleNamespace(isolation_level=0),
)
S = Made(sensor)
UUID = of("wire._uuid.Uuid", bytes(16))
CLOCK = StillClock()
of("metrics._sensor.Sensor", "name")
of("consumer._counters.TopicSensors", S, S)
of("consumer._counters.PartitionSensors", S, S)
COUNTER = of("consumer._counters.FetchCounter", Anything(), Anything(), CLOCK, S, S, S, S)
of("consumer._counters.ResponseTally", COUNTER, 1)
of("consumer._counters.PollCounter", CLOCK, S, S)
of("consumer._record.ConsumerRecord", "t", 0, 1, 2, 3, 0, b"k", b"v", [("h", b"x")])
MEMORY = of("consumer._memory.FetchMemory", Made(PinLedger))
of("consumer._reader.RecordReader", BATCH, "t", 0, 0, MEMORY, Anything())
of(
    "consumer._fetch_codec.SessionPart",
    TP,
    SimpleNamespace(position=None),
    UUID,
    0,
    1000,
    -1,
)
of("consumer._fetch_codec.FetchSettings", 500, 1, 1000, 0, "")
of(
    "consumer._steady_fetcher.SteadyFetcher",
    Anything(),
    Anything(),
    Anything(),
    CLOCK,
    [],
    FETCH_CONFIG,
    Made(PinLedger),
    None,
)
of("consumer._request_future._Callbacks", print, print)
of("client._request_counter.ConnectionSensors", S, S, S, S)
of("client._request_counter.RequestCounter", Anything(), S)
of("client._client_request.ClientRequest", 0, MetadataRequest(), 1, 0.0, request_timeout_ms=1.0)
IN_FLIGHT = of("client._in_flight_requests.InFlightRequests", 5)
of("wire._cursor.Cursor", bytes(100))
of("wire._file_slice.FileSlice", 10**6, 0, 10, Anything())
of("decode._json_columns.JsonColumns", Made(lambda: json_root()), ZONES, True, True, True, True, 2**20)
of("decode._builder.Columns", pa.schema([("a", pa.int64())]), 2**20)
of("decode._fixed._View", b"x")
AVRO = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
of("decode._avro_reader._Program", Made(lambda: avro_program()), FACTORIES and Made(lambda: avro_columns()))
of("network._idle.IdleExpiry", 5.0)
of("network._memory.MemoryPool", 1000)
of("network._receive.NetworkReceive", "id", memoryview(bytearray(b"x")))
of("network._receive.FrameReader", "id", 100)
of("network._send.NetworkSend", "id", [b"a", b"b" * 1000, b"c", b"d", b""])
of("network._native_heartbeat.NativeHeartbeat", 1, 10)
POLLER = of("network._poller.Poller")
of("network._channel_set.ChannelSet", POLLER)
of("network._setup_deadlines.SetupDeadlines", 5.0)
of("network._selector.Selector", CLOCK)
of("network._transport.PlaintextTransportLayer", 10**6)
of("network._tls.TlsTransportLayer", Anything(), SimpleNamespace(fileno=lambda: 10**6), True)
of("record._columns.ColumnBuilder", ["offset", "key", "value", "headers"])
of("record._builder.RecordBatchBuilder", 1000, Compression.GZIP)
of("record._legacy_builder.LegacyBatchBuilder", 1, Compression.GZIP)
of("wire._payload.Payload", b"x")
SOURCE = of("record._source.RecordSource", [b"a", None, bytearray(b"b")], [b"k"] * 3, [[("h", b"x")]] * 3)
POOL = of("producer._buffer_pool.BufferPool", 1000, CLOCK)
BATCH_MEMORY = of("producer._batch_memory.BatchMemory", POOL, CLOCK, Compression.NONE, None)
of(
    "producer._batch.ProducerBatch",
    TP,
    FACTORIES and Made(lambda: make("record._builder.RecordBatchBuilder")),
    CLOCK,
    0.0,
)
of(
    "producer._lone_batch.LoneBatch",
    Anything(),
    CLOCK,
    Made(lambda: make("producer._batch.ProducerBatch")),
    Anything(),
    "t",
    1,
    9,
)
of(
    "producer._direct_sender.DirectSender",
    SimpleNamespace(acks=1, request_timeout_ms=1000, outcomes=Anything()),
    Made(
        lambda: SimpleNamespace(
            selector=SimpleNamespace(poller=Poller()),
            in_flight=IN_FLIGHT(),
            api_versions=SimpleNamespace(by_node={}),
        )
    ),
    CLOCK,
    Made(lambda: SimpleNamespace(active={}, delivery_timeout_ms=1.0, sender_wakeup=WAKEUP())),
    None,
)
of("producer._batch_counter.TopicSensors", S, S, S, S, S)
of("producer._batch_counter.BatchCounter", Anything(), CLOCK, POOL, S, S, S, S, S)
WAKEUP = of("producer._sender_wakeup.SenderWakeup", Anything())
QUEUE = of("producer._partition_queue.PartitionQueue", TP)
of(
    "producer._topic_state.TopicState",
    "t",
    Made(lambda: [make("producer._partition_queue.PartitionQueue")]),
    (),
)
RESULT = of("producer._future.ProduceResult", TP, CLOCK)
of("producer._future.FutureRecordMetadata", RESULT)
of("producer._produce_future.LoopFutures", Anything())
OPTIONS = {
    "batch_size": 100, "linger_ms": 0, "max_request_size": 1000, "max_block_ms": 0, "is_adaptive": True,
    "ignores_keys": False,
}  # fmt: skip
APPENDER = of("producer._record_appender.RecordAppender", CLOCK, WAKEUP, BATCH_MEMORY, **OPTIONS)
of("producer._column_appender.ColumnAppender", APPENDER)
of("producer._record_sender.RecordSender", APPENDER, Anything(), True)
of(
    "broker.group.consumer._heartbeat.ConsumerHeartbeat", "g", member_id="m", member_epoch=1,
    instance_id=None, rack_id=None, rebalance_timeout_ms=-1, subscribed_topic_names=None,
    subscribed_topic_regex=None, server_assignor=None, topic_partitions=None, client_id="c",
    client_host="/h", version=1,
)  # fmt: skip
LOG = SimpleNamespace(epochs=Anything(), leader_epoch=0)
of("broker.coordinator._coordinator_partition.CoordinatorPartition", TP, LOG, Anything())
TIMER = of("broker.purgatory._timer.Timer")
SESSIONS = of("broker.group.consumer._sessions.Sessions", TIMER, CLOCK)
of(
    "broker.group.consumer._steady.SteadyHeartbeats",
    Anything(), Anything(), Anything(), Anything(), Anything(), SESSIONS,
)  # fmt: skip
of("broker.purgatory._delayed_operation.DelayedOperation", 5.0)
of("broker.purgatory._delayed_operation.DelayedOperationPurgatory", TIMER)
of("broker.purgatory._delayed_operation.DelayedProduce", 5.0, [], Anything())
of("broker.purgatory._delayed_operation.DelayedFetch", 5.0, Anything(), Anything())
of("broker.replica._fetch_call.FetchPartition", "t", UUID, 0, 0, 0)
of("broker.replica._fetch_call.FetchTopic", "t", [])
of("broker.replica._fetch_call.FetchCall", replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=0, topics=[])
of("broker.replica._fetch_call.FetchAnswer", 0, [], False)
STATS = of("broker.server._api_stats.ApiStats", "Fetch", CLOCK, "", "")
CONTEXT = of("broker.requests._request.RequestContext", "id", 1)
REQUEST = of(
    "broker.requests._request.Request", CONTEXT, 0, 1, 2, "client", Anything(), Anything(), Anything()
)
of("broker.server._kafka_apis.ServedApi", consumer_group_heartbeat.HANDLER, STATS)
of("broker.server._kafka_apis.KafkaApis", SimpleNamespace(clock=CLOCK))
REPLICAS = SimpleNamespace(events=([], [], []))
PUMP = of(
    "broker.server._request_pump.RequestPump", {}, Anything(), Anything(), REPLICAS, TIMER, CLOCK, Anything()
)
of("broker.server._request_pump.Connection", CONTEXT, PUMP)
MAP = of("broker.log._offset_map.OffsetMap", 2400, 0.5, 7)
of("broker.log._batch_filter.BatchFilter", MAP, base_offset=0, end_offset=5, last_offsets={}, now_ms=5,
   delete_retention_ms=5, index_interval_bytes=4096, max_index_bytes=4096)  # fmt: skip
of("broker.log._producer_batches.ProducerBatches", "t-0")
of("broker.log._indexes.IndexFile", Files(), Path("x"), struct.Struct(">ii"), 800)
INDEX = of("broker.log._indexes.OffsetIndex", Files(), Path("x"), 0, 800)
TIMES = of("broker.log._indexes.TimeIndex", Files(), Path("x"), 0, 800)
CONFIG = SimpleNamespace(segment_bytes=1000, max_segment_ms=1000, index_interval_bytes=10)
APPENDER = of(
    "broker.log._segment_appender.SegmentAppender", Files().file("x", True), 0, INDEX, TIMES, 0, CONFIG, 5
)
SEGMENTS = Made(lambda: [SimpleNamespace(base_offset=0, appender=APPENDER())])
of("broker.log._local_log.LocalLog", SEGMENTS, 0)
of("broker.log._log_file.LogFile", Files(), Path("x"), True)


def make(name: str) -> Any:
    return FACTORIES[f"kafkacore.{name}"]()


def json_root() -> Any:
    from kafkacore.decode.json_schema import root_of

    return root_of(pa.schema([("a", pa.int64()), ("b", pa.map_(pa.string(), pa.float64()))]))


def avro_program() -> Any:
    writer = parse_schema('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}')
    return compile_program(writer, AVRO)


def avro_columns() -> Any:
    return AvroReader(AVRO, False, 2**20).columns


@made_by("decode._avro_reader.AvroReader")
def avro_reader() -> Any:
    reader = AvroReader(AVRO, False, 2**20)
    reader.add_program(0, avro_program())
    return reader


@made_by("broker.handlers._produce_append.ProduceAppend")
def produce_append() -> Any:
    from kafkacore.broker.handlers._produce_append import ProduceAppend
    from kafkacore.broker.requests._request import Request, RequestContext

    return ProduceAppend(Request(RequestContext("id", 1), 0, 3, 1, "c", None, None, None), Anything())


@made_by("record._columns.RecordColumns")
def record_columns() -> Any:
    return make("record._columns.ColumnBuilder").finish()


@made_by("record._header.BatchHeader")
def batch_header() -> Any:
    return read_batch_headers(BATCH)[0]


@made_by("record._batch.RecordBatch")
def record_batch() -> Any:
    return next(read_batches(BATCH))


@made_by("record._batch.BatchIterator")
def batch_iterator() -> Any:
    return read_batches(BATCH)


@made_by("record._batch.RecordIterator")
def record_iterator() -> Any:
    return iter(record_batch())


@made_by("record._batch._SmallRecord")
def small_record() -> Any:
    return next(record_iterator())


@made_by("record._batch.Record")
def record() -> Any:
    return next(iter(next(read_batches(LARGE_BATCH))))


@made_by("producer._produce_future.ProduceFuture")
def produce_future() -> Any:
    record = FACTORIES["kafkacore.producer._future.FutureRecordMetadata"]()
    return FACTORIES["kafkacore.producer._produce_future.LoopFutures"]().of_record(record)


@made_by("producer._batch_future.BatchFuture")
def batch_future() -> Any:
    return make("producer._column_appender.ColumnAppender").failed_source("t", SOURCE(), ValueError("no"))


# ---- Checks of each class ------------------------------------------------------------------------
class Poker:
    """Calls everything after noting the call, and collects errors other than crashes."""

    def __init__(self, note: Path) -> None:
        note.write_bytes(bytes(400))
        with note.open("r+b") as file:
            self.note = mmap.mmap(file.fileno(), 400)
        self.wrong: list[str] = []
        self.random = random.Random(1)
        self.calls = 0

    def attempt(self, label: str, function: Callable[..., Any], *args: object) -> Any:
        """Return the result of the call, or the exception that it raised."""
        self.calls += 1
        given = ", ".join(repr(each) if type(each) in PLAIN else type(each).__name__ for each in args)
        text = f"{label}({given})".encode(errors="replace")[:399]
        self.note[:400] = text.ljust(400, b"\0")
        try:
            return function(*args)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - a cancelled future raises CancelledError
            return error

    def poke_class(self, cls: type) -> None:
        name = f"{cls.__module__}.{cls.__qualname__}"
        raw = self.attempt(f"{name}.__new__", cls.__new__, cls)
        if not isinstance(raw, Exception):
            self.poke(f"uninitialised {name}", raw, cls)
        made = self.attempt(f"{name}()", FACTORIES.get(name, cls))
        if isinstance(made, Exception):
            if name not in INTERNAL:
                self.wrong.append(
                    f"{name}: cannot create an instance ({made!r}): add it to model.extension_classes"
                )
            return
        self.check_copies(name, made)
        self.poke_unbound(name, cls)
        self.poke(name, made, cls)
        self.poke_subclass(name, cls)

    def poke_unbound(self, name: str, cls: type) -> None:
        """Call each method on objects of other classes."""
        for attribute in sorted(set(dir(cls)) - {"__class__", "__new__"}):
            function = getattr(cls, attribute)
            if not callable(function) or isinstance(function, type):
                continue
            for other in (object(), None, Anything(), Sensor("s"), cls):
                for count in range(4):
                    self.attempt(f"{name}.{attribute}, unbound", function, other, *(0,) * count)

    def poke_subclass(self, name: str, cls: type) -> None:
        """Use a Python subclass whose ``__init__`` does not call the base class's."""
        try:
            derived = type("Derived", (cls,), {"__init__": lambda self, *args: None})
        except TypeError:
            return
        made = self.attempt(f"{name} derived", derived.__new__, derived)
        if isinstance(made, Exception):
            made = self.attempt(f"{name} derived", derived)
        if not isinstance(made, Exception):
            made.own = "attribute"
            for protocol in range(6):
                self.attempt(f"{name} derived: pickle", pickle.dumps, made, protocol)
            self.attempt(f"{name} derived: copy", copy.copy, made)
            self.poke(f"{name} derived", made, cls)

    def check_copies(self, name: str, made: object) -> None:
        copiers: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
        copiers += [lambda each, at=at: pickle.loads(pickle.dumps(each, at)) for at in range(6)]
        for at, copier in enumerate(copiers):
            result = self.attempt(f"{name}: copy {at}", copier, made)
            if name in COPYABLE:
                if isinstance(result, Exception) or attributes_of(made) != attributes_of(result):
                    self.wrong.append(f"{name}: copy {at} gives {result!r}")
            elif not isinstance(result, TypeError) or type(made).__name__ not in str(result):
                self.wrong.append(
                    f"{name}: copy {at} returns {result!r}, expected a TypeError that names the class"
                )

    def poke(self, name: str, made: object, cls: type) -> None:
        for protocol in range(6):
            self.attempt(f"{name}.__reduce_ex__", made.__reduce_ex__, protocol)
        for attribute in sorted(set(dir(cls)) - {"__class__", "__doc__", "__module__", "__dict__"}):
            label = f"{name}.{attribute}"
            value = self.attempt(f"get {label}", getattr, made, attribute)
            if callable(value) and not isinstance(value, (type, Exception, Anything)):
                self.poke_method(label, value, attribute, cls)
                continue
            for given in (*VALUES, made, value):
                self.attempt(f"set {label}", setattr, made, attribute, given)
                self.attempt(f"get {label}", getattr, made, attribute)
            if not isinstance(value, Exception):
                self.attempt(f"set {label}", setattr, made, attribute, value)
        for label, function in OPERATIONS.items():
            self.attempt(f"{label} {name}", function, made)
        for attribute in sorted(set(dir(cls))):
            if not attribute.startswith("__"):
                self.attempt(f"del {name}.{attribute}", delattr, made, attribute)

    def poke_method(self, label: str, method: Any, attribute: str, cls: type) -> None:
        if attribute in {
            "__subclasshook__",
            "__init_subclass__",
            "__new__",
            "__reduce_ex__",
            "__sizeof__",
            "__dir__",
        }:
            return
        given = WAITING.get(f"{cls.__name__}.{attribute}")
        if given is None:
            given = [()]
            given += [(value,) * count for value in VALUES for count in range(1, 5)]
            given += [
                tuple(self.random.choice(VALUES) for _ in range(self.random.randint(1, 7))) for _ in range(20)
            ]
        for args in given:
            self.attempt(label, method, *args)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "repr": repr, "len": len, "iter": lambda made: list(zip(made, range(5), strict=False)), "hash": hash,
    "bool": bool, "buffer": lambda made: bytes(memoryview(made)), "bytes": bytes,
    "item": lambda made: made[0],
    "last": lambda made: made[-1], "far": lambda made: made[2**62], "equal": lambda made: made == made,
    "less": lambda made: made < made, "contains": lambda made: None in made, "call": lambda made: made(),
    "arrow": pa.record_batch, "columns": pa.array,
}  # fmt: skip


def attributes_of(made: object) -> dict[str, Any]:
    """Return the public attributes that are not methods."""
    found = {name: getattr(made, name) for name in dir(made) if not name.startswith("_")}
    return {name: value for name, value in found.items() if not callable(value)}


def compiled_modules() -> Iterator[ModuleType]:
    """Return all compiled modules of the package."""
    for info in pkgutil.walk_packages(kafkacore.__path__, "kafkacore."):
        if "__main__" not in info.name:
            spec = importlib.util.find_spec(info.name)
            if spec is not None and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
                yield importlib.import_module(info.name)


def extension_classes() -> list[type]:
    """Return all classes that compiled modules of the package define."""
    return [
        each for module in compiled_modules() for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and not each.__flags__ & HEAP_TYPE
    ]  # fmt: skip


def main() -> int:
    faulthandler.enable()
    faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
    warnings.simplefilter("ignore")
    logging.disable()
    # Ignore exceptions from finalizers, which are not tested here.
    sys.unraisablehook = lambda unraisable: None
    poker = Poker(Path(sys.argv[1]))
    classes = extension_classes()
    wanted = sys.argv[2:]
    output = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryFile():
        for cls in classes:
            if not wanted or cls.__name__ in wanted:
                poker.poke_class(cls)
        for module in () if wanted else compiled_modules():
            for name, function in vars(module).items():
                is_own = getattr(function, "__module__", None) == module.__name__
                if (
                    is_own
                    and callable(function)
                    and not isinstance(function, type)
                    and name not in NOT_CALLED
                ):
                    poker.poke_method(f"{module.__name__}.{name}", function, name, object)
    print(f"{len(classes)} classes, {poker.calls} calls", file=output)
    for line in poker.wrong:
        print(line, file=output)
    return 1 if poker.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
