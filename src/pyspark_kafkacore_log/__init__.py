"""Lets Spark find ``format("kafkacore-log")`` by itself.

Spark 4 imports every top-level module whose name starts with ``pyspark_`` when it meets a format it does
not know, and takes the attribute ``DefaultSource``. An exception here would break that lookup for every
source, so this imports next to nothing, and what cannot be imported is not offered.
"""

from contextlib import suppress

# PySpark before 4.0 has no data sources in Python.
with suppress(ImportError):
    from kafkacore.spark.log_files.source import KafkaCoreLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
