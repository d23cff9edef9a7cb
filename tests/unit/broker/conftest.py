"""Fixture of a broker without a socket, for handler tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.broker_harness import BrokerHarness


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    return BrokerHarness(tmp_path)
