"""Spark's schema in; where each of its columns comes from, and what has to be decoded for it, out.

Two layouts. *Flat*: the value's fields are the columns, and Kafka's own are asked for by a leading
underscore. *Kafka's*: the columns have Kafka's own names, and ``key`` and ``value`` the types of their
formats. Does not know: the bytes, any decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import SPARK_TYPES, Column
from kafkacore.spark.typed.decoders import DecoderPlan
from kafkacore.spark.typed.options import (
    BINARY,
    SCALAR_TYPES,
    STRUCTURED,
    FormatOptions,
    Mode,
    Side,
    SideOptions,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField, StructType

    from kafkacore.decode.decoder import ArrowField

SIDES: tuple[Side, Side] = ("key", "value")


class Origin(NamedTuple):
    """Where a column comes from.

    Parameters
    ----------
    kind:
        ``kafka``: it is Kafka's, as it is. ``field``: one field of the decoded side. ``whole``: all of the
        decoded side. ``corrupt``: the bytes that could not be decoded.
    column:
        Kafka's column, or the side.
    at:
        Of a field: its place among those of the side.
    """

    kind: Literal["kafka", "field", "whole", "corrupt"]
    column: Column
    at: int = 0


@dataclass(frozen=True)
class Layout:
    """Where everything comes from; picklable.

    Parameters
    ----------
    schema:
        Of the batches, exactly as Spark expects it.
    origins:
        Of each column.
    plans:
        What is decoded.
    mode:
        What becomes of a record that cannot be decoded.
    """

    schema: pa.Schema
    origins: tuple[Origin, ...]
    plans: tuple[DecoderPlan, ...]
    mode: Mode


def lay_out(schema: StructType, options: FormatOptions) -> Layout:
    """Check the schema that Spark hands over, and say where its columns come from.

    Raises
    ------
    KafkaConfigurationError
        A column that there is not, of a type that it cannot have, twice, or ``NOT NULL``.
    """
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise KafkaConfigurationError(f"column {name} is there twice: leave one out of the schema")
    for field in schema.fields:
        _refuse_not_null(field)
    arrow = _arrow_schema(schema)
    origins: list[Origin] = []
    value_fields: list[ArrowField] = []
    for at, field in enumerate(schema.fields):
        origin = _origin(field, options)
        if origin.kind == "field":
            origin = origin._replace(at=len(value_fields))
            value_fields.append(arrow.field(at))
        origins.append(origin)
    return Layout(arrow, tuple(origins), _plans(options, origins, arrow, value_fields), options.mode)


def _plans(
    options: FormatOptions, origins: list[Origin], arrow: pa.Schema, value_fields: list[ArrowField]
) -> tuple[DecoderPlan, ...]:
    import pyarrow as pa

    # Whether a record is malformed is known only when it is decoded, whatever columns are wanted of it.
    judged = options.mode != "PERMISSIVE" or any(origin.kind == "corrupt" for origin in origins)
    plans = []
    for side in SIDES:
        side_options: SideOptions = getattr(options, side)
        if side_options.format == BINARY:
            continue
        fields: list[ArrowField] = list(value_fields) if side == "value" else []
        wanted = bool(fields)
        for field, origin in zip(arrow, origins, strict=True):
            if origin.kind == "whole" and origin.column == side:
                wanted = True
                fields = list(field.type) if side_options.format in STRUCTURED else [field]
        if wanted or judged:
            plans.append(DecoderPlan(side_options, pa.schema(fields)))
    return tuple(plans)


# ---- Columns ---------------------------------------------------------------------------------------------


def _origin(field: StructField, options: FormatOptions) -> Origin:
    name, kind = field.name, field.dataType.simpleString()
    if name == options.corrupt_record:
        if kind not in ("string", "binary"):
            raise KafkaConfigurationError(f"column {name} must be string or binary, not {kind}")
        return Origin("corrupt", "value")
    if options.flat and name == "_value":
        return _kafka_column(field, "value")
    kafka = name.removeprefix("_") if options.flat else name
    if options.flat and (kafka == name or kafka not in SPARK_TYPES):
        return Origin("field", "value")
    if kafka not in SPARK_TYPES:
        bare = name.removeprefix("_")
        hint = f"; here it is {bare}, without underscore" if bare in SPARK_TYPES else ""
        raise KafkaConfigurationError(
            f"the source has no column {name!r}: choose among {', '.join(SPARK_TYPES)}, "
            f"{options.corrupt_record}{hint}"
        )
    column: Column = kafka
    if column in SIDES and getattr(options, column).format != BINARY:
        _check_side(field, getattr(options, column))
        return Origin("whole", column)
    return _kafka_column(field, column)


def _kafka_column(field: StructField, column: Column) -> Origin:
    kind = field.dataType.simpleString()
    if kind != SPARK_TYPES[column]:
        hint = ""
        if field.name.startswith("_"):
            hint = ", or set value.flatten to false if it is a field of the value"
        raise KafkaConfigurationError(
            f"column {field.name} is of type {SPARK_TYPES[column]}, not {kind}: change the schema{hint}"
        )
    return Origin("kafka", column)


def _check_side(field: StructField, side_options: SideOptions) -> None:
    kind = field.dataType.simpleString()
    if side_options.format in STRUCTURED:
        if not kind.startswith("struct<"):
            raise KafkaConfigurationError(
                f"column {field.name} is a struct where {side_options.side}.format is "
                f"{side_options.format}, not {kind}: change the schema"
            )
        if kind == "struct<>":
            raise KafkaConfigurationError(
                f"column {field.name} is a struct of no fields: name those that are wanted"
            )
    elif kind != SCALAR_TYPES[side_options.format]:
        raise KafkaConfigurationError(
            f"column {field.name} is of type {SCALAR_TYPES[side_options.format]} where "
            f"{side_options.side}.format is {side_options.format}, not {kind}: change the schema"
        )


# ---- Types -----------------------------------------------------------------------------------------------


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Spark's own conversion: a batch is held against it before Spark takes it."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except PySparkException as error:
        raise KafkaConfigurationError(
            f"a column of the schema is of a type that Arrow lacks: {error}"
        ) from error


def _refuse_not_null(field: StructField) -> None:
    if not field.nullable:
        raise KafkaConfigurationError(
            f"column {field.name} cannot be NOT NULL, a record may lack it: leave that out of the schema"
        )
    if not _all_nullable(field.dataType):
        raise KafkaConfigurationError(
            f"column {field.name} holds something that cannot be null, and a record may lack it: make every "
            f"field, element and map value in it nullable"
        )


def _all_nullable(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return all(field.nullable and _all_nullable(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return kind.containsNull and _all_nullable(kind.elementType)
    if isinstance(kind, MapType):
        return kind.valueContainsNull and _all_nullable(kind.keyType) and _all_nullable(kind.valueType)
    return True
