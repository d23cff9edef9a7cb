"""Bugs planted in the broker and its disk. The checks of ``test_power_states.py`` must find all (G13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model.power_run import PowerRun

from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.broker.handlers import produce
from kafkacore.broker.log import LogManager, checkpoints, producer_state
from kafkacore.broker.log._producer_batches import ProducerBatches
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.metadata.end_offset_checkpoint import EndOffsetCheckpoint
from kafkacore.broker.storage.identity import KeptMetadata
from kafkacore.broker.storage.producer_ids import ProducerIdManager
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
