"""aiokafka's defaults, where they are not those of the synchronous clients."""

from __future__ import annotations

from typing import Any

#: Defaults of every client.
DEFAULTS: dict[str, Any] = {"request_timeout_ms": 40_000}


def default_sasl_mechanism(settings: dict[str, Any]) -> None:
    """Set ``sasl_mechanism`` if ``security_protocol`` needs one and ``settings`` has none."""
    if str(settings.get("security_protocol", "")).upper().startswith("SASL_"):
        settings.setdefault("sasl_mechanism", "PLAIN")
