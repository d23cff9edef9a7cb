"""The ``kafkacore`` command as a child process, and checks for processes that it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.spark.session import SHORT_LIVED_JVM


class Command:
    """A ``kafkacore …`` child process in its own process group, as a terminal starts it."""

    def __init__(self, *arguments: str) -> None:
        self.lines: list[str] = []
        self._said = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kafkacore.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM},
            process_group=0,
            # The test runner may ignore Ctrl-C, and a child would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._said:
                self.lines.append(line.decode().rstrip())
                self._said.notify_all()
        with self._said:
            self._ended = True
            self._said.notify_all()

    def wait_until_it_says(self, *texts: str) -> None:
        """Wait for a line with one of the texts."""

        def says() -> bool:
            return any(text in line for line in self.lines for text in texts)

        with self._said:
            said = SYSTEM_CLOCK.wait_for(self._said, lambda: self._ended or says(), 2 * BUDGET_MS)
        assert said, self.lines
        assert says(), self.lines

    def interrupt(self, number: int = signal.SIGINT, group: bool = True) -> None:
        (os.killpg if group else os.kill)(self.process.pid, number)

    def end(self) -> int:
        """Wait until the command ends by itself, and return its exit status."""
        status = self.process.wait(2 * BUDGET_S)
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def stop(self) -> None:
        """Kill the command if it runs, and close its pipes."""
        if self.process.poll() is None:
            self.process.kill()
        self.end()


@pytest.fixture
def start() -> Iterator[Callable[..., Command]]:
    with ExitStack() as started:

        def start(*arguments: str) -> Command:
            command = Command(*arguments)
            started.callback(command.stop)
            return command

        yield start


def processes_that_name(folder: Path) -> list[str]:
    """Return the command lines and open files of running processes that contain the folder's name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                files = b"".join(os.readlink(file).encode() for file in (entry / "fd").iterdir())
            except OSError:
                continue
            if str(folder).encode() in words + files:
                found.append(f"{entry.name}: {words[:80]!r}")
    return found


@pytest.fixture
def assert_nothing_left() -> Callable[[Path], None]:
    """Return a check that no process of the command is left.

    The JVM and the workers write their output to a file in the folder, so the check finds them by their open
    files.
    """

    def check(folder: Path) -> None:
        eventually(lambda: not processes_that_name(folder), lambda: processes_that_name(folder))

    return check


@pytest.fixture
def make_topic(our_broker, request) -> Callable[[list[bytes]], str]:
    """Return a function that creates a topic of one partition, named after the test, with these values."""
    from kafkacore import KafkaProducer

    def make(values: list[bytes], name: str = request.node.name) -> str:
        topic = "".join(c if c.isalnum() else "-" for c in name)
        with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            futures = [producer.send(topic, value, partition=0) for value in values]
            producer.flush()
        assert all(future.succeeded() for future in futures)
        return topic

    return make
