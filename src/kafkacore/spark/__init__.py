"""Kafka for PySpark, without a JAR.

    df = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", "host:9092")
        .option("subscribe", "t")
        .load()
    )

Options, columns and checkpoints are those of Spark's built-in ``kafka`` source. Installing kafkacore is
enough: Spark 4 finds the format by itself (``pyspark_kafkacore``).

``options`` → ``planner`` (driver: partitions and offsets) → ``offsets`` (ranges) → ``fetch`` (worker: a range
to columns) → ``output``, ``typed`` (columns to what the user's schema asks for). ``source`` is what Spark
calls first, ``batch_reader`` and ``stream_reader`` what it calls then. ``sink`` writes, ``log_files`` and
``raw_batches`` read without a broker, ``pipeline`` is a whole job; ``progress`` and ``monitor`` say how it
goes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
