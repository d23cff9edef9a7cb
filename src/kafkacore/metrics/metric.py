"""A figure's name and the figure. Nouns: they know how to be read, not where they are kept.

(Kafka's ``MetricName`` and ``KafkaMetric``; attributes are kafka-python's.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkacore.clock import SYSTEM_CLOCK, Clock

#: Monotonic milliseconds in, the figure out.
Measure = Callable[[float], float]


class MetricName:
    """Name, group and tags, which together tell one metric from another.

    Parameters
    ----------
    name, group:
        As "record-send-rate" of "producer-metrics".
    description:
        A sentence for people.
    tags:
        More that tells it apart, as the client's id.
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
    """One figure, measured when it is asked for."""

    __slots__ = ("_clock", "_measure", "metric_name")

    def __init__(self, metric_name: MetricName, measure: Measure, clock: Clock = SYSTEM_CLOCK) -> None:
        self.metric_name = metric_name
        self._measure = measure
        self._clock = clock

    def value(self, time_ms: float | None = None) -> float:
        """The figure now, or at ``time_ms`` of the client's monotonic clock."""
        return self._measure(self._clock.monotonic_ms() if time_ms is None else time_ms)

    def __repr__(self) -> str:
        return f"<KafkaMetric {self.metric_name.group} {self.metric_name.name}>"
