"""What a process has used since a moment: wall, processor and memory.

Does not know: what it did.
"""

from __future__ import annotations

import gc
import os
import resource
from contextlib import suppress
from pathlib import Path

from kafkacore.bench.task import Answer
from kafkacore.clock import SYSTEM_CLOCK

_STATUS = Path("/proc/self/status")
#: Written to ``clear_refs``, it sets the peak of the resident memory back to what is resident now.
_RESET_PEAK = "5"
MIB = 1 << 20


class Meter:
    """Started when it is made; :meth:`stop` says what was used since."""

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError):  # Not Linux: then the peak is that of the whole process.
            Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
        self._start_rss = resident_bytes()
        self._cpu_s = cpu_seconds()
        self._start_ms = SYSTEM_CLOCK.monotonic_ms()

    def stop(self) -> Answer:
        """Wall and processor seconds (user and system, all threads) and resident memory in MiB."""
        seconds = (SYSTEM_CLOCK.monotonic_ms() - self._start_ms) / 1000
        return {
            "seconds": seconds,
            "cpu_s": cpu_seconds() - self._cpu_s,
            "start_rss_mib": self._start_rss / MIB,
            "peak_rss_mib": peak_bytes() / MIB,
        }


def cpu_seconds() -> float:
    """User and system time of this process, all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    """Resident memory now; the peak where there is no ``/proc``."""
    return _status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """The most resident memory since the last reset.

    Not ``ru_maxrss`` where it can be helped: a child inherits that from who started it.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":")), 0)


def process_cpu_seconds(pid: int) -> float | None:
    """User and system time of another process, or ``None`` if it cannot be looked at."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
