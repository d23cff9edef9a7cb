"""pytest plugin: fixtures that give a test a broker.

Loaded by every pytest run of an environment that has kafkacore, so it imports nothing of it until a fixture
is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkacore.testing.embedded_broker import EmbeddedBroker


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[EmbeddedBroker]:
    """A broker for the whole test session, in a process and a temporary folder of its own.

    ``kafka_broker.bootstrap_servers`` is for the client's configuration. Tests share it: let each use
    topics with names of its own. ``flush`` is "os", because a test seldom pulls the plug.
    """
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker(flush="os") as broker:
        yield broker
