"""The harness of the fuzz targets: run a target on one input and report what is wrong.

A target is a function that reads untrusted bytes, together with valid inputs as a corpus. For any bytes it
may raise only the documented errors (:class:`~kafkacore.errors.KafkaError`), must return soon, and must use
no more memory than the input justifies. ``plain.py``, hypothesis (``test_fuzz.py``) or atheris
(``guided.py``) generate the inputs.
"""

from __future__ import annotations

import logging
import mmap
import struct
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from kafkacore.errors import KafkaError

#: CPU seconds of one input. A hang takes far longer; an input on a busy machine takes far less.
LONGEST_S: Final = 2.0
#: CPU seconds that ``make fuzz --strict`` allows for an input of up to a megabyte, as the best of three runs.
LONGEST_ALONE_S: Final = 0.1
#: Peak bytes of Python memory per byte of an input that is not decompressed.
MEMORY_PER_BYTE: Final = 8
MEMORY_BESIDE: Final = 64 * 1024
#: Memory is measured for one of this many inputs, because it takes longer than the input itself.
WATCHED_EVERY: Final = 500
_LARGEST_INPUT = 1 << 20


@dataclass(frozen=True)
class Target:
    """A function that reads untrusted bytes.

    Parameters
    ----------
    run:
        The function. It may raise only KafkaErrors.
    corpus:
        Inputs that it accepts without an error.
    head:
        Number of leading bytes that are rarely mutated, because they select the parser.
    takes_memory:
        Whether it may use more memory than the input justifies, because it decompresses or keeps state.
    """

    name: str
    run: Callable[[bytes], object]
    corpus: Sequence[bytes]
    head: int = 0
    takes_memory: bool = False


class Finding(NamedTuple):
    """An input, and the description of what went wrong."""

    target: str
    data: bytes
    what: str

    def __str__(self) -> str:
        shown = self.data.hex() if len(self.data) <= 4096 else f"{self.data[:4096].hex()}…"
        return f"{self.target}: {self.what}\n  {len(self.data)} bytes: {shown}"


@dataclass
class Judge:
    """Runs a target on one input after the other and collects findings.

    Parameters
    ----------
    longest_s:
        CPU seconds that an input may take.
    last:
        File to which each input is written before it is tried, in case the process crashes.
    """

    longest_s: float = LONGEST_S
    last: LastInput | None = None
    tried: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def take(self, target: Target, data: bytes) -> None:
        """Try one input, and keep a finding."""
        if self.last is not None:
            self.last.write(data)
        self.tried += 1
        if not target.takes_memory and self.tried % WATCHED_EVERY == 0:
            self._watch_memory(target, data)
            return
        began = time.thread_time()
        what = self._run(target, data)
        took = time.thread_time() - began
        if took > self.slowest_s:
            self.slowest_s = took
            if took > self.longest_s and self._best_of_three(target, data) > self.longest_s:
                what = what or f"takes {took * 1e3:.0f} ms of processor time"
        if what is not None:
            self.findings.append(Finding(target.name, data, what))

    def _run(self, target: Target, data: bytes) -> str | None:
        try:
            target.run(data)
        except KafkaError:
            self.refused += 1
        except AssertionError as error:
            return f"assertion failed: {error}"
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return f"raises {type(error).__name__}: {error}"
        return None

    def _watch_memory(self, target: Target, data: bytes) -> None:
        most = MEMORY_PER_BYTE * len(data) + MEMORY_BESIDE
        what, peak = self._run_watched(target, data)
        if what is None and peak > most:
            # Measure again: the first input of a kind may have imported a module.
            what, peak = self._run_watched(target, data)
        if what is None and peak > most:
            what = f"takes {peak} bytes of memory for {len(data)}"
        if what is not None:
            self.findings.append(Finding(target.name, data, what))

    def _run_watched(self, target: Target, data: bytes) -> tuple[str | None, int]:
        tracemalloc.start()
        try:
            return self._run(target, data), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def _best_of_three(self, target: Target, data: bytes) -> float:
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            self._run(target, data)
            best = min(best, time.thread_time() - began)
        return best

    def take_corpus(self, target: Target) -> None:
        """Try the valid inputs, which must all be accepted. This also fills caches made on first use."""
        for data in target.corpus:
            before = self.refused
            self.take(target, data)
            if self.refused != before:
                self.findings.append(Finding(target.name, data, "is refused, and it is valid"))


class LastInput:
    """A file that stores the input being tried, so that it survives a crash of the process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8 + _LARGEST_INPUT))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    def write(self, data: bytes) -> None:
        kept = data[:_LARGEST_INPUT]
        self._memory[: 8 + len(kept)] = struct.pack(">q", len(kept)) + kept

    @staticmethod
    def read(path: Path) -> bytes:
        data = path.read_bytes()
        (size,) = struct.unpack_from(">q", data)
        return data[8 : 8 + size]


class PrintableLines(logging.Handler):
    """A log handler that requires messages to be one line without control characters."""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        assert line.isprintable(), f"logs {line!r}"


# ---- Mutations ---------------------------------------------------------------------------------------------
#: Boundary values of lengths, counts and numbers.
_EDGES: Final = (
    b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\x00\x00", b"\x80\x00",
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00",
    b"\x00\x10\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x80\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x80" + b"\x00" * 7,
    b"99999999999999999999", b"-1", b"\n", b"[",
)  # fmt: skip
_EDGE_COUNT = len(_EDGES)


def mutated(data: bytes, other: bytes, chance: Callable[[], float], head: int) -> bytes:
    """Return ``data`` with a part changed, cut, repeated, or replaced by a piece of ``other``.

    Parameters
    ----------
    chance:
        Function that returns random numbers from 0 to 1 (``Random.random``).
    """
    found = bytearray(data)
    if chance() < 0.03:
        head = 0
    for _ in range(1 + int(chance() * chance() * 5)):
        size = len(found) - head
        if size <= 0:
            found += _EDGES[int(chance() * _EDGE_COUNT)]
            continue
        at = head + int(chance() * size)
        how = int(chance() * 16)
        if how < 5:
            found[at] ^= 1 << int(chance() * 8)
        elif how < 7:
            found[at] = int(chance() * 256)
        elif how < 11:
            edge = _EDGES[int(chance() * _EDGE_COUNT)]
            found[at : at + len(edge)] = edge
        elif how == 11:
            del found[at : at + 1 + int(chance() * 8)]
        elif how == 12:
            found[at:at] = _EDGES[int(chance() * _EDGE_COUNT)]
        elif how == 13:
            del found[at:]
        elif how == 14:
            end = at + 1 + int(chance() * 40)
            # Usually repeat once, but sometimes often enough for deep nesting and large counts.
            found[at:at] = found[at:end] * (1 + int(chance() ** 40 * 4000))
        else:
            begin = int(chance() * len(other))
            piece = other[begin : begin + 1 + int(chance() * 40)]
            found[at : at + len(piece)] = piece
    return bytes(found)


def random_inputs(target: Target, count: int, seed: int, judge: Judge) -> None:
    """Try ``count`` inputs derived from the corpus and from earlier inputs, reproducible by the seed."""
    chance = Random(f"{target.name} {seed}").random
    pool = list(target.corpus)
    corpus_size = len(pool)
    for _ in range(count):
        data = pool[int(chance() * len(pool))]
        made = mutated(data, pool[int(chance() * corpus_size)], chance, target.head)
        refused = judge.refused
        judge.take(target, made)
        # An input that is still accepted leads to deeper code than one that is rejected.
        if refused == judge.refused and len(made) < 4096 and chance() < 0.05:
            if len(pool) < 4 * corpus_size + 50:
                pool.append(made)
            else:
                pool[corpus_size + int(chance() * (len(pool) - corpus_size))] = made
