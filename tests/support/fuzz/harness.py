"""What fuzz targets have in common: bytes in, what is wrong with how they were taken out.

A target is a function that takes bytes from outside, with valid ones to begin with. Of whatever bytes it may
raise only the errors that are promised (:class:`~kafkacore.errors.KafkaError`), it must come back soon, and
take no more memory than the bytes could fill. Who makes the bytes is another's business: ``plain.py``,
hypothesis (``test_fuzz.py``) or atheris (``guided.py``). Does not know: what the bytes are.
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

#: Processor time of one input. A hang is far above; a busy machine's caches are far below.
LONGEST_S: Final = 2.0
#: What ``make fuzz`` holds an input of up to a megabyte to, the best of three times.
LONGEST_ALONE_S: Final = 0.1
#: Memory of Python's that an input may take at a time, before anything is decompressed.
MEMORY_PER_BYTE: Final = 8
MEMORY_BESIDE: Final = 64 * 1024
#: One input of so many is watched for its memory, which takes longer than the input itself.
WATCHED_EVERY: Final = 500
_LARGEST_INPUT = 1 << 20


@dataclass(frozen=True)
class Target:
    """A function that reads bytes from outside.

    Parameters
    ----------
    run:
        May raise KafkaErrors, and nothing else.
    corpus:
        Bytes that it takes without an error.
    head:
        How many bytes at the beginning mostly stay as they are: they choose what is read.
    takes_memory:
        Whether it may take more memory than the bytes could fill: it decompresses, or keeps state.
    """

    name: str
    run: Callable[[bytes], object]
    corpus: Sequence[bytes]
    head: int = 0
    takes_memory: bool = False


class Finding(NamedTuple):
    """An input, and what is wrong with how it was taken."""

    target: str
    data: bytes
    what: str

    def __str__(self) -> str:
        shown = self.data.hex() if len(self.data) <= 4096 else f"{self.data[:4096].hex()}…"
        return f"{self.target}: {self.what}\n  {len(self.data)} bytes: {shown}"


@dataclass
class Judge:
    """Runs a target on one input after the other.

    Parameters
    ----------
    longest_s:
        Processor time that an input may take.
    last:
        Where the input is written before it is tried, for the case that the process dies of it.
    """

    longest_s: float = LONGEST_S
    last: LastInput | None = None
    tried: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def take(self, target: Target, data: bytes) -> None:
        """Try one input; a finding is kept."""
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
            # The first of its kind may have imported a module.
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
        """Try what is valid: whatever is made when it is first wanted is there then; all of it is taken."""
        for data in target.corpus:
            before = self.refused
            self.take(target, data)
            if self.refused != before:
                self.findings.append(Finding(target.name, data, "is refused, and it is valid"))


class LastInput:
    """A file that has the input that is being tried, whatever becomes of the process."""

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
    """What is logged about bytes from outside is one line without control characters."""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        assert line.isprintable(), f"logs {line!r}"


# ---- Inputs out of inputs ----------------------------------------------------------------------------------
#: Lengths, counts and numbers that are on an edge somewhere.
_EDGES: Final = (
    b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\x00\x00", b"\x80\x00",
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00",
    b"\x00\x10\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x80\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x80" + b"\x00" * 7,
    b"99999999999999999999", b"-1", b"\n", b"[",
)  # fmt: skip
_EDGE_COUNT = len(_EDGES)


def mutated(data: bytes, other: bytes, chance: Callable[[], float], head: int) -> bytes:
    """``data`` with some of it changed, cut, doubled or replaced by a piece of ``other``.

    Parameters
    ----------
    chance:
        Numbers from 0 to 1 (``Random.random``).
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
            # Mostly once; now and then so often that what nests is deep, and what is counted is many.
            found[at:at] = found[at:end] * (1 + int(chance() ** 40 * 4000))
        else:
            begin = int(chance() * len(other))
            piece = other[begin : begin + 1 + int(chance() * 40)]
            found[at : at + len(piece)] = piece
    return bytes(found)


def random_inputs(target: Target, count: int, seed: int, judge: Judge) -> None:
    """Try ``count`` inputs, made from the corpus and from those before; the same with the same seed."""
    chance = Random(f"{target.name} {seed}").random
    pool = list(target.corpus)
    corpus_size = len(pool)
    for _ in range(count):
        data = pool[int(chance() * len(pool))]
        made = mutated(data, pool[int(chance() * corpus_size)], chance, target.head)
        refused = judge.refused
        judge.take(target, made)
        # What is still taken leads further than what is refused.
        if refused == judge.refused and len(made) < 4096 and chance() < 0.05:
            if len(pool) < 4 * corpus_size + 50:
                pool.append(made)
            else:
                pool[corpus_size + int(chance() * (len(pool) - corpus_size))] = made
