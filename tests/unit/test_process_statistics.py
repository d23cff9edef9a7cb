"""Memory, CPU time and open files of a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkacore import process_statistics
from kafkacore.process_statistics import (
    cpu_seconds,
    open_files,
    peak_bytes,
    process_cpu_seconds,
    resident_bytes,
)


def test_peak_is_at_least_what_is_resident() -> None:
    assert 0 < resident_bytes() <= peak_bytes()


def test_without_proc_the_largest_resident_size_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_statistics, "_STATUS", Path("/nowhere"))
    assert resident_bytes() == peak_bytes() > 1 << 20


def test_processor_time_is_that_of_the_process() -> None:
    before = cpu_seconds()
    own = process_cpu_seconds(os.getpid())
    assert own is not None
    # The kernel counts the CPU time of a process in clock ticks.
    assert abs(own - before) < 1.0
    assert process_cpu_seconds(2**30) is None


def test_open_files_counts_descriptors() -> None:
    before = open_files()
    first, second = os.pipe()
    assert open_files() == before + 2
    os.close(first)
    os.close(second)
