"""This process and everything that it has started, the JVM and the broker among them: what CPU time they
took, and that none of them is left.
"""

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
#: How often to look whether processes have ended.
LOOK_MS = 50.0


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    state: str
    #: When it started: with ``pid`` its identity.
    started: int
    own_ticks: int
    #: Of its ended children, as far as it has waited for them.
    ended_ticks: int

    @property
    def ticks(self) -> int:
        return self.own_ticks + self.ended_ticks


class CpuMeter:
    """User and system time of this process and its living and ended descendants, in seconds.

    The kernel hands the time of an ended process to its parent if that waits for it, and otherwise drops
    it: that of PySpark's workers, for one, whose parent ignores their ends. So each look remembers what it
    saw, and what has ended since and was handed to nobody is added. Look now and then: what a process did
    after the last look at it may be missed.

    Without ``/proc`` (not Linux): this process and the children that it has waited for.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Process] = {}
        self._dropped_ticks = 0

    def seconds(self) -> float:
        """Look, and give the sum up to now. It never falls."""
        if not (_PROC / "self" / "stat").exists():
            own, ended = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
        now = {process.pid: process for process in _tree()}
        self._dropped_ticks += self._dropped(now)
        self._seen = now
        return (sum(process.ticks for process in now.values()) + self._dropped_ticks) / _TICKS_PER_SECOND

    def _dropped(self, now: dict[int, _Process]) -> int:
        """Ticks of what has ended since the last look and has not been handed to who is still there."""
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
    """Wait for everything that this process has started to end, and kill what has not.

    Parameters
    ----------
    grace_ms:
        How long they may take, in milliseconds.

    Returns
    -------
    list[int]
        Ids of the processes that had to be killed. Without ``/proc`` (not Linux) none is known.
    """
    deadline_ms = clock.monotonic_ms() + grace_ms
    while left := [process.pid for process in _tree() if process.pid != os.getpid() and process.state != "Z"]:
        if clock.monotonic_ms() >= deadline_ms:
            for pid in left:
                with suppress(ProcessLookupError):  # It has ended by itself since it was listed.
                    os.kill(pid, signal.SIGKILL)
            return left
        clock.sleep_ms(LOOK_MS)
    return []


def _tree() -> Iterator[_Process]:
    """This process first, then its living descendants."""
    known: dict[int, _Process] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            # The command's name may hold spaces and brackets; what follows its last bracket does not.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended since it was listed; its parent's figures hold its time.
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
