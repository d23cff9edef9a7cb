"""Measure the wall time, CPU time and memory that this process uses."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

from kafkacore.bench.task import Answer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.process_statistics import cpu_seconds, peak_bytes, resident_bytes

#: Value that resets the peak of the resident memory when written to ``clear_refs``.
_RESET_PEAK = "5"
MIB = 1 << 20


class Meter:
    """Measurement that starts when the object is created and ends with :meth:`stop`."""

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError):  # Outside Linux, the peak since the start of the process is reported.
            Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
        self._start_rss = resident_bytes()
        self._cpu_s = cpu_seconds()
        self._start_ms = SYSTEM_CLOCK.monotonic_ms()

    def stop(self) -> Answer:
        """Return wall seconds, CPU seconds (user and system, all threads) and resident memory in MiB."""
        seconds = (SYSTEM_CLOCK.monotonic_ms() - self._start_ms) / 1000
        return {
            "seconds": seconds,
            "cpu_s": cpu_seconds() - self._cpu_s,
            "start_rss_mib": self._start_rss / MIB,
            "peak_rss_mib": peak_bytes() / MIB,
        }
