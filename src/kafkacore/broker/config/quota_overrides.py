"""Limits of single clients, as text in ``quota.*.overrides``."""

from __future__ import annotations

from kafkacore.errors import KafkaConfigurationError


def parse_overrides(name: str, text: str) -> dict[str, float]:
    """``client=limit, client=limit`` → limits by client id.

    Raises
    ------
    KafkaConfigurationError
        For anything else.
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        client_id, equals, limit = part.rpartition("=")
        if not equals or not limit.strip().isdecimal() or int(limit) < 1:
            raise KafkaConfigurationError(
                f"{name}={text} must be client=limit, with commas between and whole limits above 0; "
                f"{part} is not"
            )
        found[client_id.strip()] = float(limit)
    return found
