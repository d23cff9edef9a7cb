"""The metrics of a group member: joining, heartbeats, rebalances and commits.

Names and meanings are those of kafka-python. The metrics of rebalances and callbacks, and all metrics whose
names end in ``-total``, are those of Apache Kafka.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from typing import Protocol

from kafkacore.metrics import Metrics, Sensor

_SECONDS_PER_HOUR = 3600.0


class GroupMetrics(Protocol):
    """Records metrics of a group member and its commits. Callers hold the consumer's lock.

    Times are in milliseconds.
    """

    def heartbeat_sent(self, now_ms: float) -> None:
        """Record that a heartbeat was sent."""

    def heartbeat_answered(self, latency_ms: float, now_ms: float) -> None:
        """Record that a heartbeat was answered, with or without an error."""

    def joined(self, latency_ms: float, now_ms: float) -> None:
        """Record that JoinGroup was answered without an error."""

    def synced(self, latency_ms: float, now_ms: float) -> None:
        """Record that SyncGroup was answered without an error."""

    def rebalanced(self, duration_ms: float, now_ms: float) -> None:
        """Record that a rebalance ended; ``duration_ms`` is its whole duration, including failed attempts."""

    def rebalance_failed(self, now_ms: float) -> None:
        """Record that JoinGroup or SyncGroup failed in a rebalance."""

    def assigned(self, duration_ms: float, now_ms: float) -> None:
        """Record that ``on_partitions_assigned`` returned."""

    def revoked(self, duration_ms: float, now_ms: float) -> None:
        """Record that ``on_partitions_revoked`` returned."""

    def lost(self, duration_ms: float, now_ms: float) -> None:
        """Record that ``on_partitions_lost`` returned."""

    def committed(self, latency_ms: float, now_ms: float) -> None:
        """Record that OffsetCommit was answered without an error."""

    def waited_for_commit(self, duration_ms: float) -> None:
        """Record that ``commit()`` returned or raised."""

    def waited_for_committed(self, duration_ms: float) -> None:
        """Record that ``committed()`` returned or raised."""


class NoGroupMetrics:
    """Implementation of :class:`GroupMetrics` that records nothing."""

    def heartbeat_sent(self, now_ms: float) -> None: ...
    def heartbeat_answered(self, latency_ms: float, now_ms: float) -> None: ...
    def joined(self, latency_ms: float, now_ms: float) -> None: ...
    def synced(self, latency_ms: float, now_ms: float) -> None: ...
    def rebalanced(self, duration_ms: float, now_ms: float) -> None: ...
    def rebalance_failed(self, now_ms: float) -> None: ...
    def assigned(self, duration_ms: float, now_ms: float) -> None: ...
    def revoked(self, duration_ms: float, now_ms: float) -> None: ...
    def lost(self, duration_ms: float, now_ms: float) -> None: ...
    def committed(self, latency_ms: float, now_ms: float) -> None: ...
    def waited_for_commit(self, duration_ms: float) -> None: ...
    def waited_for_committed(self, duration_ms: float) -> None: ...


class CountedGroupMetrics:
    """Implementation of :class:`GroupMetrics` for one member.

    Parameters
    ----------
    metrics:
        Registry of the metrics.
    assigned:
        Function that returns the currently assigned partitions.
    prefix:
        Start of the name of each metric group, such as ``consumer``.
    """

    def __init__(self, metrics: Metrics, assigned: Callable[[], Sized], prefix: str = "consumer") -> None:
        self._metrics = metrics
        self._group = f"{prefix}-coordinator-metrics"
        self._last_heartbeat_ms = self._last_rebalance_ms = -math.inf
        sensor = metrics.sensor
        self._heartbeat = sensor("heartbeat-latency")
        self._join, self._sync = sensor("join-latency"), sensor("sync-latency")
        self._rebalance, self._failed = sensor("rebalance-latency"), sensor("failed-rebalance")
        self._commit = sensor("commit-latency")
        self._assigned = sensor("partition-assigned-latency")
        self._revoked = sensor("partition-revoked-latency")
        self._lost = sensor("partition-lost-latency")
        self._commit_wait, self._committed_wait = sensor("commit-sync-time"), sensor("committed-time")
        self._register_requests()
        self._register_rebalances()
        self._register_waits(prefix)
        metrics.add(
            "assigned-partitions",
            self._group,
            "Number of partitions that are assigned to this consumer.",
            lambda now_ms: len(assigned()),
        )

    def _register_requests(self) -> None:
        add, group = self._metrics.add, self._group
        for name, what, sensor in (
            ("heartbeat", "heartbeats", self._heartbeat),
            ("join", "JoinGroup responses", self._join),
            ("sync", "SyncGroup responses", self._sync),
            ("commit", "OffsetCommit responses", self._commit),
        ):
            add(f"{name}-rate", group, f"Number of {what} per second.", sensor.occurrence_rate)
            add(f"{name}-total", group, f"Number of {what}.", sensor.occurrences)
        for name, what, sensor in (
            ("join-time", "JoinGroup", self._join),
            ("sync-time", "SyncGroup", self._sync),
            ("commit-latency", "OffsetCommit", self._commit),
        ):
            add(f"{name}-avg", group, f"Average milliseconds until {what} was answered.", sensor.average)
            add(f"{name}-max", group, f"Maximum milliseconds until {what} was answered.", sensor.largest)
        add(
            "heartbeat-response-time-max",
            group,
            "Maximum milliseconds until a heartbeat was answered.",
            self._heartbeat.largest,
        )
        add(
            "last-heartbeat-seconds-ago",
            group,
            "Seconds since the last heartbeat was sent, or -1 before the first.",
            lambda now_ms: _seconds_ago(self._last_heartbeat_ms, now_ms),
        )

    def _register_rebalances(self) -> None:
        add, group = self._metrics.add, self._group
        rebalance, failed = self._rebalance, self._failed
        for name, description, measure in (
            ("rebalance-latency-avg", "Average milliseconds of a rebalance, including failed tries.",
             rebalance.average),
            ("rebalance-latency-max", "Maximum milliseconds of a rebalance, including failed tries.",
             rebalance.largest),
            ("rebalance-latency-total", "Total milliseconds of all rebalances.", rebalance.sum),
            ("rebalance-total", "Number of completed rebalances.", rebalance.occurrences),
            ("rebalance-rate-per-hour", "Number of completed rebalances per hour.", _per_hour(rebalance)),
            ("failed-rebalance-total", "Number of failed tries of a rebalance.", failed.occurrences),
            ("failed-rebalance-rate-per-hour", "Number of failed tries of a rebalance per hour.",
             _per_hour(failed)),
            ("last-rebalance-seconds-ago", "Seconds since the last completed rebalance; -1 before the first.",
             lambda now_ms: _seconds_ago(self._last_rebalance_ms, now_ms)),
        ):  # fmt: skip
            add(name, group, description, measure)
        for name, sensor in (
            ("assigned", self._assigned),
            ("revoked", self._revoked),
            ("lost", self._lost),
        ):
            what = f"on_partitions_{name}"
            add(f"partition-{name}-latency-avg", group, f"Average milliseconds of {what}().", sensor.average)
            add(f"partition-{name}-latency-max", group, f"Maximum milliseconds of {what}().", sensor.largest)

    def _register_waits(self, prefix: str) -> None:
        for name, what, sensor in (
            ("commit-sync", "commit()", self._commit_wait),
            ("committed", "committed()", self._committed_wait),
        ):
            self._metrics.add(
                f"{name}-time-ns-total",
                f"{prefix}-metrics",
                f"Total nanoseconds that {what} took.",
                lambda now_ms, sensor=sensor: sensor.total * 1e6,  # type: ignore[misc]
            )

    def heartbeat_sent(self, now_ms: float) -> None:
        self._last_heartbeat_ms = now_ms

    def heartbeat_answered(self, latency_ms: float, now_ms: float) -> None:
        self._heartbeat.record(latency_ms, now_ms)

    def joined(self, latency_ms: float, now_ms: float) -> None:
        self._join.record(latency_ms, now_ms)

    def synced(self, latency_ms: float, now_ms: float) -> None:
        self._sync.record(latency_ms, now_ms)

    def rebalanced(self, duration_ms: float, now_ms: float) -> None:
        self._last_rebalance_ms = now_ms
        self._rebalance.record(duration_ms, now_ms)

    def rebalance_failed(self, now_ms: float) -> None:
        self._failed.record(1.0, now_ms)

    def assigned(self, duration_ms: float, now_ms: float) -> None:
        self._assigned.record(duration_ms, now_ms)

    def revoked(self, duration_ms: float, now_ms: float) -> None:
        self._revoked.record(duration_ms, now_ms)

    def lost(self, duration_ms: float, now_ms: float) -> None:
        self._lost.record(duration_ms, now_ms)

    def committed(self, latency_ms: float, now_ms: float) -> None:
        self._commit.record(latency_ms, now_ms)

    def waited_for_commit(self, duration_ms: float) -> None:
        self._commit_wait.record(duration_ms, 0.0)

    def waited_for_committed(self, duration_ms: float) -> None:
        self._committed_wait.record(duration_ms, 0.0)


def _per_hour(sensor: Sensor) -> Callable[[float], float]:
    return lambda now_ms: sensor.occurrence_rate(now_ms) * _SECONDS_PER_HOUR


def _seconds_ago(then_ms: float, now_ms: float) -> float:
    return -1.0 if then_ms == -math.inf else (now_ms - then_ms) / 1000.0
