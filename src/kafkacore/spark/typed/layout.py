"""Determine the origin of each column of Spark's schema, and what has to be decoded.

There are two layouts. In the *flat* layout, the fields of the value are the columns, and the names of Kafka's
columns have a leading underscore. In *Kafka's* layout, the columns have Kafka's names, and ``key`` and
``value`` have the types of their formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.decode.formats import BINARY, STRUCTURED, Mode, Side
from kafkacore.decode.kafka_columns import Column
from kafkacore.decode.typed_batches import Origin, TypedBatches, fields_to_decode
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.output import Output
from kafkacore.spark.columns.schema import SPARK_TYPES
from kafkacore.spark.typed.decoders import DecoderPlan
from kafkacore.spark.typed.options import SCALAR_TYPES, FormatOptions, SideOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField, StructType


SIDES: tuple[Side, Side] = ("key", "value")


@dataclass(frozen=True)
class Layout:
    """Plan of a read that decodes keys or values. The plan can be pickled.

    Parameters
    ----------
    schema:
        Schema of the batches, exactly as Spark expects it.
    origins:
        Origin of each column.
    plans:
        Decoders that are needed.
    mode:
        Treatment of records that cannot be decoded.
    """

    schema: pa.Schema
    origins: tuple[Origin, ...]
    plans: tuple[DecoderPlan, ...]
    mode: Mode

    @property
    def kafka_columns(self) -> Mapping[str, Column]:
        named = zip(self.schema.names, self.origins, strict=True)
        return {name: origin.column for name, origin in named if origin.kind == "kafka"}

    def output(self) -> Output:
        return TypedBatches(
            self.schema,
            self.origins,
            {plan.options.side: plan.decoder() for plan in self.plans},
            {plan.options.side for plan in self.plans if plan.structured},
            self.mode,
        )


def lay_out(schema: StructType, options: FormatOptions) -> Layout:
    """Check the schema that Spark passes, and determine the origins of its columns.

    Raises
    ------
    KafkaConfigurationError
        A column does not exist, has the wrong type, occurs twice or is ``NOT NULL``.
    """
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise KafkaConfigurationError(f"column {name} occurs twice: remove one from the schema")
    for field in schema.fields:
        _refuse_not_null(field)
    arrow = _arrow_schema(schema)
    origins: list[Origin] = []
    field_count = 0
    for field in schema.fields:
        origin = _origin(field, options)
        if origin.kind == "field":
            origin = origin._replace(at=field_count)
            field_count += 1
        origins.append(origin)
    sides = {side: getattr(options, side) for side in SIDES}
    formats = {side: of_side.format for side, of_side in sides.items()}
    needed = fields_to_decode(arrow, origins, formats, options.mode)
    plans = tuple(DecoderPlan(sides[side], fields) for side, fields in needed.items())
    return Layout(arrow, tuple(origins), plans, options.mode)


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
        hint = f"; in this layout its name is {bare}, without underscore" if bare in SPARK_TYPES else ""
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
            f"column {field.name} must be of type {SPARK_TYPES[column]}, not {kind}: change the schema{hint}"
        )
    return Origin("kafka", column)


def _check_side(field: StructField, side_options: SideOptions) -> None:
    kind = field.dataType.simpleString()
    if side_options.format in STRUCTURED:
        if not kind.startswith("struct<"):
            raise KafkaConfigurationError(
                f"column {field.name} must be a struct, because {side_options.side}.format is "
                f"{side_options.format}, not {kind}: change the schema"
            )
        if kind == "struct<>":
            raise KafkaConfigurationError(
                f"column {field.name} is a struct without fields: name the fields to read"
            )
    elif kind != SCALAR_TYPES[side_options.format]:
        raise KafkaConfigurationError(
            f"column {field.name} has type {kind}, but {side_options.side}.format={side_options.format} "
            f"needs {SCALAR_TYPES[side_options.format]}: change the schema"
        )


# ---- Types -----------------------------------------------------------------------------------------------


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Convert the schema with Spark's own function: Spark expects exactly this schema in each batch."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except PySparkException as error:
        raise KafkaConfigurationError(
            f"the schema has a column whose type Arrow does not support: {error}"
        ) from error


def _refuse_not_null(field: StructField) -> None:
    if not field.nullable:
        raise KafkaConfigurationError(
            f"column {field.name} cannot be NOT NULL, because a record may lack it: remove NOT NULL from the "
            "schema"
        )
    if not _all_nullable(field.dataType):
        raise KafkaConfigurationError(
            f"column {field.name} has a nested part that is not nullable, but a record may lack it: make "
            f"every field, element and map value of the column nullable"
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
