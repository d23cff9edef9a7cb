"""The metrics of a consumer's fetches, partitions and polls.

Names and meanings are those of kafka-python. Metrics whose names end in ``-total``, and the metrics of leads,
throttling, partitions and polls, follow Apache Kafka instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.client import NetworkClient
from kafkacore.client.client_metrics import ClientMetrics
from kafkacore.clock import Clock
from kafkacore.consumer._counters import FetchCounter, PartitionSensors, PollCounter, TopicSensors
from kafkacore.consumer.group_metrics import CountedGroupMetrics, GroupMetrics, NoGroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.metrics import MetricConfig, Metrics, Sensor
from kafkacore.structs import TopicPartition


class FetchMetrics:
    """Metrics of fetches, and of the distance between positions and both ends of the logs.

    Parameters
    ----------
    metrics:
        Registry of the metrics.
    clock:
        Source of time.
    subscriptions:
        Source of the preferred replica of a partition.
    prefix:
        Start of the name of each metric group, such as ``consumer``.

    Attributes
    ----------
    fetches:
        The sensors that record fetch responses and positions.
    """

    def __init__(
        self, metrics: Metrics, clock: Clock, subscriptions: SubscriptionState, prefix: str = "consumer"
    ) -> None:
        sensor = metrics.sensor
        self.fetches = FetchCounter(
            self._register_topic,
            self._register_partition,
            clock,
            sensor("bytes-fetched"),
            sensor("records-fetched"),
            sensor("fetch-latency"),
            sensor("fetch-throttle-time"),
        )
        self._metrics = metrics
        self._subscriptions = subscriptions
        self._group = f"{prefix}-fetch-manager-metrics"
        self._lag, self._lead = sensor("records-lag"), sensor("records-lead")
        self._register_taken("", {}, self.fetches.size, self.fetches.records)
        latency, throttle = self.fetches.latency, self.fetches.throttle
        for name, description, measure in (
            ("fetch-latency-avg", "Average milliseconds until a fetch was answered.", latency.average),
            ("fetch-latency-max", "Maximum milliseconds until a fetch was answered.", latency.largest),
            ("fetch-rate", "Number of fetches answered per second.", latency.occurrence_rate),
            ("fetch-total", "Number of fetches answered.", latency.occurrences),
            ("fetch-throttle-time-avg", "Average milliseconds by which a broker throttled a fetch.",
             throttle.average),
            ("fetch-throttle-time-max", "Maximum milliseconds by which a broker throttled a fetch.",
             throttle.largest),
            ("records-lag-max", "Maximum number of records between a position and the end of its log.",
             self._lag.largest),
            ("records-lead-min", "Minimum number of records between the start of a log and the position.",
             self._lead.smallest),
        ):  # fmt: skip
            metrics.add(name, self._group, description, measure)

    def _register_taken(self, of: str, tags: Mapping[str, str], size: Sensor, records: Sensor) -> None:
        for name, description, measure in (
            ("fetch-size-avg", f"Average number of bytes per fetch{of}.", size.average),
            ("fetch-size-max", f"Maximum number of bytes per fetch{of}.", size.largest),
            ("bytes-consumed-rate", f"Number of bytes consumed per second{of}.", size.rate),
            ("bytes-consumed-total", f"Number of bytes consumed{of}.", size.sum),
            ("records-per-request-avg", f"Average number of records per fetch{of}.", records.average),
            ("records-consumed-rate", f"Number of records consumed per second{of}.", records.rate),
            ("records-consumed-total", f"Number of records consumed{of}.", records.sum),
        ):
            self._metrics.add(name, self._group, description, measure, tags)

    def _register_topic(self, topic: str) -> TopicSensors:
        sensor = self._metrics.sensor
        made = TopicSensors(sensor(f"topic.{topic}.bytes-fetched"), sensor(f"topic.{topic}.records-fetched"))
        self._register_taken(f" of topic {topic}", {"topic": topic}, made.size, made.records)
        return made

    def _register_partition(self, partition: TopicPartition) -> PartitionSensors:
        sensor = self._metrics.sensor
        lag_name, lead_name = _sensor_names(partition)
        lag, lead = sensor(lag_name, (self._lag,)), sensor(lead_name, (self._lead,))
        of = f"of {partition.topic}-{partition.partition}"
        for name, description, measure in (
            ("records-lag", f"Latest lag {of}: records from the position to the end of the log.", lag.latest),
            ("records-lag-avg", f"Average lag {of}, in records.", lag.average),
            ("records-lag-max", f"Maximum lag {of}, in records.", lag.largest),
            ("records-lead", f"Latest lead {of}: records from the start of the log to the position.",
             lead.latest),
            ("records-lead-avg", f"Average lead {of}, in records.", lead.average),
            ("records-lead-min", f"Minimum lead {of}, in records.", lead.smallest),
            ("preferred-read-replica", f"Node id of the preferred read replica {of}; -1 for the leader.",
             lambda now_ms: self._preferred_replica(partition)),
        ):  # fmt: skip
            self._metrics.add(name, self._group, description, measure, _tags(partition))
        return PartitionSensors(lag, lead)

    def _preferred_replica(self, partition: TopicPartition) -> float:
        state = self._subscriptions.state_or_none(partition)
        replica = None if state is None else state.preferred_read_replica
        return -1 if replica is None else replica

    def retain(self, assigned: set[TopicPartition]) -> None:
        """Remove the metrics of partitions that are not in ``assigned``."""
        for partition in self.fetches.forget(assigned):
            self._metrics.remove(self._group, _tags(partition))
            for name in _sensor_names(partition):
                self._metrics.remove_sensor(name)


class ConsumerMetrics:
    """All metrics of one consumer. With ``metrics_enabled=False`` nothing is recorded.

    Attributes
    ----------
    registry, fetch, polls:
        ``None`` if metrics are disabled.
    group:
        Metrics of membership and commits; an object that records nothing if metrics are disabled.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        clock: Clock,
        client: NetworkClient,
        subscriptions: SubscriptionState,
    ) -> None:
        self.registry: Metrics | None = None
        self.fetch: FetchMetrics | None = None
        self.polls: PollCounter | None = None
        self.group: GroupMetrics = NoGroupMetrics()
        if not config["metrics_enabled"]:
            return
        prefix = config["metric_group_prefix"] or "consumer"
        metric_config = MetricConfig(
            config["metrics_num_samples"],
            config["metrics_sample_window_ms"],
            {"client-id": config["client_id"]},
        )
        self.registry = Metrics(metric_config, [reporter() for reporter in config["metric_reporters"]], clock)
        client.metrics = ClientMetrics(
            self.registry, prefix, client.connection_count, client.in_flight_request_count
        )
        client.selector.on_authenticated = client.metrics.authentications.note
        self.fetch = FetchMetrics(self.registry, clock, subscriptions, prefix)
        self.group = CountedGroupMetrics(self.registry, subscriptions.assigned_partitions, prefix)
        self.polls = self._register_polls(clock, f"{prefix}-metrics", self.registry)

    @staticmethod
    def _register_polls(clock: Clock, group: str, registry: Metrics) -> PollCounter:
        polls = PollCounter(clock, registry.sensor("time-between-poll"), registry.sensor("poll-idle-ratio"))
        for name, description, measure in (
            ("time-between-poll-avg", "Average milliseconds between two calls of poll().",
             polls.between.average),
            ("time-between-poll-max", "Maximum milliseconds between two calls of poll().",
             polls.between.largest),
            ("poll-idle-ratio-avg", "Average fraction of the time that is spent in poll(), from 0 to 1.",
             polls.idle_ratio.average),
            ("last-poll-seconds-ago", "Seconds since the last call of poll(), or -1 before the first.",
             lambda now_ms: -1.0 if polls.last_began_ms < 0 else (now_ms - polls.last_began_ms) / 1000.0),
        ):  # fmt: skip
            registry.add(name, group, description, measure)
        return polls

    def close(self) -> None:
        """Remove all metrics, and close the reporters."""
        if self.registry is not None:
            self.registry.close()


def _tags(partition: TopicPartition) -> dict[str, str]:
    return {"topic": partition.topic, "partition": str(partition.partition)}


def _sensor_names(partition: TopicPartition) -> tuple[str, str]:
    of = f"{partition.topic}-{partition.partition}"
    return f"{of}.records-lag", f"{of}.records-lead"
