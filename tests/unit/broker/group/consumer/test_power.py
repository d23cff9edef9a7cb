"""Members of a consumer group whose broker is stopped, killed, and loses power at random calls of the disk.

A partition never has two owners, no epoch goes back, no member that has joined becomes unknown, and the group
becomes stable afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from model.dose import dose, new_seed, note
from model.power_group import PowerGroup

from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.broker.group.consumer.reconciliation import Reconciliation

#: Number of groups, and of interruptions of each.
RUNS, LOSSES = dose(8, 1_000), 12


@pytest.mark.timeout(dose(120, 1_800))
def test_group_survives_losses_of_power(tmp_path: Path) -> None:
    seed = new_seed()
    assignments = fenced = 0
    for number in range(RUNS):
        run = PowerGroup(seed + number, tmp_path)
        assert run.run(LOSSES) == []
        assignments += run.assignments
        fenced += run.fenced
    note("losses of power in a group", seed, states=RUNS * LOSSES, assignments=assignments, fenced=fenced)
    assert assignments > RUNS * LOSSES


# ---- Planted bugs ------------------------------------------------------------------------------------------


def answer_before_the_disk(patch: pytest.MonkeyPatch) -> None:
    """Answer a heartbeat before its records are safe."""
    patch.setattr(PendingAppends, "_wait", lambda pending, timeout_ms, on_safe: on_safe(0))


def give_partitions_that_are_owned(patch: pytest.MonkeyPatch) -> None:
    """Assign a partition before its owner has given it up."""
    patch.setattr(Reconciliation, "_is_free", lambda *_: True)


@pytest.mark.parametrize("plant", [answer_before_the_disk, give_partitions_that_are_owned])
def test_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(PowerGroup(seed, tmp_path).run(LOSSES) for seed in range(20))
