"""Whether a producer is idempotent: by default, unless another setting conflicts (KIP-679)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.config import producer_defaults, resolve_producer

CONFLICTS: list[dict[str, Any]] = [
    {"acks": 1},
    {"acks": 0},
    {"acks": "1"},
    {"retries": 0},
    {"max_in_flight_requests_per_connection": 6},
]


def test_producer_is_idempotent_by_default() -> None:
    assert producer_defaults()["enable_idempotence"] is True
    assert resolve_producer({})["enable_idempotence"] is True


@pytest.mark.parametrize(
    "given", [{"acks": "all"}, {"acks": -1}, {"retries": 1}, {"max_in_flight_requests_per_connection": 5}]
)
def test_settings_that_go_with_it_leave_it_on(given: dict[str, Any]) -> None:
    assert resolve_producer(given)["enable_idempotence"] is True
    assert resolve_producer(given | {"enable_idempotence": True})["enable_idempotence"] is True


@pytest.mark.parametrize("given", CONFLICTS)
def test_settings_that_rule_it_out_switch_it_off_with_a_warning(
    given: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert resolve_producer(given)["enable_idempotence"] is False
    ((name, value),) = given.items()
    assert f"{name}={value!r}" in caplog.text


@pytest.mark.parametrize("given", CONFLICTS)
def test_settings_that_rule_it_out_are_refused_where_it_was_asked_for(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(KafkaConfigurationError, match=f"{name}={value!r}"):
        resolve_producer(given | {"enable_idempotence": True})


def test_whoever_does_without_is_not_warned(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        resolve_producer({"acks": 1, "enable_idempotence": False})
    assert caplog.text == ""
