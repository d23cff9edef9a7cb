"""A test whose time was up while it waited for Spark: what Spark did, and a session for the next tests.

Nothing in but the session that there is; text for the report out. Does not know: the test.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventually import BUDGET_S

from kafkacore.spark.session import in_time

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

#: A worker that has been at one thing for so long writes down where it is, into the session's log.
TRACES = {"spark.python.worker.tracebackDumpIntervalSeconds": "50"}
#: Of each log, from its end.
TAIL_BYTES = 20_000


def running_gateway() -> JavaGateway | None:
    """Of this process's Spark, without importing Spark where nobody has."""
    pyspark = sys.modules.get("pyspark")
    return pyspark.SparkContext._gateway if pyspark is not None else None


def describe(gateway: JavaGateway, others: dict[str, Any]) -> str:
    """Every thread of the JVM, the end of its log and of those of ``others``, things that the test uses, of
    which some have a ``log_file``.
    """
    pid = gateway.proc.pid
    parts = [
        f"Spark's JVM has ended with {gateway.proc.poll()}"
        if gateway.proc.poll() is not None
        else _threads(pid)
    ]
    logs = {"Spark": Path(f"/proc/{pid}/fd/2")}
    logs |= {name: Path(other.log_file) for name, other in others.items() if hasattr(other, "log_file")}
    parts += [f"--- the end of the log of {name}\n{_tail(path)}" for name, path in logs.items()]
    return "\n".join(parts)


def _threads(pid: int) -> str:
    try:
        found = subprocess.run(["jstack", str(pid)], capture_output=True, text=True, timeout=BUDGET_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no threads of the JVM: {error}"
    return found.stdout + found.stderr


def _tail(path: Path) -> str:
    try:
        with open(path, "rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError as error:
        return str(error)


def go_on(gateway: JavaGateway) -> None:
    """End what runs, and let this thread make a new connection: on the one that it has, the next call would
    read the answer of the interrupted one.
    """
    connection = gateway._gateway_client.get_thread_connection()
    if connection is not None:
        connection.close()
    in_time(_end_jobs)


def _end_jobs() -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, session = SparkContext._active_spark_context, SparkSession._instantiatedSession
    if context is None or session is None:
        return
    context.cancelAllJobs()
    for query in session.streams.active:
        # One that cannot be stopped is not the next test's.
        with contextlib.suppress(Exception):
            query.stop()
