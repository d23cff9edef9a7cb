"""Heartbeats sent by a native thread while the GIL is held."""

from __future__ import annotations

import ctypes

from eventually import BUDGET_S

from kafkacore.network import NativeHeartbeat

SHORTEST_S = 0.25


def beats_while_gil_is_held(heartbeat: NativeHeartbeat, least: int, interval_ms: float = 0.0) -> int:
    """Hold the GIL in a C call in which ``heartbeat`` sends at least ``least`` beats; return their number.

    The first call lasts a fifth longer than the beats should take. If the heartbeat sends fewer, the call is
    repeated with twice the duration, so that a slow machine has enough time.

    Parameters
    ----------
    interval_ms:
        Interval of the heartbeat, if it is long.
    """
    duration_s = max(SHORTEST_S, 1.2 * least * interval_ms / 1_000)
    while True:
        before = heartbeat.sent_count
        # PyDLL, unlike CDLL, keeps the GIL during the call, so no Python code runs.
        ctypes.PyDLL(None).usleep(int(duration_s * 1_000_000))
        beats = heartbeat.sent_count - before
        if beats >= least:
            return beats
        duration_s *= 2
        assert duration_s < BUDGET_S, f"{beats} beats in {duration_s / 2} s, not {least}"
