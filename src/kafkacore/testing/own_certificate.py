"""TLS for brokers under test, with a certificate that the broker creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def secure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a configuration in which TLS listeners need no configured certificate.

    Property names may have dots or underscores.
    """
    named = {name.replace("_", "."): value for name, value in config.items()}
    speaks_tls = any(
        "SSL" in str(named.get(name, ""))
        for name in ("security.protocol", "listeners", "listener.security.protocol.map")
    )
    return {"self_made_certificate": True, **config} if speaks_tls else dict(config)
