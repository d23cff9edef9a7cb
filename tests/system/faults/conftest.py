"""A separate broker for the tests that stop, pause and kill it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkacore.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Start a broker for the module. A test that kills it must start it again."""
    with EmbeddedBroker(num_partitions=4, log_retention_ms=-1, flush="os") as broker:
        yield broker
