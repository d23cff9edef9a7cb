"""CPU seconds of this process and of everything that it has started, the JVM and the broker among them."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_PROC = Path("/proc")


def tree_cpu_seconds() -> float:
    """User and system time of this process and its living and ended descendants.

    Without ``/proc`` (not Linux): this process and the children that have ended.
    """
    if not (_PROC / "self" / "stat").exists():
        own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command's name may hold spaces and brackets; what follows its last bracket does not.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended since it was listed; its parent's figures hold its time.
        ticks[int(entry.name)] = sum(int(field) for field in fields[11:15])
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")
