"""Decode the columns that ``poll_arrow()`` returns to a table with typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkacore.decode.formats import CORRUPT_RECORD, Side, chosen_mode, new_decoder
from kafkacore.decode.kafka_columns import Column
from kafkacore.decode.typed_batches import Origin, TypedBatches, fields_to_decode, in_parts
from kafkacore.errors import KafkaConfigurationError
from kafkacore.frames.side_format import SideFormat, checked_options, side_format
from kafkacore.structs import TopicPartition
from kafkacore.text import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowField
    from kafkacore.record import RecordColumns

#: Unit and time zone of the timestamp column, as arguments of ``poll_arrow()``.
TIMESTAMP_UNIT: Final = "ms"
TIMEZONE: Final = "UTC"


class RecordDecoder:
    """Decodes the columns that ``poll_arrow()`` returns to tables with typed columns.

    Create it once, and call :meth:`table` after each poll. It keeps the compiled decoders and the schemas of
    the schema registry. Only one thread at a time may use it.

    Parameters
    ----------
    key_format, value_format:
        ``binary``, ``string``, ``long``, ``integer``, ``short``, ``double``, ``float``, ``boolean``,
        ``uuid``, ``json`` or ``avro``. The numbers are those of Kafka's Java serializers.
    schema:
        Fields of a value in JSON or Avro, as a ``pyarrow.Schema``. Fields are found by name, and other fields
        are ignored. For Avro without a schema registry, the Avro schema in JSON. For Avro with a schema
        registry, it may be omitted if ``format_options`` has ``value.subject``.
    key_schema:
        The same for keys.
    columns:
        Names of the columns of the table, in order. By default, all columns except ``timestamp_type``, the
        raw value of a flattened one, and ``_corrupt_record``.
    flatten:
        Whether the fields of a JSON or Avro value are columns of the table. The names of Kafka's columns then
        start with an underscore (``_offset``), because values often have fields such as ``timestamp``. If
        false, ``value`` is a struct.
    mode:
        Treatment of a record whose key or value cannot be decoded. ``PERMISSIVE`` sets the malformed columns
        to null, and the column ``_corrupt_record``, if it is one of ``columns``, has the raw bytes.
        ``DROPMALFORMED`` skips the record. ``FAILFAST`` raises an error with topic, partition and offset.
    format_options:
        Options of the JSON decoder and of the schema registry, with the names of the Spark source, such as
        ``schema.registry.url`` and ``timestampFormat``. A name may have the prefix ``key.`` or ``value.``.

    Attributes
    ----------
    schema:
        Schema of the tables.
    fetched:
        Columns that ``poll_arrow()`` must return. Its argument ``columns`` limits it to these.

    Raises
    ------
    ModuleNotFoundError
        pyarrow is not installed.
    KafkaConfigurationError
        An argument is invalid.
    SchemaRegistryError
        The schema registry did not respond.
    """

    def __init__(
        self,
        *,
        key_format: str = "binary",
        value_format: str = "binary",
        schema: pa.Schema | str | None = None,
        key_schema: pa.Schema | str | None = None,
        columns: Sequence[str] | None = None,
        flatten: bool = True,
        mode: str = "PERMISSIVE",
        format_options: Mapping[str, object] | None = None,
    ) -> None:
        _require_pyarrow()
        import pyarrow as pa

        chosen = chosen_mode(mode)
        options = checked_options(format_options or {})
        sides: dict[Side, SideFormat] = {
            "key": side_format("key", key_format, key_schema, options),
            "value": side_format("value", value_format, schema, options),
        }
        available, default = _columns(sides["key"], sides["value"], flatten)
        names = default if columns is None else _checked_names(columns, available)
        fields, origins = [available[name][0] for name in names], [available[name][1] for name in names]
        numbers = iter(range(len(origins)))
        origins = [each._replace(at=next(numbers)) if each.kind == "field" else each for each in origins]
        self.schema: pa.Schema = pa.schema(fields)
        formats: dict[Side, str] = {side: each.format for side, each in sides.items()}
        needed = fields_to_decode(self.schema, origins, formats, chosen)
        self._batches = TypedBatches(
            self.schema,
            origins,
            {
                side: new_decoder(formats[side], wanted, sides[side].options, side)
                for side, wanted in needed.items()
            },
            [side for side in needed if sides[side].structured],
            chosen,
        )
        self.fetched: tuple[str, ...] = self._batches.fetched

    def __repr__(self) -> str:
        return f"<RecordDecoder {', '.join(self.schema.names)}>"

    def table(self, polled: Mapping[TopicPartition, RecordColumns]) -> pa.Table:
        """Return a table of the records, in the order of topics, partitions and offsets.

        Parameters
        ----------
        polled:
            Result of ``poll_arrow()``, with at least the columns ``fetched``.

        Raises
        ------
        MalformedRecordError
            A record cannot be decoded, and ``mode`` is ``FAILFAST``.
        ValueError
            ``polled`` lacks a column.
        SchemaRegistryError
            The schema registry did not respond.
        """
        import pyarrow as pa

        batches = [batch for tp in sorted(polled) for batch in self.batches(tp, polled[tp])]
        return pa.Table.from_batches(batches, schema=self.schema)

    def batches(self, partition: TopicPartition, columns: RecordColumns) -> list[pa.RecordBatch]:
        """Return the records of one partition as record batches, of which there is usually one.

        Parameters
        ----------
        partition:
            Topic and partition.
        columns:
            Columns of the partition in the result of ``poll_arrow()``.

        Raises
        ------
        MalformedRecordError, ValueError, SchemaRegistryError
            As in :meth:`table`.
        """
        import pyarrow as pa

        found = pa.record_batch(columns)
        lacking = [name for name in self.fetched if name not in found.schema.names]
        if lacking:
            raise ValueError(
                f"poll_arrow() did not return the column {lacking[0]}, which the decoder needs: pass "
                f"columns={self.fetched}"
            )
        if "timestamp" in self.fetched:
            at, wanted = found.schema.get_field_index("timestamp"), pa.timestamp(TIMESTAMP_UNIT, tz=TIMEZONE)
            if found.schema.field(at).type != wanted:
                found = found.set_column(at, "timestamp", found.column(at).cast(wanted))
        topic, number = partition
        return list(in_parts(lambda part: self._batches.batch(part, topic, number), found))


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "tables of records need pyarrow: run pip install 'kafkacore[arrow]'", name=error.name
        ) from error


def _columns(
    key: SideFormat, value: SideFormat, flatten: bool
) -> tuple[dict[str, tuple[ArrowField, Origin]], list[str]]:
    """Return the available columns by name, and the names of the default columns."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    flat = flatten and value.structured
    prefix = "_" if flat else ""
    kafka: list[tuple[str, pa.DataType, Column]] = [
        ("topic", pa.string(), "topic"),
        ("partition", pa.int32(), "partition"),
        ("offset", pa.int64(), "offset"),
        ("timestamp", pa.timestamp(TIMESTAMP_UNIT, tz=TIMEZONE), "timestamp"),
        ("timestamp_type", pa.int32(), "timestampType"),
        ("key", key.type, "key"),
        ("value", pa.binary() if flat else value.type, "value"),
        ("headers", pa.list_(pa.field("element", header)), "headers"),
    ]
    whole = {side for side, of_side in (("key", key), ("value", value)) if of_side.format != "binary"}
    if flat:
        whole.discard("value")
    available: dict[str, tuple[ArrowField, Origin]] = {
        prefix + name: (pa.field(prefix + name, kind), Origin("whole" if name in whole else "kafka", column))
        for name, kind, column in kafka
    }
    available[CORRUPT_RECORD] = pa.field(CORRUPT_RECORD, pa.binary()), Origin("corrupt", "value")
    optional = {prefix + "timestamp_type", CORRUPT_RECORD, "_value"}
    default = [name for name in available if name not in optional]
    if not flat:
        return available, default
    for field in value.fields:
        if field.name in available:
            raise KafkaConfigurationError(
                f"field {field.name} of the value has the name of another column: set flatten=False, or "
                f"leave the field out of the schema"
            )
        available[field.name] = field, Origin("field", "value")
    default[-1:-1] = value.fields.names
    return available, default


def _checked_names(columns: Sequence[str], available: Mapping[str, object]) -> list[str]:
    names = list(columns)
    for name in names:
        if name not in available:
            hint = did_you_mean(name, available, f"choose among {', '.join(available)}")
            raise KafkaConfigurationError(f"there is no column {name!r}: {hint}")
        if names.count(name) > 1:
            raise KafkaConfigurationError(f"column {name} occurs twice in columns: remove one")
    if not names:
        raise KafkaConfigurationError("columns is empty: name at least one column")
    return names
