"""Configuration of a job: topic, format of the values, and sink.

A configuration is checked when it is created, before Spark is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkacore.decode.formats import BINARY, FORMATS, MODES, STRUCTURED
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import all_columns
from kafkacore.spark.options.values import refuse_unknown
from kafkacore.spark.pipeline.aggregate import Aggregate
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.sink.options import parse_sink_options
from kafkacore.spark.typed.options import SCALAR_TYPES

#: Trigger that reads all records available at the start, in one or more batches, and then ends.
AVAILABLE_NOW = "available-now"
#: Columns of the source that can be kept in addition to the fields of the value.
KAFKA_COLUMNS: tuple[str, ...] = all_columns(include_headers=True)
#: Formats of the value and the key. "raw" keeps the bytes; the other formats are those of the source.
VALUE_FORMATS = ("raw", *(name for name in FORMATS if name != BINARY))
KEY_FORMATS = ("raw", *SCALAR_TYPES)
#: Options that define the schema of Avro values.
AVRO_SCHEMAS = {"value.schema", "schema.registry.url", "value.schema.registry.url"}
#: Default number of offsets in a batch for a Delta table, because each batch passes through the driver's
#: memory.
DELTA_BATCH_OFFSETS = 250_000
CONSOLE_ROWS = 20
DELTA_OPTIONS = ("mergeSchema", "storage.*")


@dataclass(frozen=True)
class ParquetSink:
    """Sink that writes each record exactly once to a directory of Parquet files.

    Parameters
    ----------
    path:
        The directory.
    partition_by:
        Columns to partition by. Each value has its own subdirectory.
    """

    path: Path
    partition_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Short name of the destination, for messages."""
        return self.path.name

    def check(self) -> None:
        """Accept every configuration."""


@dataclass(frozen=True)
class DeltaSink:
    """Sink that writes each record exactly once to a Delta table, with the package deltalake.

    Parameters
    ----------
    path:
        Directory or URL (``s3://…``) of the table. The table is created if it does not exist.
    partition_by:
        Columns to partition a new table by.
    options:
        ``mergeSchema``, and settings of the storage as ``storage.NAME``. References to secrets are resolved.
    """

    path: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """Short name of the destination, for messages."""
        return self.path.rstrip("/").rpartition("/")[2]

    def check(self) -> None:
        """Raise KafkaConfigurationError for an unknown option."""
        refuse_unknown(
            {name.lower(): text for name, text in self.options.items() if not name.startswith("storage.")},
            DELTA_OPTIONS,
        )


@dataclass(frozen=True)
class KafkaSink:
    """Sink that writes the columns key, value, headers and timestamp to a topic.

    Without a column ``value``, all columns are written as JSON.

    Parameters
    ----------
    bootstrap_servers, topic:
        Brokers and name of the topic.
    exactly_once:
        Whether to write in transactions, so that consumers with read_committed get each record once.
    options:
        Further options of the sink, such as ``kafka.compression.type``.
    """

    bootstrap_servers: str
    topic: str
    exactly_once: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """Short name of the destination, for messages."""
        return self.topic

    def check(self) -> None:
        """Raise KafkaConfigurationError for options that the sink does not accept."""
        parse_sink_options(self.sink_options(), streaming=True)

    def sink_options(self) -> dict[str, str]:
        """Return the options of the sink."""
        given = {"kafka.bootstrap.servers": self.bootstrap_servers, "topic": self.topic}
        return {**given, **({"exactly.once": "true"} if self.exactly_once else {}), **self.options}


@dataclass(frozen=True)
class ConsoleSink:
    """Sink that prints the first rows of each batch on standard output.

    Parameters
    ----------
    rows:
        Maximum number of rows per batch.
    as_json:
        Whether to print one line of JSON per row instead of a table.
    """

    rows: int = CONSOLE_ROWS
    as_json: bool = False

    @property
    def label(self) -> str:
        """Short name of the destination, for messages."""
        return "console"

    def check(self) -> None:
        """Raise KafkaConfigurationError if the number of rows is less than 1."""
        if self.rows < 1:
            raise KafkaConfigurationError(f"the console sink needs at least 1 row per batch, not {self.rows}")


Sink = ParquetSink | DeltaSink | KafkaSink | ConsoleSink


@dataclass(frozen=True)
class PipelineConfig:
    """Configuration of a job.

    Parameters
    ----------
    bootstrap_servers:
        Brokers, as ``host:port[,host:port…]``.
    topic:
        Topic, or comma-separated topics.
    sink:
        Where to write.
    checkpoint:
        Directory of the checkpoint. A second run continues from the checkpoint and does not repeat records.
    value_format:
        Format of the values, one of :data:`VALUE_FORMATS`. With json and avro, the fields of the value become
        the columns. With other formats, the columns are Kafka's.
    key_format:
        Format of the keys, one of :data:`KEY_FORMATS`.
    schema:
        Fields of a json or avro value in Spark's DDL, such as ``"id BIGINT, name STRING"``.
    mode:
        Treatment of values that cannot be decoded. FAILFAST fails the job. DROPMALFORMED skips the record.
        PERMISSIVE sets the record's columns to null. If the schema has the column ``_corrupt_record``,
        PERMISSIVE also stores the malformed bytes in that column.
    derive:
        Additional columns: name and SQL expression, applied in order. An existing column is replaced.
    keep:
        Kafka columns to keep in addition to the fields (see :data:`KAFKA_COLUMNS`). For values without
        fields, only the value and these columns are read.
    trigger:
        "available-now", or an interval such as "10 seconds".
    starting_offsets:
        Option ``startingOffsets`` of the source, for a job without a checkpoint.
    options:
        Further options of the source, such as ``maxOffsetsPerTrigger`` or ``kafka.security.protocol``.
        Secrets should be references (see :mod:`kafkacore.spark.secrets`).
    aggregate:
        Table to compute from the Parquet sink when the stream has ended.
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
                f"cannot keep {', '.join(unknown)}: the Kafka columns are {', '.join(KAFKA_COLUMNS)}"
            )
        if self.aggregate is not None:
            if self.trigger != AVAILABLE_NOW:
                raise KafkaConfigurationError(
                    "an aggregate is computed when the stream ends: use the trigger available-now"
                )
            if not isinstance(self.sink, ParquetSink):
                raise KafkaConfigurationError("an aggregate is computed from Parquet: use the sink parquet")
        self.sink.check()
        parse_options(self.source_options(), streaming=True)  # raise errors before Spark is started

    def _check_format(self) -> None:
        for side, chosen, known in (
            ("format", self.value_format, VALUE_FORMATS),
            ("key format", self.key_format, KEY_FORMATS),
            ("mode", self.mode, MODES),
        ):
            if chosen not in known:
                raise KafkaConfigurationError(f"{side} must be one of {', '.join(known)}, not {chosen}")
        given = {name.lower() for name in self.options}
        if self.value_format == "json" and not self.schema and "value.schema" not in given:
            raise KafkaConfigurationError(
                'format json needs a schema in Spark\'s DDL, such as "id BIGINT, name STRING"'
            )
        if self.value_format == "avro" and not given & AVRO_SCHEMAS:
            raise KafkaConfigurationError(
                "format avro needs the schema that the values were written with: set the option value.schema "
                "to its JSON, or schema.registry.url if the values contain schema ids"
            )
        if self.schema and not self.structured:
            raise KafkaConfigurationError(f"format {self.value_format} has no fields: remove the schema")

    @property
    def structured(self) -> bool:
        """Whether values have fields, which become the columns."""
        return self.value_format in STRUCTURED

    def source_options(self) -> dict[str, str]:
        """Return the options of the source."""
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
