"""The check of ``delivery_timeout_ms`` against ``linger_ms`` and ``request_timeout_ms``."""

from __future__ import annotations

import logging

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.config import resolve_producer


def test_delivery_timeout_of_exactly_the_sum_is_accepted() -> None:
    config = resolve_producer({"delivery_timeout_ms": 605, "linger_ms": 5, "request_timeout_ms": 600})
    assert config["delivery_timeout_ms"] == 605


def test_shorter_delivery_timeout_is_refused_with_the_sum() -> None:
    with pytest.raises(
        KafkaConfigurationError,
        match=r"delivery_timeout_ms=20000: it must be at least linger_ms \+ request_timeout_ms = "
        r"5 \+ 30000 = 30005",
    ):
        resolve_producer({"delivery_timeout_ms": 20_000, "linger_ms": 5})


def test_default_grows_with_a_long_request_timeout(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = resolve_producer({"request_timeout_ms": 180_000})
    assert config["delivery_timeout_ms"] == 180_000
    assert "delivery_timeout_ms is raised to linger_ms + request_timeout_ms = 180000" in caplog.text
