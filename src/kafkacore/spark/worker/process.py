"""Prepare a Python worker of Spark for short tasks.

A task of a few rows takes 3 ms, but PySpark and Spark added 70 ms. PySpark runs the garbage collector after
each task, which takes 30 ms with kafkacore's modules loaded. Also, the second packet of a task waited 40 ms
for the delayed acknowledgement of the first packet. So this module exempts loaded modules from garbage
collection from the second task on, and disables delayed acknowledgements on PySpark's socket. The module
looks for the socket in the call stack. If it finds no socket, acknowledgements stay delayed.
"""

from __future__ import annotations

import gc
import socket
import sys
from types import FrameType

#: Number of tasks that have started in this process.
_begun = 0


def begin_task() -> None:
    """Prepare the process at the start of a task. Call this on the thread that runs PySpark's worker loop."""
    global _begun
    _begun += 1
    if _begun == 1:
        spark = socket_to_spark()
        if spark is not None:
            gc.callbacks.append(_AcknowledgeAtOnce(spark))
    elif _begun == 2:
        # PySpark's garbage collection traverses every loaded object, which takes 30 ms with the modules of
        # kafkacore and Arrow. These modules stay loaded, and PySpark has just collected the garbage after the
        # first task.
        gc.freeze()


def socket_to_spark() -> socket.socket | None:
    """Return the socket on which Spark sends tasks to this worker.

    Return ``None`` outside a worker, with another kind of socket, or if the code of PySpark's daemon has
    changed. Tasks then work, but take longer.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "worker" and code.co_filename.replace("\\", "/").endswith("pyspark/daemon.py"):
            found = frame.f_locals.get("sock")
            is_tcp = isinstance(found, socket.socket) and found.family in (socket.AF_INET, socket.AF_INET6)
            return found if is_tcp else None
        frame = frame.f_back
    return None


class _AcknowledgeAtOnce:
    """Garbage collector callback that disables the delayed acknowledgement (40 ms) of the next packet.

    Spark writes a task in two parts, and Nagle's algorithm holds the second back until the first is
    acknowledged. TCP_QUICKACK is reset when the worker responds, so it must be set again after the last
    response of each task. That is when PySpark runs the garbage collector.
    """

    def __init__(self, spark: socket.socket) -> None:
        self._spark = spark

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase != "stop" or info["generation"] != 2 or self._spark.fileno() < 0:
            return
        if hasattr(socket, "TCP_QUICKACK"):
            self._spark.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
