"""Request metrics, recorded by the network thread: counts, latencies and errors of each API.

To measure a request, the network thread reads the clock once and calls compiled code once or twice. The logs
count the bytes and records of partitions. Names follow Kafka's ``RequestMetrics``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from kafkacore.broker.server._api_stats import ApiStats
from kafkacore.clock import Clock
from kafkacore.errors import for_code

#: API → the names of the two response fields that contain errors. The first field is a list in the response.
#: The second field is a list in each element of the first list, or empty if there is no such list.
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
    """The metrics of one API as the status page shows them; times are in milliseconds."""

    name: str
    requests: int
    #: Number of errors by Kafka's name of the error.
    errors: dict[str, int]
    total_ms: float
    local_ms: float
    remote_ms: float
    queue_ms: float
    average_ms: float
    largest_ms: float
    #: Requests per second.
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
    """The metrics of all served APIs.

    Parameters
    ----------
    names:
        Names of the served APIs by API key.
    """

    def __init__(self, names: Mapping[int, str], clock: Clock) -> None:
        self.apis = {
            key: ApiStats(name, clock, *_ERRORS_IN.get(name, ("", ""))) for key, name in names.items()
        }
        self._clock = clock
        #: Time at which the frames being handled were read from their sockets.
        self.turn_began_ms = clock.monotonic_ms()

    def figures(self) -> list[ApiFigures]:
        """Return the metrics of all APIs that were requested at least once, ordered by name."""
        now_ms = self._clock.monotonic_ms()
        asked = [_figures(stats, now_ms) for stats in self.apis.values() if stats.total.count]
        return sorted(asked, key=lambda figures: figures["name"])


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, such as ``UNKNOWN_TOPIC_OR_PARTITION``."""
    return for_code(code).message
