"""eventually(): wait until a condition is true, the time budget is used up, or the child process has died."""

from __future__ import annotations

import eventually as module
import pytest
from eventually import eventually


class Child:
    """A process that exits after ``lives`` calls of poll()."""

    args = "the child"

    def __init__(self, lives: int) -> None:
        self.left = lives

    def poll(self) -> int | None:
        self.left -= 1
        return None if self.left >= 0 else 3


def test_first_true_result_is_returned_and_steps_lie_between() -> None:
    steps: list[int] = []
    assert eventually(lambda: steps[1:], step=lambda: steps.append(len(steps))) == [1]
    assert steps == [0, 1]


def test_what_is_so_at_once_needs_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET_S", 0.0)
    assert eventually(lambda: "found", step=lambda: pytest.fail("a step")) == "found"


def test_used_up_budget_is_a_failure_that_shows_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET_S", 0.0)
    with pytest.raises(AssertionError, match="not in time: no leader"):
        eventually(lambda: False, lambda: "no leader")


def test_child_that_died_is_a_failure_at_once() -> None:
    with pytest.raises(AssertionError, match="the child ended with status 3: its last words"):
        eventually(lambda: False, "its last words", child=Child(2), step=lambda: None)


def test_what_a_child_did_before_it_died_counts() -> None:
    assert eventually(lambda: True, child=Child(0))
