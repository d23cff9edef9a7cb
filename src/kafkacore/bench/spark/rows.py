"""The rows of the result table. A row compares several sides, each with its own query.

The sides are kafkacore and, for example, Spark's own source with default or with tuned settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafkacore.bench.spark.job import COLLECT, RANGE, Job

OURS, THEIRS, THEIRS_TUNED = "kafkacore", "spark-kafka", "spark-kafka-tuned"
#: Whole files from Spark's ``binaryFile`` source, decoded with aiokafka or with kafkacore's record package.
BINARY, BINARY_OURS = "binaryFile-aiokafka", "binaryFile-kafkacore"

#: Settings for throughput of Spark's own source and sink.
TUNED_SOURCE = {
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": str(100 << 20),
    "kafka.max.partition.fetch.bytes": str(16 << 20),
}
TUNED_SINK = {"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)}
ROWS_A_TRIGGER = 1_000_000
#: Kind of records → divisor of the number of records. These kinds cost much more than a plain read, and
#: ``binaryFile`` also needs ten times as much memory as the size of a segment file.
FEWER = {"json": 2, "none": 2, "segments": 2}
#: Records per trigger, and number of triggers, in the row ``trigger``.
SMALLEST_TRIGGER = 2
TRIGGERS = 50
#: Row count and order-independent checksum of all columns, on which all sides must agree. The modulo prevents
#: an overflow of the sum.
CHECK = ("count(*)", "coalesce(sum(xxhash64(*) % 1000000007), 0)")


@dataclass(frozen=True)
class Place:
    """Location and properties of the records that the jobs of a row process."""

    bootstrap: str
    topic: str
    records: int
    #: Directory for the files that jobs write.
    folder: str
    #: Schema of the JSON values, in Spark's DDL.
    json_schema: str = ""
    #: Directory of the topic's log segments.
    segments: str = ""
    times: int = 1
    rows_a_trigger: int = ROWS_A_TRIGGER
    #: Average bytes of a value.
    size: int = 100

    def source(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Return the options for kafkacore's source and for Spark's own source."""
        given = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.topic}
        return given | {"startingOffsets": "earliest"} | (more or {})


Jobs = dict[str, Job]


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    what: str
    #: Function that returns the job of each side, kafkacore first.
    jobs: Callable[[Place], Jobs]
    #: Kind of records that are read: ``plain``, ``json``, ``large``, ``few``, ``segments``, or ``none``.
    reads: str = "plain"
    #: Side → factor by which kafkacore should need less CPU time than this side. In the row ``trigger``, the
    #: factor compares the wall time instead.
    goals: dict[str, float] = field(default_factory=dict)
    #: Whether to check before the measurement that all sides read the same records.
    is_checked: bool = True


def _sources(base: Job) -> Jobs:
    """Return the jobs of kafkacore, of Spark's own source, and of Spark's own source with tuned settings."""
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
    # Do not measure Spark's own source with tuned settings: parsing dominates, so the cost is the same.
    return {OURS: ours, THEIRS: theirs}


def _json_parquet(place: Place) -> Jobs:
    sink = {"path": f"{place.folder}/parquet"}
    return {name: replace(job, sink="parquet", sink_options=sink) for name, job in _json(place).items()}


def _write(place: Place) -> Jobs:
    # The value is a constant that Spark computes once, so that only the sinks are measured.
    value = f"CAST(rpad('', {place.size}, 'kafkacore') AS BINARY) AS value"
    select = ("CAST(CAST(id AS STRING) AS BINARY) AS key", value)
    sink = {"kafka.bootstrap.servers": place.bootstrap, "topic": place.topic}
    base = Job(RANGE, selects=(select,), rows=place.records, sink="kafkacore", sink_options=sink)
    theirs = replace(base, sink="kafka")
    return {OURS: base, THEIRS: theirs, THEIRS_TUNED: replace(theirs, sink_options=sink | TUNED_SINK)}


def _log(place: Place) -> Jobs:
    # The pattern excludes the broker's own log file, which is in the same directory.
    files = {"path": f"{place.segments}/{place.topic}-*/*.log"}
    return {
        OURS: Job("kafkacore-log", {"path": place.segments}),
        BINARY: Job("binaryFile", files, exploded_by="aiokafka"),
        BINARY_OURS: Job("binaryFile", files, exploded_by="kafkacore"),
    }


def _memory(place: Place) -> Jobs:
    return {OURS: Job("kafkacore", place.source(), times=place.times)}


def check_of(job: Job) -> Job:
    """Return a job that computes :data:`CHECK` over the rows of another job."""
    return replace(job, sink=COLLECT, sink_options={}, is_streaming=False, selects=(*job.selects, CHECK))


#: The rows by name, in the order of the table.
ROWS: dict[str, Row] = {
    "read": Row("7 columns to the noop sink", _read, goals={THEIRS: 1.8, THEIRS_TUNED: 1.3}),
    "schema": Row("key and value by schema", _schema, goals={THEIRS_TUNED: 1.7}),
    "stream": Row("streaming, 1 M rows per trigger", _stream, goals={THEIRS: 1.5}, is_checked=False),
    "json": Row("JSON to typed columns", _json, "json", goals={THEIRS: 2.5}),
    "json-parquet": Row(
        "JSON to typed columns to Parquet", _json_parquet, "json", goals={THEIRS: 1.8}, is_checked=False
    ),
    "write": Row("write key and value", _write, "none", goals={THEIRS: 3.0}, is_checked=False),
    "log": Row("log segment files to rows", _log, "segments", goals={BINARY: 5.0}),
    "trigger": Row("2 rows per trigger", _trigger, "few", goals={THEIRS: 1.0}, is_checked=False),
    "memory": Row("memory of a worker", _memory, "large", is_checked=False),
}
