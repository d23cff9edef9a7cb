"""Random transactions with restarts, losses of power, full disks and timeouts keep what was promised."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.random_transactions import RandomTransactions


@pytest.mark.parametrize("seed", range(12))
def test_random_transactions_keep_what_was_promised(tmp_path: Path, seed: int) -> None:
    RandomTransactions(seed, tmp_path).run(500)
