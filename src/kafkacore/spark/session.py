"""A Spark session for a command-line program: local, quiet, and nothing left in the current folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(app_name: str, work_dir: Path, log_file: Path) -> Iterator[SparkSession]:
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
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # Workers must be this Python, not the first one on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(app_name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
        .config("spark.sql.warehouse.dir", str(work_dir / "warehouse"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    if "spark.master" not in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        builder = builder.master("local[*]")
    with _stderr_to(log_file):
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        with _stderr_to(log_file):
            spark.stop()


@contextmanager
def _stderr_to(log_file: Path) -> Iterator[None]:
    """What is started meanwhile (the JVM, and the workers that it starts) inherits a file as stderr."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)
