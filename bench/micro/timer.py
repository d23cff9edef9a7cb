"""Measure the broker's cost of group heartbeats: each one moves a deadline 45 seconds ahead.

    python -m pytest bench/micro/timer.py --benchmark-enable

The peer is a heap that keeps cancelled entries until they outnumber the live ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import pytest

from kafkacore.broker.purgatory.timer import Timer, TimerTask

SESSION_MS = 45_000.0
HEARTBEAT_MS = 3_000.0


class Session(TimerTask):
    def run(self) -> None:
        raise AssertionError("a session expired although every member sent heartbeats in time")


def wheel(members: int) -> Callable[[], None]:
    timer, now = Timer(), 0.0
    sessions = [Session() for _ in range(members)]

    def beat() -> None:
        nonlocal now
        for session in sessions:
            timer.add(now + SESSION_MS, session)
            now += HEARTBEAT_MS / members
        timer.advance(now)

    return beat


def heap(members: int) -> Callable[[], None]:
    entries: list[tuple[float, int]] = []
    live: dict[int, int] = {}
    number, now = 0, 0.0

    def beat() -> None:
        nonlocal number, now, entries
        for member in range(members):
            number += 1
            live[member] = number
            heapq.heappush(entries, (now + SESSION_MS, number))
            now += HEARTBEAT_MS / members
        if len(entries) > 2 * members:
            numbers = set(live.values())
            entries = [entry for entry in entries if entry[1] in numbers]
            heapq.heapify(entries)

    return beat


@pytest.mark.parametrize("peer", [wheel, heap])
def test_heartbeats(benchmark: Any, peer: Callable[[int], Callable[[], None]], record_count: int) -> None:
    benchmark.extra_info["members"] = record_count // 10
    benchmark(peer(record_count // 10))
