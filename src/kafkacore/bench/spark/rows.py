"""The rows of the table: what is measured, and each side's query.

A :class:`Place` in, a :class:`~kafkacore.bench.spark.job.Job` for each side out. Does not know: rounds, how a
job is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafkacore.bench.spark.job import COLLECT, RANGE, Job

OURS, THEIRS, THEIRS_TUNED = "kafkacore", "spark-kafka", "spark-kafka-tuned"
#: Whole files by Spark's own reader, decoded by what there is without us, or by our own record package.
BINARY, BINARY_OURS = "binaryFile-aiokafka", "binaryFile-kafkacore"

#: What one sets for throughput in Spark's own source, and in its sink.
TUNED_SOURCE = {
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": str(100 << 20),
    "kafka.max.partition.fetch.bytes": str(16 << 20),
}
TUNED_SINK = {"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)}
ROWS_A_TRIGGER = 1_000_000
#: What costs many times as much as a plain read has so much fewer records; ``binaryFile`` holds ten times a
#: segment file's bytes in memory.
FEWER = {"json": 2, "none": 2, "segments": 2}
#: Records a trigger of the row that has the smallest, and how many triggers.
SMALLEST_TRIGGER = 2
TRIGGERS = 50
#: Every column of every row, whatever the order: the sides must agree. Below what a sum of many may reach.
CHECK = ("count(*)", "coalesce(sum(xxhash64(*) % 1000000007), 0)")


@dataclass(frozen=True)
class Place:
    """Where a row's records are, or go."""

    bootstrap: str
    topic: str
    records: int
    #: Takes files.
    folder: str
    #: Of the JSON in the values, in Spark's DDL.
    json_schema: str = ""
    #: Folder of the topic's log segments.
    segments: str = ""
    times: int = 1
    rows_a_trigger: int = ROWS_A_TRIGGER
    #: Bytes of a value, on the average.
    size: int = 100

    def source(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Options of both sources."""
        given = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.topic}
        return given | {"startingOffsets": "earliest"} | (more or {})


Jobs = dict[str, Job]


@dataclass(frozen=True)
class Row:
    """What is measured."""

    what: str
    #: Name of a side → its job; ours is first.
    jobs: Callable[[Place], Jobs]
    #: Kind of records that are read: ``plain``, ``json``, ``large``, ``few``, ``segments``, or ``none``.
    reads: str = "plain"
    #: Side → how much less CPU (or time, of the smallest trigger) ours should need.
    goals: dict[str, float] = field(default_factory=dict)
    #: Before the clock starts, all sides must have read the same.
    is_checked: bool = True


def _sources(base: Job) -> Jobs:
    """Ours, Spark's own, and that one tuned."""
    theirs = replace(base, source="kafka")
    return {
        OURS: base,
        THEIRS: theirs,
        THEIRS_TUNED: replace(theirs, options=theirs.options | TUNED_SOURCE),
    }


def _read(place: Place) -> Jobs:
    return _sources(Job("kafkacore", place.source()))


def _schema(place: Place) -> Jobs:
    jobs = _sources(Job("kafkacore", place.source()))
    ours = replace(jobs[OURS], schema="key binary, value binary")
    return {name: replace(job, selects=(("key", "value"),)) for name, job in jobs.items()} | {OURS: ours}


def _stream(place: Place) -> Jobs:
    options = place.source({"maxOffsetsPerTrigger": str(place.rows_a_trigger)})
    return _sources(Job("kafkacore", options, is_streaming=True))


def _trigger(place: Place) -> Jobs:
    options = place.source({"maxOffsetsPerTrigger": str(SMALLEST_TRIGGER)})
    jobs = _sources(Job("kafkacore", options, is_streaming=True))
    return {name: jobs[name] for name in (OURS, THEIRS)}


def _json(place: Place) -> Jobs:
    ours = Job("kafkacore", place.source({"value.format": "json"}), schema=place.json_schema)
    parse = (f"from_json(CAST(value AS STRING), '{place.json_schema}') AS parsed",)
    theirs = Job("kafka", place.source(), selects=(parse, ("parsed.*",)))
    # Tuned or not is the same here: what costs is the parsing.
    return {OURS: ours, THEIRS: theirs}


def _json_parquet(place: Place) -> Jobs:
    sink = {"path": f"{place.folder}/parquet"}
    return {name: replace(job, sink="parquet", sink_options=sink) for name, job in _json(place).items()}


def _write(place: Place) -> Jobs:
    # A constant, which costs Spark nothing to make: the sinks are measured, not functions on text.
    value = f"CAST(rpad('', {place.size}, 'kafkacore') AS BINARY) AS value"
    select = ("CAST(CAST(id AS STRING) AS BINARY) AS key", value)
    sink = {"kafka.bootstrap.servers": place.bootstrap, "topic": place.topic}
    base = Job(RANGE, selects=(select,), rows=place.records, sink="kafkacore", sink_options=sink)
    theirs = replace(base, sink="kafka")
    return {OURS: base, THEIRS: theirs, THEIRS_TUNED: replace(theirs, sink_options=sink | TUNED_SINK)}


def _log(place: Place) -> Jobs:
    # Not all that is called so: the broker's own log lies there too.
    files = {"path": f"{place.segments}/{place.topic}-*/*.log"}
    return {
        OURS: Job("kafkacore-log", {"path": place.segments}),
        BINARY: Job("binaryFile", files, exploded_by="aiokafka"),
        BINARY_OURS: Job("binaryFile", files, exploded_by="kafkacore"),
    }


def _memory(place: Place) -> Jobs:
    return {OURS: Job("kafkacore", place.source(), times=place.times)}


def check_of(job: Job) -> Job:
    """The same rows, counted and summed up."""
    return replace(job, sink=COLLECT, sink_options={}, is_streaming=False, selects=(*job.selects, CHECK))


#: In the order of the table.
ROWS: dict[str, Row] = {
    "read": Row("7 columns to the noop sink", _read, goals={THEIRS: 1.8, THEIRS_TUNED: 1.3}),
    "schema": Row("key and value by schema", _schema, goals={THEIRS_TUNED: 1.7}),
    "stream": Row("streaming, 1 M rows a trigger", _stream, goals={THEIRS: 1.5}, is_checked=False),
    "json": Row("JSON to typed columns", _json, "json", goals={THEIRS: 2.5}),
    "json-parquet": Row(
        "JSON to typed columns to Parquet", _json_parquet, "json", goals={THEIRS: 1.8}, is_checked=False
    ),
    "write": Row("write key and value", _write, "none", goals={THEIRS: 3.0}, is_checked=False),
    "log": Row("log segment files to rows", _log, "segments", goals={BINARY: 5.0}),
    "trigger": Row("2 rows a trigger", _trigger, "few", goals={THEIRS: 1.0}, is_checked=False),
    "memory": Row("memory of a worker", _memory, "large", is_checked=False),
}
