"""Kafka for PySpark, without a JAR.

    df = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", "host:9092")
        .option("subscribe", "t")
        .load()
    )

Options, columns and checkpoints are those of Spark's built-in ``kafka`` source. It is enough to install
kafkacore: Spark 4 finds the format through the module ``pyspark_kafkacore``.

Spark calls ``source`` first. ``reader`` plans ranges of offsets on the driver and fetches them on workers.
``columns`` and ``typed`` build the columns of the user's schema. ``sink`` writes. ``log_files`` and
``raw_batches`` read without a broker. ``pipeline`` runs a whole job. ``progress`` and ``monitor`` report on a
query. All of these share ``options`` and ``worker``.
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

#: The module of each public name. A module is imported on first use. Spark imports this package whenever it
#: looks up a format, even if optional dependencies are not installed.
_MODULES = {
    "Lag": "progress",
    "QueryMonitor": "monitor",
    "decode_batches": "raw_batches",
    "lag": "progress",
}


log_to_stderr()


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
