"""Limits of the number and the rate of connections, as in Kafka's ``ConnectionQuotas``.

They implement ``max.connections``, ``max.connections.per.ip``, ``max.connections.per.ip.overrides`` and
``max.connection.creation.rate``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class ListenerLimit:
    """The number of connections of one listener, and the maximum number; ``None`` for no limit."""

    def __init__(self, name: str, max_connections: int | None = None) -> None:
        self.name = name
        self.max_connections = max_connections
        self.count = 0

    @property
    def is_reached(self) -> bool:
        return self.max_connections is not None and self.count >= self.max_connections


class ConnectionRate:
    """A limit of new connections per second. A burst of up to ``per_second`` connections is accepted at once.

    Parameters
    ----------
    per_second:
        Connections per second. 0 means a pause of one second after each connection.
    """

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._paid_until_ms = 0.0

    def count(self, now_ms: float) -> float:
        """Count a connection and return the milliseconds to wait before accepting the next connection."""
        second_ms = 1000.0
        cost_ms = second_ms / self.per_second if self.per_second > 0 else second_ms
        self._paid_until_ms = max(self._paid_until_ms, now_ms) + cost_ms
        # A burst of as many connections as are allowed in one second does not wait.
        return max(0.0, self._paid_until_ms + cost_ms - now_ms - second_ms)


class ConnectionLimits:
    """The connection limits of the broker. Only the network thread uses them.

    Parameters
    ----------
    total, per_ip:
        Maximum number of connections in total and per IP address.
    overrides:
        Maximum number of connections by address, instead of ``per_ip``.
    """

    def __init__(self, total: int, per_ip: int, overrides: Mapping[str, int] | None = None) -> None:
        self.total = total
        self.per_ip = per_ip
        self.overrides = dict(overrides or {})
        self._counts: Counter[str] = Counter()

    def admit(self, host: str, listener: ListenerLimit) -> str | None:
        """Count a connection from ``host``. If a limit is reached, return a message instead."""
        if self._counts.total() >= self.total:
            return f"the limit of {self.total} connections is reached (max.connections)"
        if listener.is_reached:
            return (
                f"the limit of {listener.max_connections} connections of listener {listener.name} is reached "
                "(max.connections)"
            )
        of_host = self.overrides.get(host, self.per_ip)
        if self._counts[host] >= of_host:
            return f"the limit of {of_host} connections from {host} is reached (max.connections.per.ip)"
        self._counts[host] += 1
        listener.count += 1
        return None

    def release(self, host: str, listener: ListenerLimit) -> None:
        """Release a connection that was admitted."""
        listener.count -= 1
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]
