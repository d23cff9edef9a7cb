"""Start a local Spark session for a command-line program, and stop it however the program ends.

This module starts the JVM itself, because Spark's builder does not control its output, its signals or its
termination. The JVM's standard error goes to a file, because the JVM prints start-up messages before it reads
a logging configuration.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
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

#: Seconds to wait for Spark to stop, and then for its JVM to exit. If the JVM is still running then, it is
#: killed.
STOP_TIMEOUT_S = 10.0

#: JVM options that select the C1 compiler and the serial collector. C2 and G1 cost more in the first minute
#: than they save: the demo takes 35 CPU seconds with these options and 52 without (JDK 17, 2 cores, 336,776
#: records).
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def spark_session(
    app_name: str,
    work_dir: Path,
    log_file: Path,
    short_lived: bool = True,
    configs: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Start a local Spark session that logs to a file, and stop it when the block ends.

    If there is an active session, it is used without changes and stays open.

    Parameters
    ----------
    app_name:
        Name of the application in Spark's UI.
    work_dir:
        Directory for Spark's warehouse, so that Spark does not write to the current directory.
    log_file:
        File that receives the output of the JVM and the workers.
    short_lived:
        Whether to tune the JVM for a job of about a minute (see :data:`SHORT_LIVED_JVM`).
    configs:
        Further Spark settings. They override the settings made here.

    Raises
    ------
    KafkaConfigurationError
        The JVM did not start. The message names the requirements.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # The workers must run this Python, not the first one on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _conf(app_name, work_dir)
    if short_lived:
        conf.set("spark.driver.extraJavaOptions", SHORT_LIVED_JVM)
    conf.setAll(list((configs or {}).items()))
    # On start, PySpark warns about versions of optional packages that kafkacore does not use with it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    _quieten_pyspark()
    with _spark_home():
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
    """Call ``stop`` in a thread, and wait at most ``timeout_s`` seconds until it returns.

    Errors are ignored, because the JVM is terminated afterwards. The new thread has its own connection to the
    JVM. If the calling thread was interrupted during a call, its next call would read the response to the
    interrupted call.
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
    """Disable the loggers that print a JVM stack trace for an analysis error. The error is raised anyway."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _spark_home() -> Iterator[None]:
    """Let Spark's workers import PySpark from the package that this process uses.

    The first entry in a worker's path is the archive ``python/lib/pyspark.zip`` of ``SPARK_HOME``. It has no
    byte code, so that each new worker compiles PySpark (1.2 CPU seconds, a third of that from the package).
    Spark waits 10 seconds for a worker to start, which is short on a busy machine. Therefore, ``SPARK_HOME``
    is a folder of links to everything in the installed package except the archive.
    """
    import pyspark

    installed = Path(pyspark.__file__).parent
    if "SPARK_HOME" in os.environ or not (installed / "jars").is_dir():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="kafkacore-spark-") as home:
        for entry in installed.iterdir():
            if entry.name != "python":
                (Path(home) / entry.name).symlink_to(entry)
        os.environ["SPARK_HOME"] = home
        try:
            yield
        finally:
            del os.environ["SPARK_HOME"]


def _launch_jvm(conf: SparkConf, log_file: Path) -> JavaGateway:
    """Start the JVM and connect to it.

    The JVM exits when this process does, because its standard input is a pipe from this process.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    log_file.parent.mkdir(parents=True, exist_ok=True)
    with open(log_file, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        try:
            # In its own process session, the JVM does not receive Ctrl-C, so this process can stop it
            # cleanly.
            own = {"stdout": log, "stderr": log, "start_new_session": True}
            return launch_gateway(conf, own)  # type: ignore[no-untyped-call]  # PySpark's own lacks them
        except (PySparkRuntimeError, OSError) as error:
            raise KafkaConfigurationError(
                f"Spark's JVM did not start. It needs Java 17 or newer on PATH or in JAVA_HOME. "
                f"The output of the JVM is in {log_file}"
            ) from error


def _start(gateway: JavaGateway, conf: SparkConf) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # SparkContext installs a SIGINT handler, which would call the JVM in the middle of another call.
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    finally:
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)


def _end_jvm(gateway: JavaGateway) -> None:
    """Stop the JVM and wait for it, so that its CPU time counts towards this process."""
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
