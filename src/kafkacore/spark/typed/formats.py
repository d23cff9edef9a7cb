"""What the bytes of a value or a key are: the options that say so, and the plan of the columns they become.

Spark's schema and the options in, an :class:`~kafkacore.spark.columns.output.OutputPlan` out.
"""

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
    """The schema of a read for which the user has given none.

    Parameters
    ----------
    options:
        As Spark gives them; names in any case.

    Raises
    ------
    KafkaConfigurationError
        The options do not say what the columns are.
    """
    from kafkacore.spark.typed.default_schema import default_ddl

    return default_ddl(parse_format_options(options), options)


def plan_output(schema: StructType, options: Mapping[str, str]) -> OutputPlan:
    """Check ``schema`` against the options and plan its columns.

    Raises
    ------
    KafkaConfigurationError
        A column that there is not, of another type; an option that does not fit.
    """
    parsed = parse_format_options(options)
    if parsed.plain:
        return KafkaColumns(chosen_columns(schema))
    from kafkacore.spark.typed.layout import lay_out
    from kafkacore.spark.typed.output import TypedColumns

    layout = lay_out(schema, parsed)
    # Made once on the driver, so that what cannot be decoded is said before any task runs.
    for plan in layout.plans:
        plan.decoder()
    return TypedColumns(layout)
