"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.java_peer import JavaPeer, started_java_peer


@pytest.fixture(scope="session")
def java_peer() -> Iterator[JavaPeer]:
    """Kafka's Java clients in one JVM for the whole run."""
    with started_java_peer() as peer:
        yield peer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What lies in this folder needs Java and Apache Kafka's jars, and says so by its marker."""
    for item in items:
        if "integration" in item.path.parts:
            item.add_marker("integration")
