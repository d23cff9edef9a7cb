"""Spark as a cluster has it: a job handed to spark-submit, watched from outside, killed in parts or whole.

A master's address and a folder in; what the job has committed, by its files alone. Does not know: what is
judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow.parquet as pq
import pyspark
from eventually import BUDGET_S, eventually

from kafkacore.bench.spark.processes import descendants
from kafkacore.spark.session import SHORT_LIVED_JVM

SPARK_HOME = Path(pyspark.__file__).parent
JOB = Path(__file__).with_name("streaming_job.py")
#: Of one wait, on a machine that has much else to do.
BUDGETS = 4
CONFS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.executor.extraJavaOptions": SHORT_LIVED_JVM,
    # A task's workers are killed again and again; that is no reason to give up.
    "spark.task.maxFailures": "1000",
    # The sink's list of files stays one file a batch.
    "spark.sql.streaming.fileSink.log.compactInterval": "10000",
}


def environment() -> dict[str, str]:
    """Of a job and of a cluster's daemons: this Python, and what it imports."""
    named = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    return dict(os.environ) | named | {"SPARK_NO_DAEMONIZE": "1", "PYTHONWARNINGS": "ignore"}


class Program:
    """A process with all that it starts; leaving the ``with`` block kills what is left of it."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
                start_new_session=True,
            )

    def said(self) -> str:
        """Everything that it has printed."""
        return self.log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait while it runs.

        Raises
        ------
        AssertionError
            It ended, or its time did, with what it said last.
        """
        eventually(condition, lambda: f"{what}\n{self.said()[-6000:]}", child=self._process, budgets=BUDGETS)

    def wait(self) -> int:
        """Its exit status."""
        return self._process.wait(BUDGETS * BUDGET_S)

    def kill(self) -> None:
        """SIGKILL of the process itself, a driver's JVM; what it has started is left to notice."""
        self._process.kill()
        self._process.wait(BUDGETS * BUDGET_S)

    def python_workers(self) -> list[int]:
        """Of executors: those that run tasks, without the daemon that forks them."""
        return python_processes(self._process.pid, b"pyspark.worker")

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(BUDGETS * BUDGET_S)


def python_processes(top: int, module: bytes | None = None) -> list[int]:
    """Those below the process ``top`` that work for its JVM, without the daemons that fork them.

    Parameters
    ----------
    module:
        Only of daemons for this module: ``pyspark.worker`` runs tasks, the others help the driver.
    """
    # A forked process looks like its daemon.
    return [
        pid
        for pid, parent in descendants(top).items()
        if _is_of_daemon(pid, module) and _is_of_daemon(parent, module)
    ]


def _is_of_daemon(pid: int, module: bytes | None) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:3] == [b"-m", b"pyspark.daemon"] and module in (None, words[3])


class Job(Program):
    """A run of ``streaming_job.py``; another one on the same folder goes on from its checkpoint.

    Parameters
    ----------
    master:
        Of Spark, such as ``local-cluster[2,1,1024]``.
    folder:
        Of the checkpoint and the Parquet.
    arguments:
        Of the job.
    """

    def __init__(self, master: str, bootstrap: str, topic: str, folder: Path, *arguments: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.log")))
        confs = [f"--conf={name}={value}" for name, value in CONFS.items()]
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, *confs, str(JOB)]
        super().__init__([*command, bootstrap, topic, str(folder), *arguments], folder / f"{number}.log")

    def planned(self) -> int:
        """How many batches have begun."""
        return _numbered(self.folder / "checkpoint" / "offsets")

    def committed(self) -> int:
        """How many batches have ended."""
        return _numbered(self.folder / "checkpoint" / "commits")


def _numbered(folder: Path) -> int:
    return sum(path.name.isdecimal() for path in folder.glob("*"))


def written(folder: Path) -> Iterator[tuple[int, int, bytes]]:
    """Partition, offset and value of every row of the Parquet sink, as its own list of files has it."""
    for batch in sorted((folder / "out" / "_spark_metadata").glob("[0-9]*")):
        for line in batch.read_text().splitlines()[1:]:
            path = urllib.parse.unquote(re.sub("^file:/*", "/", json.loads(line)["path"]))
            table = pq.read_table(path, columns=["partition", "offset", "value"], partitioning=None)
            yield from zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)


@contextlib.contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[Program]]]:
    """A master and its workers on this machine; the master's address, and the workers' programs."""
    folder.mkdir(parents=True, exist_ok=True)
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    named = "org.apache.spark.deploy"
    with contextlib.ExitStack() as stack:
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        command = [spark_class, f"{named}.master.Master", *options]
        master = stack.enter_context(Program(command, folder / "master.log"))
        master.wait_until(lambda: "New state: ALIVE" in master.said(), "the master is there")
        found = re.search(r"spark://127\.0\.0\.1:\d+", master.said())
        assert found is not None, master.said()
        programs = []
        for number in range(workers):
            work = ["--work-dir", str(folder / f"work-{number}"), "--cores", "1", "--memory", "1g"]
            command = [spark_class, f"{named}.worker.Worker", *options, *work, found[0]]
            programs.append(stack.enter_context(Program(command, folder / f"worker-{number}.log")))
        for program in programs:
            program.wait_until(
                lambda program=program: "Successfully registered with master" in program.said(),
                "the worker is registered",
            )
        yield found[0], programs
