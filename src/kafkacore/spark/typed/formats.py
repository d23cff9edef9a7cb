"""Plan the columns of a read from its schema and its format options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacore.spark.columns.output import KafkaColumns, OutputPlan
from kafkacore.spark.columns.schema import chosen_columns
from kafkacore.spark.typed.options import FORMAT_OPTION_NAMES, parse_format_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["FORMAT_OPTION_NAMES", "default_schema", "plan_output"]


def default_schema(options: Mapping[str, str]) -> StructType | str:
    """Return the schema of a read for which the user has not set one.

    Parameters
    ----------
    options:
        Options as Spark passes them. Names are not case-sensitive.

    Raises
    ------
    KafkaConfigurationError
        The options do not define the columns.
    """
    from kafkacore.spark.typed.default_schema import default_ddl

    return default_ddl(parse_format_options(options), options)


def plan_output(schema: StructType, options: Mapping[str, str]) -> OutputPlan:
    """Check ``schema`` against the options and plan its columns.

    Raises
    ------
    KafkaConfigurationError
        A column does not exist or has the wrong type, or an option is invalid.
    """
    parsed = parse_format_options(options)
    if parsed.plain:
        return KafkaColumns(chosen_columns(schema))
    from kafkacore.spark.typed.layout import lay_out

    layout = lay_out(schema, parsed)
    # Create each decoder once on the driver, so that an error is raised before any task runs.
    for plan in layout.plans:
        plan.decoder()
    return layout
