"""Parser of the quotas for single client IDs (``quota.*.overrides``)."""

from __future__ import annotations

from kafkacore.errors import KafkaConfigurationError


def parse_overrides(name: str, text: str) -> dict[str, float]:
    """Parse ``client=limit, client=limit`` and return the limits by client ID.

    Raises
    ------
    KafkaConfigurationError
        The text does not have this form.
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        client_id, equals, limit = part.rpartition("=")
        if not equals or not limit.strip().isdecimal() or int(limit) < 1:
            raise KafkaConfigurationError(
                f"{name}={text} must be a comma-separated list of client=limit with whole limits above 0; "
                f"{part} is invalid"
            )
        found[client_id.strip()] = float(limit)
    return found
