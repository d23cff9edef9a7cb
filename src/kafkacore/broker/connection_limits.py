"""How many connections there may be, together and from one address. Does not know: sockets.

An address in; a sentence if one more is too many, else it is counted. Source: Kafka's ``ConnectionQuotas``
(``max.connections``, ``max.connections.per.ip``, ``max.connections.per.ip.overrides``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class ConnectionLimits:
    """Used by the network thread alone.

    Parameters
    ----------
    total, per_ip:
        Connections at a time.
    overrides:
        Address → what it may have instead of ``per_ip``.
    """

    def __init__(self, total: int, per_ip: int, overrides: Mapping[str, int] | None = None) -> None:
        self.total = total
        self.per_ip = per_ip
        self.overrides = dict(overrides or {})
        self._counts: Counter[str] = Counter()

    def admit(self, host: str) -> str | None:
        """Count a connection from ``host``, or say why there may be none."""
        if self._counts.total() >= self.total:
            return f"{self.total} connections is the limit (max.connections)"
        of_host = self.overrides.get(host, self.per_ip)
        if self._counts[host] >= of_host:
            return f"{of_host} connections from {host} is the limit (max.connections.per.ip)"
        self._counts[host] += 1
        return None

    def release(self, host: str) -> None:
        """A connection that was admitted has ended."""
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]
