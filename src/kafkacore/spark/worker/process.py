"""Prepare a Python worker of Spark once for all its tasks.

A task of a few rows takes 3 ms here, and PySpark and Spark added 70 ms. PySpark collects garbage after each
task, which takes 30 ms with our modules loaded. The second packet of a task waits 40 ms for a delayed
acknowledgement of the first. So loaded modules are exempt from collections from the second task on, and the
kernel acknowledges at once. PySpark's socket is found in the stack; where it is not found, nothing is
changed.
"""

from __future__ import annotations

import gc
import socket
import sys
from types import FrameType

#: Tasks that have begun in this process.
_begun = 0


def begin_task() -> None:
    """Say that a task begins in this process, on the thread that PySpark has called."""
    global _begun
    _begun += 1
    if _begun == 1:
        spark = socket_to_spark()
        if spark is not None:
            gc.callbacks.append(_AcknowledgeAtOnce(spark))
    elif _begun == 2:
        # PySpark's collection looks at all that the process has ever loaded: 30 ms with our modules and
        # Arrow's. They are here to stay; and what was garbage has been collected just now.
        gc.freeze()


def socket_to_spark() -> socket.socket | None:
    """The one on which this worker is given its tasks.

    ``None`` where it is no TCP socket, outside a worker, and where PySpark's daemon is another than we know:
    then tasks take as long as they do without us.
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
    """Has the kernel acknowledge the next task's first packet when it is read, and not 40 ms later.

    Spark writes a task in two parts, and sends the second when the first is acknowledged (Nagle's algorithm).
    The kernel forgets what it was told when the worker answers, so it is told again behind the last answer of
    each task: PySpark collects garbage there.
    """

    def __init__(self, spark: socket.socket) -> None:
        self._spark = spark

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase != "stop" or info["generation"] != 2 or self._spark.fileno() < 0:
            return
        if hasattr(socket, "TCP_QUICKACK"):
            self._spark.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
