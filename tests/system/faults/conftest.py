"""A broker of their own for tests that stop, pause and kill it, and what is said about it by others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkacore.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """One for a module; a test that kills it starts it again."""
    with EmbeddedBroker(num_partitions=4, log_retention_ms=-1, flush="os") as broker:
        yield broker
