"""Measure the CPU time and memory of a JVM and its Python processes with Linux's ``/proc``."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkacore.bench.meter import MIB

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
#: Indexes of the fields of ``stat`` after the name in parentheses.
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14


@dataclass(frozen=True)
class Usage:
    """CPU seconds since the processes started, and the peak memory of each."""

    jvm_cpu_s: float
    #: CPU seconds of all descendants of the JVM, including those that have exited.
    python_cpu_s: float
    jvm_peak_mib: float
    #: Peak memory of each running Python process.
    python_peaks_mib: tuple[float, ...]

    @property
    def worker_peak_mib(self) -> float:
        """Peak memory of the largest Python process."""
        return max(self.python_peaks_mib, default=0.0)


def usage_of(jvm: int) -> Usage:
    """Return the usage of the JVM with process ID ``jvm`` and of its descendants."""
    stats = dict(_stats())
    own = stats[jvm]
    # The CPU time of an exited process is added to the parent that waited for it: the JVM or a Python daemon.
    python_ticks = _ticks(own, _CHILDREN_USER, _CHILDREN_SYSTEM)
    found = _below(jvm, stats)
    for pid in found:
        python_ticks += _ticks(stats[pid], _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM)
    return Usage(
        _ticks(own, _USER, _SYSTEM) / _TICKS_PER_S,
        python_ticks / _TICKS_PER_S,
        _peak_mib(jvm),
        tuple(_peak_mib(pid) for pid in found),
    )


def descendants(pid: int) -> dict[int, int]:
    """Return all descendants of ``pid``, each with its parent."""
    return _below(pid, dict(_stats()))


def _below(top: int, stats: dict[int, list[str]]) -> dict[int, int]:
    children = defaultdict(list)
    for pid, stat in stats.items():
        children[int(stat[_PARENT])].append(pid)
    found: dict[int, int] = {}
    left = [top]
    while left:
        parent = left.pop()
        found |= dict.fromkeys(children[parent], parent)
        left += children[parent]
    return found


def _stats() -> Iterator[tuple[int, list[str]]]:
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                text = (folder / "stat").read_text()
            except OSError:  # The process has just exited.
                continue
            yield int(folder.name), text.rpartition(")")[2].split()


def _ticks(stat: list[str], *fields: int) -> int:
    return sum(int(stat[at]) for at in fields)


def _peak_mib(pid: int) -> float:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / MIB for line in lines if line.startswith("VmHWM:")), 0.0)
