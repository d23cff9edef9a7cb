"""Bugs planted in the broker and its disk, which the tests must find (G13).

The checks of ``test_power_states.py`` find the first ones. Those of ``test_random_transactions.py`` find
the bugs of the transaction coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model.power_run import PowerRun
from model.random_transactions import RandomTransactions

from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.broker.handlers import produce
from kafkacore.broker.log import LogManager, checkpoints, producer_state
from kafkacore.broker.log._producer_batches import ProducerBatches
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.metadata.end_offset_checkpoint import EndOffsetCheckpoint
from kafkacore.broker.storage.identity import KeptMetadata
from kafkacore.broker.storage.producer_ids import ProducerIdManager
from kafkacore.broker.transaction import marker_writer
from kafkacore.broker.transaction.coordinator_state import TransactionCoordinatorState
from kafkacore.broker.transaction.marker_writer import _Completion, _MarkersWritten
from kafkacore.broker.transaction.transaction_coordinator import TransactionCoordinator
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata
from kafkacore.testing.disk import SimulatedDisk

#: Maximum number of runs, with five power losses each, until a bug must be found.
MOST_RUNS = 160


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, in place of a call that keeps a guarantee."""


def forget_block(manager: ProducerIdManager) -> int:
    manager._next += 1
    return manager._next - 1


class ForgetfulBatches(ProducerBatches):
    """The batches of a producer, which takes every batch for a new one."""

    check = nothing


checkpoint, headers = LogManager.checkpoint, LogSegment.headers


def checkpoint_what_is_not_synced(manager: LogManager) -> None:
    logs = manager.logs().values()
    points = [log.recovery_point for log in logs]
    for log in logs:
        log.recovery_point = log.log_end_offset
    try:
        checkpoint(manager)
    finally:
        for log, point in zip(logs, points, strict=True):
            log.recovery_point = point


def pass_over_crcs(segment: LogSegment, *args: Any, check_crcs: bool = False, **kwargs: Any) -> Any:
    return headers(segment, *args, **kwargs)


PLANTED: dict[str, tuple[type | Any, str, Callable[..., Any]]] = {
    "records are not synced": (SimulatedDisk, "fdatasync", nothing),
    "file names are not synced": (SimulatedDisk, "fsync_dir", nothing),
    "a repeated batch is not recognized": (producer_state, "ProducerBatches", ForgetfulBatches),
    "checkpoints are not written": (LogManager, "checkpoint", nothing),
    "every shutdown is taken for a clean one": (checkpoints, "take_clean_shutdown", lambda *_: True),
    "producer ids are not persisted": (ProducerIdManager, "next_producer_id", forget_block),
    "a batch is acknowledged before it is synced": (produce._Pending, "outcome", lambda _: 0),
    "a commit is acknowledged before it is synced": (PendingAppends, "_wait", lambda *args: args[2](0)),
    "a checkpoint is ahead of the synced data": (LogManager, "checkpoint", checkpoint_what_is_not_synced),
    "changed ACLs are acknowledged before the end offset is written": (EndOffsetCheckpoint, "set", nothing),
    "recovery does not check CRCs": (LogSegment, "headers", pass_over_crcs),
}
#: Bugs that need segments of many sectors, as each fourth seed has. One in twenty of those runs finds them.
IN_LARGE_SEGMENTS = {"recovery does not check CRCs"}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    place, attribute, planted = PLANTED[name]
    monkeypatch.setattr(place, attribute, planted)
    if place is EndOffsetCheckpoint:
        # The first change also writes another file, which would make the log's name durable, too.
        monkeypatch.setattr(KeptMetadata, "set", nothing)
    seeds = range(3, 8 * MOST_RUNS, 4) if name in IN_LARGE_SEGMENTS else range(MOST_RUNS)
    for seed in seeds:
        run = PowerRun(seed, tmp_path)
        try:
            findings = run.run(5)
        except AssertionError as error:
            findings = [str(error)]
        finally:
            run.abandon()
        if findings:
            return
    pytest.fail(f"no run has found the planted bug: {name}")


# ---- Transactions -----------------------------------------------------------------------------------------

#: Maximum number of runs until a bug must be found, and the steps of each.
MOST_TRANSACTION_RUNS, STEPS = 40, 500

of_producer, end = TransactionCoordinator._of_producer, TransactionCoordinator.end
with_next_epoch = TransactionMetadata.with_next_epoch
begin_completion = _Completion.__init__
prepared = TransactionMetadata.prepared
apply = TransactionCoordinatorState.apply


def accept_any_epoch(coordinator: Any, name: str, producer_id: int, _: int, node_id: int | None) -> Any:
    return of_producer(coordinator, name, producer_id, coordinator._state.get(name).producer_epoch, node_id)


def end_for_any_epoch(coordinator: Any, name: str, producer: Any, **arguments: Any) -> None:
    metadata = coordinator._state.get(name)
    if metadata is not None:
        producer = producer._replace(epoch=metadata.producer_epoch)
    end(coordinator, name, producer, **arguments)


def keep_epoch(metadata: Any, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Any:
    after = with_next_epoch(metadata, timeout_ms, expected_epoch, now_ms)
    return replace(after, producer_epoch=max(metadata.producer_epoch, 0))


def keep_epoch_at_the_end(metadata: Any, **arguments: Any) -> Any:
    return replace(prepared(metadata, **arguments), producer_epoch=metadata.producer_epoch)


def complete_before_the_outcome_is_safe(coordinator: Any, outcome: Any, on_decided: Any) -> None:
    coordinator._transactions.write(outcome, on_decided)
    coordinator._complete_when_safe(outcome.transactional_id, 0)


class UnsafeMarkers(_MarkersWritten):
    """Takes markers for safe that were only appended."""

    def can_complete(self) -> bool:
        return True

    def on_complete(self, expired: bool) -> None:
        self._required.clear()  # type: ignore[attr-defined]
        self._on_written()


def forget_a_marker(completion: Any, writer: Any, metadata: Any) -> None:
    begin_completion(completion, writer, metadata)
    completion._left.discard(max(completion._left, default=None))


def apply_most_records(state: Any, partition: int, record: Any, *args: Any) -> None:
    if record.value is None or len(record.value) % 3:
        apply(state, partition, record, *args)


PLANTED_IN_TRANSACTIONS: dict[str, tuple[Any, str, Any]] = {
    "no fencing": (TransactionCoordinator, "_of_producer", accept_any_epoch),
    "no fencing at the end": (TransactionCoordinator, "end", end_for_any_epoch),
    "an epoch is given out again": (TransactionMetadata, "with_next_epoch", keep_epoch),
    "the end gives out the same epoch": (TransactionMetadata, "prepared", keep_epoch_at_the_end),
    "a marker before the outcome is safe": (
        TransactionCoordinator,
        "_decide",
        complete_before_the_outcome_is_safe,
    ),
    "complete before the markers are safe": (marker_writer, "_MarkersWritten", UnsafeMarkers),
    "a marker is forgotten": (_Completion, "__init__", forget_a_marker),
    "an outcome is forgotten after a restart": (TransactionCoordinator, "partition_loaded", nothing),
    "a request is acknowledged before it is safe": (PendingAppends, "_wait", lambda *args: args[2](0)),
    "memory differs from the log": (TransactionCoordinatorState, "apply", apply_most_records),
}


@pytest.mark.parametrize("name", PLANTED_IN_TRANSACTIONS)
def test_planted_bug_of_transactions_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place, attribute, planted = PLANTED_IN_TRANSACTIONS[name]
    monkeypatch.setattr(place, attribute, planted)
    for seed in range(MOST_TRANSACTION_RUNS):
        try:
            RandomTransactions(seed, tmp_path).run(STEPS)
        except AssertionError:
            return
    pytest.fail(f"no run has found the planted bug: {name}")
