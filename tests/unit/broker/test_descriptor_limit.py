"""The limit of open files of the broker's process."""

from __future__ import annotations

import resource

import pytest

from kafkacore.broker.process import run

INFINITE = 2**63 - 1


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, [(4096, 4096)]),
        (4096, 4096, []),
        (256, INFINITE, [(10_240, INFINITE)]),
        (20_000, INFINITE, []),
        (INFINITE, INFINITE, []),
    ],
)
def test_an_infinite_hard_limit_is_not_made_the_soft_limit(
    soft: int, hard: int, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hard limit of macOS is infinite, and some of its versions reject an infinite soft limit."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "RLIM_INFINITY", INFINITE)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: limits.append(new))
    run._raise_descriptor_limit()
    assert limits == expected
