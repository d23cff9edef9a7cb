"""A report of what Spark was doing when a test timed out, and recovery of the session for later tests."""

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

#: A worker that runs one task for this long writes its stack trace to the session's log.
TRACES = {"spark.python.worker.tracebackDumpIntervalSeconds": "50"}
#: Bytes from the end of each log.
TAIL_BYTES = 20_000


def running_gateway() -> JavaGateway | None:
    """Return the gateway of this process's Spark, without importing Spark if no test has."""
    pyspark = sys.modules.get("pyspark")
    return pyspark.SparkContext._gateway if pyspark is not None else None


def describe(gateway: JavaGateway, others: dict[str, Any]) -> str:
    """Describe every thread of the JVM, with the end of its log and of the logs of ``others``.

    ``others`` are objects that the test uses; some have a ``log_file``.
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
    """Stop what is running, and let this thread use a new connection to the JVM.

    On its old connection, the next call would read the response of the interrupted one.
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
        # A query that cannot be stopped is not the next test's problem.
        with contextlib.suppress(Exception):
            query.stop()
