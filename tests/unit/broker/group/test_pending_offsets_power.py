"""Offsets in transactions while the power is lost, or the process is killed, at every call of the disk."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from model.dose import dose
from model.group_life import GroupLife

from kafkacore.broker.coordinator.interfaces import Producer
from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

P, Q = Producer(10, 0), Producer(11, 0)
WAYS_TO_LOSE = dose(2, 50)

#: Steps of a group: commits in a transaction or outside of one (no producer), and ends of transactions.
STEPS: tuple[tuple[Producer | None, dict[int, int] | bool], ...] = (
    (None, {0: 1}),
    (P, {0: 2, 1: 2}),
    (Q, {2: 3}),
    (None, {1: 4}),
    (P, True),
    (Q, False),
    (P, {0: 5}),
    (Q, {0: 6, 2: 6}),
    (Q, True),
)
#: Committed offsets, and partitions with pending ones, before the first step and after each.
STATES: tuple[tuple[dict[int, int], set[int]], ...] = (
    ({}, set()),
    ({0: 1}, set()),
    ({0: 1}, {0, 1}),
    ({0: 1}, {0, 1, 2}),
    ({0: 1, 1: 4}, {0, 1, 2}),
    ({0: 2, 1: 4}, {2}),
    ({0: 2, 1: 4}, set()),
    ({0: 2, 1: 4}, {0}),
    ({0: 2, 1: 4}, {0, 2}),
    ({0: 6, 1: 4, 2: 6}, {0}),
)


def take_steps(life: GroupLife) -> None:
    for producer, what in STEPS:
        if not isinstance(what, bool):
            life.commit(producer, what)
        else:
            assert producer is not None
            life.end(producer, what)
        life.broker.flush()
    assert life.safe == len(STEPS)


def loses_power_after(calls: int) -> Callable[[int, str, Path], BaseException | None]:
    """Return a fault of a disk that lets ``calls`` calls pass."""
    left = calls

    def fault(number: int, verb: str, path: Path) -> BaseException | None:
        nonlocal left
        if number < 0:
            return None
        left -= 1
        return PowerLossError(verb) if left < 0 else None

    return fault


def lives(folder: Path) -> Generator[tuple[str, GroupLife]]:
    """Yield a restarted broker after each way in which the power or the process was lost."""
    base = SimulatedDisk()
    first = GroupLife(folder, base)
    first.create()
    first.broker.server.close()
    first.broker.stop()
    for calls in count():
        for way in range(-1, WAYS_TO_LOSE):
            disk = base.copy()
            life = GroupLife(folder, disk)
            disk.fault = loses_power_after(calls)
            has_ended = False
            try:
                take_steps(life)
                has_ended = True
            except PowerLossError:
                pass
            finally:
                life.broker.abandon()
            clock = VirtualClock(seed=1000 * calls + way)
            after = GroupLife(folder, disk.kill_process() if way < 0 else disk.lose_power(clock))
            after.sent, after.safe = life.sent, life.safe
            try:
                yield f"call {calls}, way {way}", after
            finally:
                after.broker.abandon()
        if has_ended:
            return


def findings_of(folder: Path) -> Generator[str]:
    for when, life in lives(folder):
        states = STATES[life.safe : life.sent + 1]
        found = life.state()
        if found not in states:
            yield f"{when}: {found}, but {life.safe} to {life.sent} steps were taken"
            continue
        # Both transactions can be ended now, and only the offsets that were pending count.
        committed, pending = found
        life.end(P, False)
        life.end(Q, True)
        after = life.state()
        if after[1] or not committed.keys() <= after[0].keys() <= committed.keys() | pending:
            yield f"{when}: {after} after the end of both transactions, and {found} before"


@pytest.mark.timeout(dose(120, 1_800))
def test_no_loss_of_power_shows_or_loses_an_offset_of_a_transaction(tmp_path: Path) -> None:
    assert list(findings_of(tmp_path)) == []


def test_offset_that_is_acknowledged_too_early_is_found(tmp_path: Path) -> None:
    planted = patch.object(PendingAppends, "_wait", lambda pending, timeout_ms, on_safe: on_safe(0))
    with planted, closing(findings_of(tmp_path)) as findings:
        assert next(findings, None) is not None
