"""What a process has used since a moment: wall, processor and memory."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

from kafkacore.bench.task import Answer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.process_statistics import cpu_seconds, peak_bytes, resident_bytes

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
