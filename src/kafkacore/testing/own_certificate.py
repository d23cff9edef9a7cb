"""TLS in a test: a configuration in; the same, with a certificate that the broker makes, out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def secure(config: Mapping[str, Any]) -> dict[str, Any]:
    """A broker's configuration, by names with dots or underscores; TLS in it needs no certificate."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    speaks_tls = any(
        "SSL" in str(named.get(name, ""))
        for name in ("security.protocol", "listeners", "listener.security.protocol.map")
    )
    return {"self_made_certificate": True, **config} if speaks_tls else dict(config)
