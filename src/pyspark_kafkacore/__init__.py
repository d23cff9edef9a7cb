"""Lets Spark find ``format("kafkacore")`` by itself.

Spark 4 imports every top-level module whose name starts with ``pyspark_`` when it meets a format it does
not know, and takes the attribute ``DefaultSource``. An exception here would break that lookup for every
source, so this stays light.
"""

from kafkacore.spark.source import KafkaCoreDataSource as DefaultSource

__all__ = ["DefaultSource"]
