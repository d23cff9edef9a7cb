"""``MetricName`` and ``KafkaMetric``, with the attributes of kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkacore.clock import SYSTEM_CLOCK, Clock

#: Function that takes a time in monotonic milliseconds and returns the value of a metric at that time.
Measure = Callable[[float], float]


class MetricName:
    """The identity of a metric: its name, group and tags.

    Parameters
    ----------
    name, group:
        Name of the metric and of its group, such as "record-send-rate" and "producer-metrics".
    description:
        A sentence that explains the metric. It is not part of the identity.
    tags:
        Further labels, such as the client id.
    """

    __slots__ = ("_hash", "_tags", "description", "group", "name")

    def __init__(
        self, name: str, group: str, description: str = "", tags: Mapping[str, str] | None = None
    ) -> None:
        if not name or not group:
            raise ValueError("a metric needs a name and a group")
        self.name = name
        self.group = group
        self.description = description
        self._tags = dict(tags or {})
        self._hash = hash((name, group, frozenset(self._tags.items())))

    @property
    def tags(self) -> dict[str, str]:
        return dict(self._tags)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetricName):
            return NotImplemented
        return (self.name, self.group, self._tags) == (other.name, other.group, other._tags)

    def __repr__(self) -> str:
        return f"MetricName(name={self.name!r}, group={self.group!r}, tags={self._tags!r})"


class KafkaMetric:
    """A metric. Its value is computed each time it is read."""

    __slots__ = ("_clock", "_measure", "metric_name")

    def __init__(self, metric_name: MetricName, measure: Measure, clock: Clock = SYSTEM_CLOCK) -> None:
        self.metric_name = metric_name
        self._measure = measure
        self._clock = clock

    def value(self, time_ms: float | None = None) -> float:
        """Return the current value, or the value at ``time_ms`` of the client's monotonic clock."""
        return self._measure(self._clock.monotonic_ms() if time_ms is None else time_ms)

    def __repr__(self) -> str:
        return f"<KafkaMetric {self.metric_name.group} {self.metric_name.name}>"
