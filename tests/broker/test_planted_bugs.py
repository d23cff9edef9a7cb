"""Bugs planted in the broker and its disk: the judge of ``test_power_states.py`` must see each (goal G13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model.power_run import PowerRun

from kafkacore.broker.log import LogManager, checkpoints
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.producer_ids import ProducerIdManager
from kafkacore.testing.disk import SimulatedDisk

#: A bug that is not seen in so many runs of five losses of power is not seen.
MOST_RUNS = 80


def nothing(*_: Any, **__: Any) -> None:
    """In place of what would have kept a promise."""


def forget_block(manager: ProducerIdManager) -> int:
    manager._next += 1
    return manager._next - 1


PLANTED: dict[str, tuple[type | Any, str, Callable[..., Any]]] = {
    "records are not synced": (SimulatedDisk, "fdatasync", nothing),
    "names are not synced": (SimulatedDisk, "fsync_dir", nothing),
    "a batch that is sent again is not known": (ProducerStateManager, "check", nothing),
    "checkpoints are not written": (LogManager, "checkpoint", nothing),
    "every end is taken for a clean one": (checkpoints, "take_clean_shutdown", lambda *_: True),
    "producer ids are not written down": (ProducerIdManager, "next_producer_id", forget_block),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    place, attribute, planted = PLANTED[name]
    monkeypatch.setattr(place, attribute, planted)
    for seed in range(MOST_RUNS):
        run = PowerRun(seed, tmp_path)
        try:
            findings = run.run(5)
        except AssertionError as error:
            findings = [str(error)]
        finally:
            run.abandon()
        if findings:
            return
    pytest.fail(f"{name}, and nobody has noticed")
