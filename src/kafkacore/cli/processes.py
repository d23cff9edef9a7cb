"""Measures the CPU time of this process and its descendants, such as the JVM, and stops the descendants."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kafkacore.clock import SYSTEM_CLOCK, Clock

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
#: Interval between checks whether processes have exited.
LOOK_MS = 50.0


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    state: str
    #: Start time, which identifies the process together with ``pid``.
    started: int
    own_ticks: int
    #: CPU time, in clock ticks, of exited children that the process has waited for.
    ended_ticks: int

    @property
    def ticks(self) -> int:
        return self.own_ticks + self.ended_ticks


class CpuMeter:
    """User and system time of this process and its running and exited descendants, in seconds.

    The kernel adds the time of an exited process to its parent only if the parent waits for it. The parent of
    PySpark's workers does not wait. Therefore each call remembers the running processes, and adds the time of
    processes that have exited since the previous call. The time that a process uses between the last call and
    its exit is missed.

    Without ``/proc`` (not on Linux), only this process and children that it has waited for are counted.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Process] = {}
        self._dropped_ticks = 0

    def seconds(self) -> float:
        """Return the total time so far, which never decreases."""
        if not (_PROC / "self" / "stat").exists():
            own, ended = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
        now = {process.pid: process for process in _tree()}
        self._dropped_ticks += self._dropped(now)
        self._seen = now
        return (sum(process.ticks for process in now.values()) + self._dropped_ticks) / _TICKS_PER_SECOND

    def _dropped(self, now: dict[int, _Process]) -> int:
        """Return the CPU ticks of exited processes that the kernel did not add to a running ancestor."""
        ended_below: dict[int, int] = {}
        for process in self._seen.values():
            if not _same(process, now.get(process.pid)):
                heir = self._seen.get(process.parent)
                while heir is not None and not _same(heir, now.get(heir.pid)):
                    heir = self._seen.get(heir.parent)
                if heir is not None:
                    ended_below[heir.pid] = ended_below.get(heir.pid, 0) + process.ticks
        return sum(
            max(0, ticks - (now[pid].ended_ticks - self._seen[pid].ended_ticks))
            for pid, ticks in ended_below.items()
        )


def _same(one: _Process, other: _Process | None) -> bool:
    return other is not None and one.started == other.started


def end_descendants(grace_ms: float, clock: Clock = SYSTEM_CLOCK) -> list[int]:
    """Wait for all descendants to exit, and kill those that are still running after ``grace_ms``.

    Parameters
    ----------
    grace_ms:
        Maximum time to wait, in milliseconds.

    Returns
    -------
    list[int]
        Ids of the killed processes. The list is always empty without ``/proc`` (not on Linux).
    """
    deadline_ms = clock.monotonic_ms() + grace_ms
    while left := [process.pid for process in _tree() if process.pid != os.getpid() and process.state != "Z"]:
        if clock.monotonic_ms() >= deadline_ms:
            for pid in left:
                with suppress(ProcessLookupError):  # The process has exited since it was listed.
                    os.kill(pid, signal.SIGKILL)
            return left
        clock.sleep_ms(LOOK_MS)
    return []


def _tree() -> Iterator[_Process]:
    """Yield this process and then its running descendants."""
    known: dict[int, _Process] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            # The name of the command may contain spaces and brackets; the fields follow the last bracket.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # The process has exited since it was listed; its parent's time includes it.
        pid, parent = int(entry.name), int(fields[1])
        own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        known[pid] = _Process(pid, parent, fields[0], int(fields[19]), own, ended)
        children.setdefault(parent, []).append(pid)
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        if pid in known:
            yield known[pid]
        waiting += children.get(pid, [])
