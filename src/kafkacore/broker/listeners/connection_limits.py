"""How many connections there may be: together, from one address, by one listener, and in a second.

An address in; a sentence if one more is too many, else it is counted. Does not know: sockets. Source: Kafka's
``ConnectionQuotas`` (``max.connections``, ``max.connections.per.ip``, ``max.connections.per.ip.overrides``,
``max.connection.creation.rate``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class ListenerLimit:
    """Connections by one listener at a time; ``most`` is ``None`` for no limit of its own."""

    def __init__(self, name: str, most: int | None = None) -> None:
        self.name = name
        self.most = most
        self.count = 0

    @property
    def is_reached(self) -> bool:
        return self.most is not None and self.count >= self.most


class ConnectionRate:
    """Connections in a second: so many may come at once, then one by one.

    Parameters
    ----------
    per_second:
        0 for none at all in the second that follows one.
    """

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._paid_until_ms = 0.0

    def count(self, now_ms: float) -> float:
        """Count one; how many milliseconds to wait before the next."""
        second_ms = 1000.0
        cost_ms = second_ms / self.per_second if self.per_second > 0 else second_ms
        self._paid_until_ms = max(self._paid_until_ms, now_ms) + cost_ms
        # What is owed may be a second's worth.
        return max(0.0, self._paid_until_ms + cost_ms - now_ms - second_ms)


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

    def admit(self, host: str, listener: ListenerLimit) -> str | None:
        """Count a connection from ``host``, or say why there may be none."""
        if self._counts.total() >= self.total:
            return f"{self.total} connections is the limit (max.connections)"
        if listener.is_reached:
            return f"{listener.most} connections by {listener.name} is the limit (max.connections)"
        of_host = self.overrides.get(host, self.per_ip)
        if self._counts[host] >= of_host:
            return f"{of_host} connections from {host} is the limit (max.connections.per.ip)"
        self._counts[host] += 1
        listener.count += 1
        return None

    def release(self, host: str, listener: ListenerLimit) -> None:
        """A connection that was admitted has ended."""
        listener.count -= 1
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]
