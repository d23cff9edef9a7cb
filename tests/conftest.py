"""Fixtures that tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.apache_kafka import ApacheKafka, started_in_scratch_folder


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    """Apache Kafka 4.3.1 in a process of its own, one for the whole run; choose topic names of your own.

    Fails, with what Maven, Java or the broker said, where it cannot be started: a run that has not met
    Apache Kafka has not been judged.
    """
    with started_in_scratch_folder() as kafka:
        yield kafka
