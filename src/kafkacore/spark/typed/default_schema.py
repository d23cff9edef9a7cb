"""The schema of a typed read for which the user has given none, in Spark's DDL.

Does not know: the columns that a user chooses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import SPARK_TYPES, all_columns
from kafkacore.spark.typed.options import BINARY, SCALAR_TYPES, FormatOptions, SideOptions

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def default_ddl(parsed: FormatOptions, options: Mapping[str, str]) -> str:
    """Kafka's columns with key and value typed, or of a value that has fields these.

    Parameters
    ----------
    parsed:
        What the key and the value are.
    options:
        All options of the read: a schema may be registered by the name of the topic.

    Raises
    ------
    KafkaConfigurationError
        No option says what the fields are.
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
    """The fields of one side."""
    if side.format == "avro":
        from kafkacore.spark.typed.avro import avro_ddl

        return avro_ddl(side, options)
    text = side.schema_text
    if text is None:
        raise KafkaConfigurationError(
            f"{side.side}.format {side.format} needs the fields: .schema('id BIGINT, name STRING'), or the "
            f"same text as option {side.side}.schema"
        )
    if not text.lstrip().startswith("{"):
        return text
    return _ddl_of_spark_json(text, f"{side.side}.schema")


def _ddl_of_spark_json(text: str, option: str) -> str:
    """Of a schema as ``DataFrame.schema.json()`` gives it."""
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
    """As ``simpleString()``, which has names within types without quotes."""
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
    """``name`` as an identifier of Spark's DDL."""
    return "`" + name.replace("`", "``") + "`"
