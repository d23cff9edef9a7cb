"""Spark as on a cluster: a job run by spark-submit, observed from outside and killed in part or whole."""

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
from eventually import BUDGET_S, eventually
from peers.spark_home import spark_home

from kafkacore.bench.spark.processes import descendants
from kafkacore.spark.session import SHORT_LIVED_JVM

JOB = Path(__file__).with_name("streaming_job.py")
#: Number of time budgets of one wait, on a busy machine.
BUDGETS = 4
CONFS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.executor.extraJavaOptions": SHORT_LIVED_JVM,
    # A task must be retried indefinitely, because its workers are killed again and again.
    "spark.task.maxFailures": "1000",
    # The sink's list of files remains one file per batch.
    "spark.sql.streaming.fileSink.log.compactInterval": "10000",
}


def environment() -> dict[str, str]:
    """Return the environment of a job and of a cluster's daemons: this Python and its imports."""
    named = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    return dict(os.environ) | named | {"SPARK_NO_DAEMONIZE": "1", "PYTHONWARNINGS": "ignore"}


class Program:
    """A process and its children. Leaving the ``with`` block kills all that are left."""

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
        """Return all output."""
        return self.log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the process runs.

        Raises
        ------
        AssertionError
            The process exited or the time expired. The message contains its last output.
        """
        eventually(condition, lambda: f"{what}\n{self.said()[-6000:]}", child=self._process, budgets=BUDGETS)

    def wait(self) -> int:
        """Return the exit status."""
        return self._process.wait(BUDGETS * BUDGET_S)

    def kill(self) -> None:
        """Kill only the process itself, a driver's JVM, with SIGKILL. Its children are left to notice."""
        self._process.kill()
        self._process.wait(BUDGETS * BUDGET_S)

    def python_workers(self) -> list[int]:
        """Return the executors' Python workers, without the daemon that forks them."""
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
    """Return the Python processes below the process ``top``, without the daemons that fork them.

    Parameters
    ----------
    module:
        Module of the daemons: ``pyspark.worker`` runs tasks, the others help the driver.
    """
    # A forked process has the command line of its daemon.
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
    """A run of ``streaming_job.py``. A further run on the same folder resumes from its checkpoint.

    Parameters
    ----------
    master:
        Spark master, such as ``local-cluster[2,1,1024]``.
    folder:
        Folder of the checkpoint and the Parquet files.
    arguments:
        Arguments of the job.
    """

    def __init__(self, master: str, bootstrap: str, topic: str, folder: Path, *arguments: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.log")))
        confs = [f"--conf={name}={value}" for name, value in CONFS.items()]
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", master, *confs, str(JOB)]
        super().__init__([*command, bootstrap, topic, str(folder), *arguments], folder / f"{number}.log")

    def planned(self) -> int:
        """Return the number of batches that have begun."""
        return _numbered(self.folder / "checkpoint" / "offsets")

    def committed(self) -> int:
        """Return the number of batches that have ended."""
        return _numbered(self.folder / "checkpoint" / "commits")


def _numbered(folder: Path) -> int:
    return sum(path.name.isdecimal() for path in folder.glob("*"))


def written(folder: Path) -> Iterator[tuple[int, int, bytes]]:
    """Return partition, offset and value of every row of the Parquet sink, by its own list of files."""
    for batch in sorted((folder / "out" / "_spark_metadata").glob("[0-9]*")):
        for line in batch.read_text().splitlines()[1:]:
            path = urllib.parse.unquote(re.sub("^file:/*", "/", json.loads(line)["path"]))
            table = pq.read_table(path, columns=["partition", "offset", "value"], partitioning=None)
            yield from zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)


@contextlib.contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[Program]]]:
    """Start a master and its workers on this machine; yield the master's address and the workers."""
    folder.mkdir(parents=True, exist_ok=True)
    spark_class = str(spark_home() / "bin" / "spark-class")
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
