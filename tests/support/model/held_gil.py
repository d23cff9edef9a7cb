"""Heartbeats that a native thread sends while the GIL is held."""

from __future__ import annotations

import ctypes

from eventually import BUDGET_S

from kafkacore.network import NativeHeartbeat

SHORTEST_S = 0.25


def beats_while_gil_is_held(heartbeat: NativeHeartbeat, least: int) -> int:
    """Hold the GIL in one C call in which ``heartbeat`` sends at least ``least`` beats; return their number.

    A call in which it sends fewer is followed by one that is twice as long, so that a slow machine has time.
    """
    duration_s = SHORTEST_S
    while True:
        before = heartbeat.sent_count
        # PyDLL, unlike CDLL, keeps the GIL during the call: no Python runs meanwhile.
        ctypes.PyDLL(None).usleep(int(duration_s * 1_000_000))
        beats = heartbeat.sent_count - before
        if beats >= least:
            return beats
        duration_s *= 2
        assert duration_s < BUDGET_S, f"{beats} beats in {duration_s / 2} s, not {least}"
