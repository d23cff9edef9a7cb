"""Kafka for PySpark, without a JAR.

    df = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", "host:9092")
        .option("subscribe", "t")
        .load()
    )

Options, columns and checkpoints are those of Spark's built-in ``kafka`` source. Installing kafkacore is
enough: Spark 4 finds the format by itself (``pyspark_kafkacore``).

Spark calls ``source`` first. ``reader`` plans ranges of offsets on the driver and fetches them on workers;
``columns`` and ``typed`` make the columns that the user's schema asks for. ``sink`` writes, ``log_files`` and
``raw_batches`` read without a broker, ``pipeline`` runs a whole job, ``progress`` and ``monitor`` report on a
query. ``options`` and ``worker`` are shared by all of these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kafkacore.spark.logs import log_to_stderr

if TYPE_CHECKING:
    from kafkacore.spark.monitor import QueryMonitor
    from kafkacore.spark.progress import Lag, lag
    from kafkacore.spark.raw_batches import decode_batches

__all__ = ["Lag", "QueryMonitor", "decode_batches", "lag"]

#: Where each name lies. Found when it is asked for: Spark's search for formats imports this package, and what
#: it imports cannot be what is not installed.
_HOME = {
    "Lag": "progress",
    "QueryMonitor": "monitor",
    "decode_batches": "raw_batches",
    "lag": "progress",
}


log_to_stderr()


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
