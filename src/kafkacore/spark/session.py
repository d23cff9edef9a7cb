"""Start a local, quiet Spark session for a command-line program, and stop it however the program ends.

The JVM is started here and not by Spark's builder, because the parent decides where the JVM prints, which
signals it receives, and whether its end is awaited. Its standard error is a file. Nothing else keeps the
start-up messages, which it prints before it reads a logging configuration, off the screen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.secrets import REDACTION_REGEX

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # py4j has no types
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

#: How long Spark may take to stop, and then its JVM to end, before it is killed; in seconds.
STOP_TIMEOUT_S = 10.0

#: Only the quick compiler and the simplest collector: the thorough ones cost more in the first minute than
#: they save. The whole demo takes 35 CPU seconds with this and 52 without (JDK 17, 2 cores, 336,776 records).
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def spark_session(
    app_name: str,
    work_dir: Path,
    log_file: Path,
    short_lived: bool = True,
    configs: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A local Spark session with its chatter in ``log_file``; an active session is used as it is, and left
    open.

    Parameters
    ----------
    app_name:
        As it appears in Spark's UI.
    work_dir:
        Where Spark may put its warehouse; nothing is left in the current folder.
    log_file:
        Receives what the JVM and the workers print.
    short_lived:
        Tune the JVM for a job of a minute rather than of days (see :data:`SHORT_LIVED_JVM`).
    configs:
        Further settings of Spark; they win over those made here.

    Raises
    ------
    KafkaConfigurationError
        The JVM did not start; the message says what it needs.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # Workers must be this Python, not the first one on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _conf(app_name, work_dir)
    if short_lived:
        conf.set("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
    conf.setAll(list((configs or {}).items()))
    # PySpark looks at optional packages as it starts, and warns of some that we do not use with it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    _quieten_pyspark()
    gateway = _launch_jvm(conf, log_file)
    try:
        spark = _start(gateway, conf)
        try:
            yield spark
        finally:
            in_time(spark.stop)
    finally:
        _end_jvm(gateway)


def in_time(stop: Callable[[], object], timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Call ``stop`` and wait for its end, at most ``timeout_s``; if it fails, the JVM's end will do instead.

    It runs on a thread of its own, which means on a connection to the JVM of its own: on that of a thread
    that has been interrupted in a call, the next call would read the answer of that one.
    """
    executor = futures.ThreadPoolExecutor(1, thread_name_prefix="kafkacore-spark-stop")
    try:
        futures.wait([executor.submit(stop)], timeout_s)
    finally:
        executor.shutdown(wait=False)


def _conf(app_name: str, work_dir: Path) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf(loadDefaults=False).setAppName(app_name)
    if "spark.master" not in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        conf.setMaster("local[*]")
    return conf.setAll(
        [
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            ("spark.sql.session.timeZone", "UTC"),
            ("spark.sql.redaction.string.regex", REDACTION_REGEX),
            ("spark.sql.shuffle.partitions", str(os.cpu_count() or 2)),
            ("spark.sql.warehouse.dir", str(work_dir / "warehouse")),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
        ]
    )


def _quieten_pyspark() -> None:
    """Of an expression that Spark does not understand PySpark prints the JVM's stack, beside raising it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _launch_jvm(conf: SparkConf, log_file: Path) -> JavaGateway:
    """The JVM, connected. It ends by itself when we do: its standard input is a pipe that only we hold."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    log_file.parent.mkdir(parents=True, exist_ok=True)
    with open(log_file, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        try:
            # A session of its own, so that Ctrl-C reaches us alone and we end what runs in the right order.
            own = {"stdout": log, "stderr": log, "start_new_session": True}
            return launch_gateway(conf, own)  # type: ignore[no-untyped-call]  # PySpark's own lacks them
        except (PySparkRuntimeError, OSError) as error:
            raise KafkaConfigurationError(
                f"Spark's JVM did not start; it needs Java 17 or newer on PATH or as JAVA_HOME. "
                f"What it said is in {log_file}"
            ) from error


def _start(gateway: JavaGateway, conf: SparkConf) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # SparkContext takes SIGINT for itself, and would call the JVM in the middle of another call.
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    finally:
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)


def _end_jvm(gateway: JavaGateway) -> None:
    """End the JVM and wait for it, so that nothing is left running and its CPU time counts as ours."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    try:
        process.stdin.close()
        process.wait(STOP_TIMEOUT_S)
    except BaseException as error:
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
    finally:
        in_time(gateway.shutdown)
        SparkContext._gateway = SparkContext._jvm = None
