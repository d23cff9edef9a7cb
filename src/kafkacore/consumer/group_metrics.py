"""What membership and commits report of their work, and the metrics of a group's member.

Names and meanings are kafka-python's; rebalances, callbacks and
``-total`` are Apache Kafka's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from typing import Protocol

from kafkacore.metrics import Metrics, Sensor

_SECONDS_PER_HOUR = 3600.0


class GroupMetrics(Protocol):
    """What membership and commits call under the consumer's lock. Times are milliseconds."""

    def heartbeat_sent(self, now_ms: float) -> None:
        """A heartbeat is on its way."""

    def heartbeat_answered(self, latency_ms: float, now_ms: float) -> None:
        """Its answer is there, whatever it says."""

    def joined(self, latency_ms: float, now_ms: float) -> None:
        """JoinGroup has been answered without error."""

    def synced(self, latency_ms: float, now_ms: float) -> None:
        """SyncGroup has been answered without error."""

    def rebalanced(self, duration_ms: float, now_ms: float) -> None:
        """A rebalance has come to its end, ``duration_ms`` after it began; failed tries are part of it."""

    def rebalance_failed(self, now_ms: float) -> None:
        """A try of a rebalance has failed: an error in join or sync."""

    def assigned(self, duration_ms: float, now_ms: float) -> None:
        """``on_partitions_assigned`` has returned."""

    def revoked(self, duration_ms: float, now_ms: float) -> None:
        """``on_partitions_revoked`` has returned."""

    def lost(self, duration_ms: float, now_ms: float) -> None:
        """``on_partitions_lost`` has returned."""

    def committed(self, latency_ms: float, now_ms: float) -> None:
        """OffsetCommit has been answered without an error of its own."""

    def waited_for_commit(self, duration_ms: float) -> None:
        """``commit()`` has returned or raised."""

    def waited_for_committed(self, duration_ms: float) -> None:
        """``committed()`` has returned or raised."""


class NoGroupMetrics:
    """Counts nothing."""

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
    """Of one member.

    Parameters
    ----------
    metrics:
        Where they are registered.
    assigned:
        The partitions that are assigned just now.
    prefix:
        Of the groups' names.
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
            "Partitions that are assigned to this consumer.",
            lambda now_ms: len(assigned()),
        )

    def _register_requests(self) -> None:
        add, group = self._metrics.add, self._group
        for name, what, sensor in (
            ("heartbeat", "Heartbeats", self._heartbeat),
            ("join", "Times of joining the group", self._join),
            ("sync", "Times of taking an assignment", self._sync),
            ("commit", "Commits", self._commit),
        ):
            add(f"{name}-rate", group, f"{what} per second.", sensor.occurrence_rate)
            add(f"{name}-total", group, f"{what}.", sensor.occurrences)
        for name, what, sensor in (
            ("join-time", "JoinGroup", self._join),
            ("sync-time", "SyncGroup", self._sync),
            ("commit-latency", "OffsetCommit", self._commit),
        ):
            add(f"{name}-avg", group, f"Average ms until {what} was answered.", sensor.average)
            add(f"{name}-max", group, f"Longest ms until {what} was answered.", sensor.largest)
        add(
            "heartbeat-response-time-max",
            group,
            "Longest ms until a heartbeat was answered.",
            self._heartbeat.largest,
        )
        add(
            "last-heartbeat-seconds-ago",
            group,
            "Seconds since a heartbeat was sent; -1 before the first.",
            lambda now_ms: _seconds_ago(self._last_heartbeat_ms, now_ms),
        )

    def _register_rebalances(self) -> None:
        add, group = self._metrics.add, self._group
        rebalance, failed = self._rebalance, self._failed
        for name, description, measure in (
            ("rebalance-latency-avg", "Average ms of a rebalance, failed tries included.", rebalance.average),
            ("rebalance-latency-max", "Longest ms of a rebalance.", rebalance.largest),
            ("rebalance-latency-total", "Milliseconds of all rebalances.", rebalance.sum),
            ("rebalance-total", "Rebalances that came to their end.", rebalance.occurrences),
            ("rebalance-rate-per-hour", "Rebalances per hour.", _per_hour(rebalance)),
            ("failed-rebalance-total", "Tries of a rebalance that failed.", failed.occurrences),
            ("failed-rebalance-rate-per-hour", "Tries of a rebalance that failed, per hour.",
             _per_hour(failed)),
            ("last-rebalance-seconds-ago", "Seconds since the end of a rebalance; -1 before the first.",
             lambda now_ms: _seconds_ago(self._last_rebalance_ms, now_ms)),
        ):  # fmt: skip
            add(name, group, description, measure)
        for name, sensor in (
            ("assigned", self._assigned),
            ("revoked", self._revoked),
            ("lost", self._lost),
        ):
            what = f"on_partitions_{name}"
            add(f"partition-{name}-latency-avg", group, f"Average ms that {what} took.", sensor.average)
            add(f"partition-{name}-latency-max", group, f"Longest ms that {what} took.", sensor.largest)

    def _register_waits(self, prefix: str) -> None:
        for name, what, sensor in (
            ("commit-sync", "commit()", self._commit_wait),
            ("committed", "committed()", self._committed_wait),
        ):
            self._metrics.add(
                f"{name}-time-ns-total",
                f"{prefix}-metrics",
                f"Nanoseconds that {what} has taken.",
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
