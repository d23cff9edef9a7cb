"""Memory, CPU time and open files of a process, as reported by the operating system."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """Return the resident memory of this process, or the peak of that memory on systems without ``/proc``."""
    return _memory("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Return the peak resident memory of this process since the peak was last reset.

    ``ru_maxrss`` is used only on systems without ``/proc``, because a child process inherits the parent's
    peak.
    """
    return _memory("VmHWM") or _max_rss_bytes()


def _memory(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":")), 0)


def _max_rss_bytes() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def cpu_seconds() -> float:
    """Return the user and system CPU time of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def process_cpu_seconds(pid: int) -> float | None:
    """Return the user and system CPU time of a process, or ``None`` if the time cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files() -> int:
    """Return the number of open file descriptors of this process, or -1 if that is unknown."""
    for place in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(place))
        except OSError:
            continue
    return -1
