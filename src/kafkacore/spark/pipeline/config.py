"""What a job is: which topic, what its values are, where they go. Checked as it is made, before Spark is
started. Does not know: Spark, how any of it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import all_columns
from kafkacore.spark.options.values import refuse_unknown
from kafkacore.spark.pipeline.aggregate import Aggregate
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.sink.options import parse_sink_options
from kafkacore.spark.typed.options import BINARY, FORMATS, MODES, SCALAR_TYPES, STRUCTURED

#: The trigger that reads what is there, in as many batches as it takes, and ends.
AVAILABLE_NOW = "available-now"
#: Columns of the source that may be kept beside the parsed ones.
KAFKA_COLUMNS: tuple[str, ...] = all_columns(include_headers=True)
#: "raw" keeps the bytes as they are; the others are the source's own.
VALUE_FORMATS = ("raw", *(name for name in FORMATS if name != BINARY))
KEY_FORMATS = ("raw", *SCALAR_TYPES)
#: Options that tell how values in Avro were written.
AVRO_SCHEMAS = {"value.schema", "schema.registry.url", "value.schema.registry.url"}
#: A batch of a Delta table passes through the driver's memory: so many records each, unless told otherwise.
DELTA_BATCH_OFFSETS = 250_000
CONSOLE_ROWS = 20
DELTA_OPTIONS = ("mergeSchema", "storage.*")


@dataclass(frozen=True)
class ParquetSink:
    """A folder of Parquet files, each record in it exactly once.

    Parameters
    ----------
    path:
        The folder.
    partition_by:
        Columns that become folders of it.
    """

    path: Path
    partition_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Where it goes, for people."""
        return self.path.name

    def check(self) -> None:
        """All is well: nothing to refuse."""


@dataclass(frozen=True)
class DeltaSink:
    """A Delta table, each record in it exactly once; written by the package deltalake, without a JAR.

    Parameters
    ----------
    path:
        Folder or URL (``s3://…``) of the table; it is made if there is none.
    partition_by:
        Columns that a new table is divided by.
    options:
        ``mergeSchema``, and settings of the storage as ``storage.NAME``; references to secrets are resolved.
    """

    path: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """Where it goes, for people."""
        return self.path.rstrip("/").rpartition("/")[2]

    def check(self) -> None:
        """Refuse options that there are not."""
        refuse_unknown(
            {name.lower(): text for name, text in self.options.items() if not name.startswith("storage.")},
            DELTA_OPTIONS,
        )


@dataclass(frozen=True)
class KafkaSink:
    """A topic: the columns key, value, headers and timestamp; all columns as JSON if there is no ``value``.

    Parameters
    ----------
    bootstrap_servers, topic:
        Where it is.
    exactly_once:
        Write in transactions (Apache Kafka only): each record is in the topic once, for who reads committed.
    options:
        Further options of the sink, such as ``kafka.compression.type``.
    """

    bootstrap_servers: str
    topic: str
    exactly_once: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """Where it goes, for people."""
        return self.topic

    def check(self) -> None:
        """Refuse what the sink would."""
        parse_sink_options(self.sink_options(), streaming=True)

    def sink_options(self) -> dict[str, str]:
        """What the sink is given."""
        given = {"kafka.bootstrap.servers": self.bootstrap_servers, "topic": self.topic}
        return {**given, **({"exactly.once": "true"} if self.exactly_once else {}), **self.options}


@dataclass(frozen=True)
class ConsoleSink:
    """The first rows of each batch, on standard output.

    Parameters
    ----------
    rows:
        How many of each batch.
    as_json:
        A line of JSON each, instead of a table.
    """

    rows: int = CONSOLE_ROWS
    as_json: bool = False

    @property
    def label(self) -> str:
        """Where it goes, for people."""
        return "console"

    def check(self) -> None:
        """Refuse a number of rows that shows none."""
        if self.rows < 1:
            raise KafkaConfigurationError(f"the console shows at least one row of a batch, not {self.rows}")


Sink = ParquetSink | DeltaSink | KafkaSink | ConsoleSink


@dataclass(frozen=True)
class PipelineConfig:
    """What to read, how to parse it, and where it goes.

    Parameters
    ----------
    bootstrap_servers:
        ``host:port[,host:port…]``.
    topic:
        Topic, or comma-separated topics.
    sink:
        Where it goes.
    checkpoint:
        Folder of the checkpoint: the job goes on from there, and a second run adds nothing.
    value_format:
        What the values are: one of :data:`VALUE_FORMATS`. Of json and avro the fields become the columns;
        otherwise the columns are Kafka's.
    key_format:
        What the keys are: one of :data:`KEY_FORMATS`.
    schema:
        Spark DDL of a structured value's fields, such as ``"id BIGINT, name STRING"``.
    mode:
        What becomes of values that cannot be decoded: FAILFAST ends the job, DROPMALFORMED leaves them out,
        PERMISSIVE gives nulls (and the bytes in a column ``_corrupt_record`` if the schema has it).
    derive:
        Further columns: name and SQL expression, applied in order; a name that exists is replaced.
    keep:
        Kafka columns to keep beside the fields (see :data:`KAFKA_COLUMNS`); of values without fields, all but
        the value and these are left out.
    trigger:
        "available-now", or an interval such as "10 seconds".
    options:
        Further options of the source, such as ``maxOffsetsPerTrigger`` or ``kafka.security.protocol``; a
        secret is best named by reference (:mod:`kafkacore.spark.secrets`).
    """

    bootstrap_servers: str
    topic: str
    sink: Sink
    checkpoint: Path
    value_format: str = "json"
    key_format: str = "raw"
    schema: str | None = None
    mode: str = "FAILFAST"
    derive: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()
    trigger: str = AVAILABLE_NOW
    starting_offsets: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    aggregate: Aggregate | None = None

    def __post_init__(self) -> None:
        self._check_format()
        if unknown := [name for name in self.keep if name not in KAFKA_COLUMNS]:
            raise KafkaConfigurationError(
                f"Kafka has no column {', '.join(unknown)} to keep: choose among {', '.join(KAFKA_COLUMNS)}"
            )
        if self.aggregate is not None:
            if self.trigger != AVAILABLE_NOW:
                raise KafkaConfigurationError(
                    "an aggregate is computed when the stream ends: use available-now"
                )
            if not isinstance(self.sink, ParquetSink):
                raise KafkaConfigurationError("an aggregate is computed from Parquet: use the sink parquet")
        self.sink.check()
        parse_options(self.source_options(), streaming=True)  # says now what Spark would say after its start

    def _check_format(self) -> None:
        for side, chosen, known in (
            ("format", self.value_format, VALUE_FORMATS),
            ("key format", self.key_format, KEY_FORMATS),
            ("mode", self.mode, MODES),
        ):
            if chosen not in known:
                raise KafkaConfigurationError(f"{side} {chosen} is none of {', '.join(known)}")
        given = {name.lower() for name in self.options}
        if self.value_format == "json" and not self.schema and "value.schema" not in given:
            raise KafkaConfigurationError(
                'format json needs a schema in Spark\'s DDL, such as "id BIGINT, name STRING"'
            )
        if self.value_format == "avro" and not given & AVRO_SCHEMAS:
            raise KafkaConfigurationError(
                "format avro needs the schema that the values were written with: its JSON in the option "
                "value.schema, or the option schema.registry.url where each value names its own"
            )
        if self.schema and not self.structured:
            as_they_are = "keeps the bytes as they are" if self.value_format == "raw" else "has no fields"
            raise KafkaConfigurationError(f"format {self.value_format} {as_they_are}: leave out the schema")

    @property
    def structured(self) -> bool:
        """Values have fields, which become the columns."""
        return self.value_format in STRUCTURED

    def source_options(self) -> dict[str, str]:
        """What the source is given."""
        given = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topic,
            "startingOffsets": self.starting_offsets,
        }
        for side, chosen in (("key", self.key_format), ("value", self.value_format)):
            if chosen != "raw":
                given |= {f"{side}.format": chosen, "mode": self.mode}
        if "headers" in self.keep:
            given["includeHeaders"] = "true"
        if isinstance(self.sink, DeltaSink):
            given["maxOffsetsPerTrigger"] = str(DELTA_BATCH_OFFSETS)
        overridden = {name.lower() for name in self.options}
        return {n: text for n, text in given.items() if n.lower() not in overridden} | dict(self.options)
