"""Register ``format("kafkacore-log")`` with Spark.

To resolve an unknown format, Spark 4 imports every top-level module whose name starts with ``pyspark_`` and
reads its attribute ``DefaultSource``. An exception here would break that lookup for every other source. So
this module imports as little as possible and defines nothing if the import fails.
"""

from contextlib import suppress

# PySpark before 4.0 has no Python data sources.
with suppress(ImportError):
    from kafkacore.spark.log_files.source import KafkaCoreLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
