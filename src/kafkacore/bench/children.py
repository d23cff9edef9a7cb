"""Workers as child processes: started, listened to, never left behind.

A command in, lines of JSON out. Does not know: what they do.
"""

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
#: A worker that has said nothing for so long may be waiting for a broker that is gone.
SILENCE_S = 10.0
#: The line of a traceback that says what was wrong, Python's or Java's.
_ERROR = re.compile(r"(Exception in thread \S+ |Caused by: )?[\w.]+(Error|Exception|Timeout)\b")


#: What its lines hold: a ``TypedDict`` of the program that runs.
AnswerT = TypeVar("AnswerT")


class WorkerError(KafkaError):
    """A worker ended without its result; the message is the last that it said."""


class Worker(Generic[AnswerT]):
    """A child that answers with lines of JSON; leaving the ``with`` block kills it if it still runs.

    Parameters
    ----------
    command:
        Program and arguments.
    limit_s:
        How long it may take in all, in seconds.
    look:
        Called for every ``silence_s`` without an answer; what it raises ends the wait.
    """

    def __init__(
        self,
        command: Sequence[str],
        limit_s: float,
        look: Callable[[], None] = lambda: None,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._look = look
        self._silence_s = silence_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._deadline_ms = SYSTEM_CLOCK.monotonic_ms() + limit_s * 1000
        self._limit_s = limit_s
        self._buffer = b""
        # A session of its own: Ctrl-C reaches the parent alone, which ends us in the right order. The child
        # ends with its standard input, which only we hold.
        self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def tell(self, line: str) -> None:
        """Write a line to its standard input; one that has ended is not told."""
        assert self._process.stdin is not None
        # Past the buffer, which would be written when the pipe is closed, perhaps to nobody.
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), line.encode() + b"\n")

    def answer(self) -> AnswerT:
        """The next line of JSON; what is not JSON is passed over.

        Raises
        ------
        WorkerError
            If it ended or took too long.
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
                raise WorkerError(f"not done after {self._limit_s:g} s")
            if select.select([descriptor], [], [], min(left_s, self._silence_s))[0]:
                break
            self._look()
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            status = self._process.wait()
            raise WorkerError(self._last_words() or f"ended with status {status}")
        self._buffer += chunk

    def _last_words(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _TAIL_BYTES))
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        # A traceback ends with it, but a finalizer may speak after that.
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
            # Its result is out: what is left is the end of the interpreter.
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        finally:
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                if pipe is not None:
                    pipe.close()
