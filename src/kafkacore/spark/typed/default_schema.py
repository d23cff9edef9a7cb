"""Build the default schema of a typed read, in Spark's DDL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacore.decode.formats import BINARY
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import SPARK_TYPES, all_columns
from kafkacore.spark.typed.options import SCALAR_TYPES, FormatOptions, SideOptions

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def default_ddl(parsed: FormatOptions, options: Mapping[str, str]) -> str:
    """Return the default schema.

    If the value is flattened, the columns are its fields. Otherwise they are Kafka's columns with a typed key
    and value.

    Parameters
    ----------
    parsed:
        Formats of the key and the value.
    options:
        All options of the read, because the name of the topic may select the registered schema.

    Raises
    ------
    KafkaConfigurationError
        The options do not define the fields.
    """
    if parsed.flat:
        return fields_ddl(parsed.value, options)
    kinds: dict[str, str] = {str(name): kind for name, kind in SPARK_TYPES.items()}
    for side in (parsed.key, parsed.value):
        if side.format in SCALAR_TYPES:
            kinds[side.side] = SCALAR_TYPES[side.format]
        elif side.format != BINARY:
            kinds[side.side] = f"struct<{fields_ddl(side, options)}>"
    return ", ".join(f"{name} {kinds[name]}" for name in all_columns(parsed.include_headers))


def fields_ddl(side: SideOptions, options: Mapping[str, str]) -> str:
    """Return the fields of the key or the value in Spark's DDL."""
    if side.format == "avro":
        from kafkacore.spark.typed.avro import avro_ddl

        return avro_ddl(side, options)
    text = side.schema_text
    if text is None:
        raise KafkaConfigurationError(
            f"{side.side}.format {side.format} needs the fields: .schema('id BIGINT, name STRING'), or the "
            f"same text in the option {side.side}.schema"
        )
    if not text.lstrip().startswith("{"):
        return text
    return _ddl_of_spark_json(text, f"{side.side}.schema")


def _ddl_of_spark_json(text: str, option: str) -> str:
    """Convert a schema in the form of ``DataFrame.schema.json()`` to DDL."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        fields = StructType.fromJson(json.loads(text)).fields
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PySparkException) as error:
        raise KafkaConfigurationError(
            f"{option} is neither DDL such as 'id BIGINT, name STRING' nor a schema in Spark's JSON"
        ) from error
    return ", ".join(f"{quoted_name(f.name)} {_ddl_of_type(f.dataType)}" for f in fields)


def _ddl_of_type(kind: DataType) -> str:
    """Return a type in DDL. Unlike ``simpleString()``, quote the names of nested fields."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        fields = (f"{quoted_name(f.name)}: {_ddl_of_type(f.dataType)}" for f in kind.fields)
        return f"struct<{', '.join(fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_ddl_of_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_ddl_of_type(kind.keyType)}, {_ddl_of_type(kind.valueType)}>"
    return kind.simpleString()


def quoted_name(name: str) -> str:
    """Return ``name`` as a quoted identifier of Spark's DDL."""
    return "`" + name.replace("`", "``") + "`"
