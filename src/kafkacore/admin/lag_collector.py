"""Export the lag of groups to Prometheus. This module needs the extra ``kafkacore[prometheus]``.

Names and labels are those of kafka-lag-exporter, so that its dashboards and alerts keep working.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kafkacore.admin.lag import ClusterLag, GroupLag, LagError
from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of
from kafkacore.structs import printable

logger = logger_of(__name__)

_GROUP, _TOPIC, _PARTITION = (
    ("cluster_name", "group"),
    ("cluster_name", "topic", "partition"),
    ("cluster_name", "group", "topic", "partition"),
)
#: Metric → meaning and labels, in the order of the output.
GAUGES = {
    "kafka_consumergroup_group_lag": ("Records that the group has not committed.", _PARTITION),
    "kafka_consumergroup_group_lag_seconds": (
        "Estimated age of the first record that the group has not committed.",
        _PARTITION,
    ),
    "kafka_consumergroup_group_offset": ("Committed offset.", _PARTITION),
    "kafka_consumergroup_group_max_lag": ("Highest lag of a partition of the group.", _GROUP),
    "kafka_consumergroup_group_max_lag_seconds": ("Highest lag of a partition in seconds.", _GROUP),
    "kafka_consumergroup_group_sum_lag": ("Lag of the group in all partitions.", _GROUP),
    "kafka_consumergroup_group_topic_sum_lag": (
        "Lag of the group in all partitions of a topic.",
        ("cluster_name", "group", "topic"),
    ),
    "kafka_consumergroup_group_members": ("Members of the group.", _GROUP),
    "kafka_consumergroup_group_state": ("Always 1; the state of the group is a label.", (*_GROUP, "state")),
    "kafka_partition_latest_offset": ("End offset of a partition that a group has committed.", _TOPIC),
    "kafka_consumergroup_poll_time_ms": ("Duration of the last read, in milliseconds.", ("cluster_name",)),
    "kafka_consumergroup_up": ("1 if the last read of the cluster succeeded, else 0.", ("cluster_name",)),
}
#: Name, meaning and labels of the metric that counts errors.
ERRORS = (
    "kafka_consumergroup_errors",
    "Failed reads of brokers, groups, partitions or the whole cluster, by kind.",
    ("cluster_name", "kind"),
)
_KINDS = ("broker", "cluster", "group", "partition")


class LagCollector(Collector):
    """A Prometheus collector that returns the result of the last read of the cluster.

    Parameters
    ----------
    cluster_name:
        Value of the label ``cluster_name``. Prometheus drops an empty label.
    """

    def __init__(self, cluster_name: str = "") -> None:
        self._cluster_name = cluster_name
        self._last: ClusterLag | None = None
        self._errors = dict.fromkeys(_KINDS, 0)
        self._failing: set[tuple[str, str]] = set()

    def update(self, lag: ClusterLag) -> None:
        """Store the result of a read, which :meth:`collect` returns from now on."""
        self._count(lag.errors)
        self._last = lag

    def failed(self, error: KafkaError) -> None:
        """Record that the cluster could not be read. :meth:`collect` returns no lag until the next update.

        The previous lag would hide the failure from alerts.
        """
        self._errors["cluster"] += 1
        if ("cluster", "") not in self._failing:
            logger.warning("could not read the lag of the cluster: %s", error)
        self._failing = {("cluster", "")}
        self._last = None

    def _count(self, errors: tuple[LagError, ...]) -> None:
        """Count errors, and log those that the previous read did not have."""
        for error in errors:
            self._errors[error.kind] += 1
            if (error.kind, error.name) not in self._failing:
                logger.warning(
                    "could not read the lag of %s %s: %s", error.kind, printable(error.name), error.error
                )
        self._failing = {(error.kind, error.name) for error in errors}

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last read."""
        families = {
            name: GaugeMetricFamily(name, text, labels=labels) for name, (text, labels) in GAUGES.items()
        }
        last = self._last
        families["kafka_consumergroup_up"].add_metric([self._cluster_name], float(last is not None))
        if last is not None:
            for group in last.groups:
                self._add_group(families, group)
            for tp, end in last.end_offsets.items():
                families["kafka_partition_latest_offset"].add_metric(
                    [self._cluster_name, tp.topic, str(tp.partition)], end
                )
            families["kafka_consumergroup_poll_time_ms"].add_metric([self._cluster_name], last.duration_ms)
        yield from families.values()
        errors = CounterMetricFamily(ERRORS[0], ERRORS[1], labels=ERRORS[2])
        for kind, count in self._errors.items():
            errors.add_metric([self._cluster_name, kind], count)
        yield errors

    def _add_group(self, families: dict[str, GaugeMetricFamily], group: GroupLag) -> None:
        labels = [self._cluster_name, group.group]

        def add(name: str, value: float | None, *more: str) -> None:
            if value is not None:
                families[f"kafka_consumergroup_group_{name}"].add_metric([*labels, *more], value)

        add("state", 1, group.state)
        add("members", group.members)
        by_topic: dict[str, int] = {}
        for each in group.partitions:
            place = (each.topic, str(each.partition))
            add("lag", each.lag, *place)
            add("lag_seconds", each.lag_seconds, *place)
            add("offset", each.offset, *place)
            by_topic[each.topic] = by_topic.get(each.topic, 0) + each.lag
        for topic, lag in by_topic.items():
            add("topic_sum_lag", lag, topic)
        if group.partitions:
            add("sum_lag", group.sum_lag)
            add("max_lag", max(each.lag for each in group.partitions))
            add("max_lag_seconds", group.max_lag_seconds)
