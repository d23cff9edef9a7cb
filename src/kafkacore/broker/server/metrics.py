"""Metrics of requests, counted by the network thread: how many, how long they took, with which errors.

Requests and answers in; figures out, by API. One clock reading and one or two compiled records a request:
bytes and records of partitions are not counted here, the logs know them. Does not know: who asks. Source of
the names: Kafka's ``RequestMetrics``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from kafkacore.broker.server._api_stats import ApiStats
from kafkacore.clock import Clock
from kafkacore.errors import for_code

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


class ApiFigures(TypedDict):
    """The figures of one API, as the status page has them; times are in milliseconds."""

    name: str
    requests: int
    #: Kafka's name of an error → how often.
    errors: dict[str, int]
    total_ms: float
    local_ms: float
    remote_ms: float
    queue_ms: float
    average_ms: float
    largest_ms: float
    #: Requests in a second.
    rate: float


def _figures(stats: ApiStats, now_ms: float) -> ApiFigures:
    total, remote_ms = stats.total, stats.remote.total
    return {
        "name": stats.name,
        "requests": total.count,
        "errors": {error_name(code): count for code, count in dict(stats.errors).items()},
        "total_ms": total.total,
        "local_ms": max(total.total - remote_ms, 0.0),
        "remote_ms": remote_ms,
        "queue_ms": stats.queue.total,
        "average_ms": total.average(now_ms),
        "largest_ms": total.largest(now_ms) if total.occurrence_rate(now_ms) else 0.0,
        "rate": total.occurrence_rate(now_ms),
    }


class BrokerMetrics:
    """The figures of all APIs that are served.

    Parameters
    ----------
    names:
        API key → name of those that are served.
    """

    def __init__(self, names: Mapping[int, str], clock: Clock) -> None:
        self.apis = {
            key: ApiStats(name, clock, *_ERRORS_IN.get(name, ("", ""))) for key, name in names.items()
        }
        self._clock = clock
        #: When what is handled now was read from its socket.
        self.turn_began_ms = clock.monotonic_ms()

    def figures(self) -> list[ApiFigures]:
        """Those of the APIs that have been asked for, by name."""
        now_ms = self._clock.monotonic_ms()
        asked = [_figures(stats, now_ms) for stats in self.apis.values() if stats.total.count]
        return sorted(asked, key=lambda figures: figures["name"])


def error_name(code: int) -> str:
    """As Kafka writes it: ``UNKNOWN_TOPIC_OR_PARTITION``."""
    return for_code(code).message
