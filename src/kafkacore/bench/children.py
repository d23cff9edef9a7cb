"""Child processes that answer with lines of JSON and never outlive their parent."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError

_CHUNK_BYTES = 65_536
_TAIL_BYTES = 16_000
#: After this number of seconds without an answer, the broker is checked, because the worker may be waiting
#: for the broker.
SILENCE_S = 10.0
#: The line with the error in a traceback of Python or Java.
_ERROR = re.compile(r"(Exception in thread \S+ |Caused by: )?[\w.]+(Error|Exception|Timeout)\b")


#: Type of an answer: a ``TypedDict`` that the program defines.
AnswerT = TypeVar("AnswerT")


class WorkerError(KafkaError):
    """A worker ended without a result. The message is the last error that the worker printed."""


class Worker(Generic[AnswerT]):
    """Child process that answers with lines of JSON.

    It is a context manager. Leaving the block kills the process if it still runs.

    Parameters
    ----------
    command:
        Program and arguments.
    limit_s:
        Maximum run time in seconds.
    check_alive:
        Function that is called every ``silence_s`` without an answer. An exception that it raises ends the
        wait.
    silence_s:
        Seconds without an answer before ``check_alive`` is called.
    """

    def __init__(
        self,
        command: Sequence[str],
        limit_s: float,
        check_alive: Callable[[], None] = lambda: None,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._check_alive = check_alive
        self._silence_s = silence_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._deadline_ms = SYSTEM_CLOCK.monotonic_ms() + limit_s * 1000
        self._limit_s = limit_s
        self._buffer = b""
        # The child has a session of its own and does not receive Ctrl-C, so that the parent can stop it in an
        # orderly way. The child exits when its standard input ends.
        self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def send_line(self, line: str) -> None:
        """Write a line to the standard input of the process, unless it has exited."""
        assert self._process.stdin is not None
        # Bypass the buffer: if the process has exited, closing a pipe with buffered data raises an error.
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), line.encode() + b"\n")

    def answer(self) -> AnswerT:
        """Return the next line of JSON. Other lines are ignored.

        Raises
        ------
        WorkerError
            The process exited or took too long.
        """
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if not found:
                self._read_more()
                continue
            self._buffer = rest
            try:
                answer: AnswerT = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict):
                return answer

    def _read_more(self) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while True:
            left_s = (self._deadline_ms - SYSTEM_CLOCK.monotonic_ms()) / 1000
            if left_s <= 0:
                raise WorkerError(f"the process has not finished after {self._limit_s:g} s")
            if select.select([descriptor], [], [], min(left_s, self._silence_s))[0]:
                break
            self._check_alive()
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            status = self._process.wait()
            raise WorkerError(self._last_error() or f"exited with status {status}")
        self._buffer += chunk

    def _last_error(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _TAIL_BYTES))
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        # The error is the last line of a traceback, but finalizers may print more lines after it.
        named = [line for line in lines if _ERROR.match(line)]
        return (named or lines or [""])[-1].strip()

    def __enter__(self) -> Worker[AnswerT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._process.poll() is None and kind is not None:
            self._process.kill()
        try:
            # The result has been received, so only the interpreter has to exit.
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        finally:
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                if pipe is not None:
                    pipe.close()
