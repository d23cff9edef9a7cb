"""Transactions of the whole broker, with the power lost at every call of the disk.

After each loss: nothing committed is lost, nothing aborted is seen, no transaction is partial, and the offset
of each group is that of the last transaction that is visible.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model.dose import dose, new_seed, note
from model.power_transactions import PLACES, AskError, PowerTransactions

from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.coordinator.pending import OnSafe
from kafkacore.broker.group.marker_targets import MarkerTargets
from kafkacore.broker.transaction.transaction_coordinator import TransactionCoordinator
from kafkacore.broker.transaction.transaction_log import TransactionLog
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata
from kafkacore.structs import TopicPartition

#: Transactions of each producer in a life, before and after a restart.
TRANSACTIONS = 3
STATES = dose(150, 10_000)


@pytest.mark.timeout(dose(120, 1_800))
def test_transactions_survive_a_loss_of_power_at_every_disk_call(tmp_path: Path) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    states = committed = aborted = 0
    while states < STATES:
        of_workload = chance.getrandbits(30)
        calls = PowerTransactions(of_workload, tmp_path).live(TRANSACTIONS)
        step = dose(max(calls // STATES, 1), 1)
        for call in itertools.islice(range(chance.randrange(step), calls, step), STATES - states):
            run = PowerTransactions(of_workload, tmp_path)
            run.live(TRANSACTIONS, call)
            run.lose_power()
            where = f"workload {of_workload}, call {call}"
            assert (where, run.check()) == (where, [])
            states += 1
            ended = [each for of in run.producers for each in of.transactions if each.is_ended]
            committed += sum(each.commits for each in ended)
            aborted += sum(not each.commits for each in ended)
    note("losses of power in transactions", seed, states=states, committed=committed, aborted=aborted)
    assert committed > STATES
    assert aborted > STATES // 10


# ---- Planted bugs ------------------------------------------------------------------------------------------


def answer_before_the_disk(patch: pytest.MonkeyPatch) -> None:
    """Report the outcome of a transaction before its record is safe."""
    write = TransactionLog.write

    def written(log: TransactionLog, metadata: TransactionMetadata, on_safe: OnSafe) -> None:
        write(log, metadata, lambda code: None)
        on_safe(0)

    patch.setattr(TransactionLog, "write", written)


def lose_a_marker(patch: pytest.MonkeyPatch) -> None:
    """Write no marker to the second partition."""
    append = MarkerTargets.__call__

    def appended(targets: MarkerTargets, place: TopicPartition, marker: EndTransactionMarker) -> Any:
        return append(targets, PLACES[0] if place == PLACES[1] else place, marker)

    patch.setattr(MarkerTargets, "__call__", appended)


def forget_the_outcome(patch: pytest.MonkeyPatch) -> None:
    """Do not continue a transaction whose outcome was decided before a restart."""
    patch.setattr(TransactionCoordinator, "partition_loaded", lambda coordinator, partition: None)


def abort_what_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Write markers that abort, whatever the outcome is."""
    append = MarkerTargets.__call__

    def appended(targets: MarkerTargets, place: TopicPartition, marker: EndTransactionMarker) -> Any:
        return append(targets, place, marker._replace(commit=False) if place == PLACES[1] else marker)

    patch.setattr(MarkerTargets, "__call__", appended)


@pytest.mark.parametrize(
    "plant", [answer_before_the_disk, lose_a_marker, forget_the_outcome, abort_what_is_committed]
)
def test_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = PowerTransactions(3, tmp_path).live(TRANSACTIONS)
    plant(monkeypatch)
    for call in range(calls // 2, calls, 3):
        run = PowerTransactions(3, tmp_path)
        try:
            run.live(TRANSACTIONS, call)
        except AskError:
            return
        run.lose_power()
        if run.check():
            return
    pytest.fail("the bug was not found")
