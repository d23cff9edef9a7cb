"""What the network thread counts of requests: how many, how long they took, which errors they were told.

Requests and answers in; figures out, by API. One clock reading and one or two compiled records a request:
bytes and records of partitions are not counted here, the logs know them. Does not know: who asks. Source of
the names: Kafka's ``RequestMetrics``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacore.broker.server._api_stats import ApiCounts
from kafkacore.clock import Clock
from kafkacore.errors import for_code
from kafkacore.metrics import Sensor

#: API → where in its answer the errors of its parts are: a list, and a list in each of that.
_ERRORS_IN: Final = {
    "Produce": ("topics", "partitions"),
    "Fetch": ("responses", "partitions"),
    "ListOffsets": ("topics", "partitions"),
    "Metadata": ("topics", ""),
    "OffsetCommit": ("topics", "partitions"),
    "CreateTopics": ("topics", ""),
    "DeleteTopics": ("responses", ""),
    "CreatePartitions": ("results", ""),
    "DeleteRecords": ("topics", "partitions"),
    "DescribeConfigs": ("results", ""),
    "AlterConfigs": ("responses", ""),
    "IncrementalAlterConfigs": ("responses", ""),
    "DeleteGroups": ("results", ""),
    "DescribeGroups": ("groups", ""),
    "OffsetForLeaderEpoch": ("topics", "partitions"),
}
#: How long averages and maxima are taken over.
_WINDOW_MS: Final = 30_000.0


class ApiStats(ApiCounts):
    """One API. Written by the network thread, read by any.

    Attributes
    ----------
    total:
        Milliseconds from the beginning of a request's handling until its answer was ready.
    remote:
        Of that, waiting in a purgatory; only of requests that waited.
    queue:
        Milliseconds that it waited for the thread, behind what was read with it.
    errors:
        Code → how often; of requests that ask for several things, each of them counts.
    """

    __slots__ = ("name",)

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        total, remote, queue = (
            Sensor(f"{name} {what}", window_ms=_WINDOW_MS) for what in ("total", "remote", "queue")
        )
        super().__init__(total, remote, queue, clock, *_ERRORS_IN.get(name, ("", "")))

    def figures(self, now_ms: float) -> dict[str, Any]:
        """All of it, as numbers and names."""
        remote_ms = self.remote.total
        return {
            "name": self.name,
            "requests": self.total.count,
            "errors": {error_name(code): count for code, count in dict(self.errors).items()},
            "total_ms": self.total.total,
            "local_ms": max(self.total.total - remote_ms, 0.0),
            "remote_ms": remote_ms,
            "queue_ms": self.queue.total,
            "average_ms": self.total.average(now_ms),
            "largest_ms": self.total.largest(now_ms) if self.total.occurrence_rate(now_ms) else 0.0,
            "rate": self.total.occurrence_rate(now_ms),
        }


class BrokerMetrics:
    """The figures of all APIs that are served.

    Parameters
    ----------
    names:
        API key → name of those that are served.
    """

    def __init__(self, names: Mapping[int, str], clock: Clock) -> None:
        self.apis = {key: ApiStats(name, clock) for key, name in names.items()}
        self._clock = clock
        #: When what is handled now was read from its socket.
        self.turn_began_ms = clock.monotonic_ms()

    def figures(self) -> list[dict[str, Any]]:
        """Those of the APIs that have been asked for, by name."""
        now_ms = self._clock.monotonic_ms()
        asked = [stats.figures(now_ms) for stats in self.apis.values() if stats.total.count]
        return sorted(asked, key=lambda figures: str(figures["name"]))


def error_name(code: int) -> str:
    """As Kafka writes it: ``UNKNOWN_TOPIC_OR_PARTITION``."""
    return for_code(code).message
