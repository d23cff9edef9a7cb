"""The registry of the sensors and metrics of one client.

A metric is computed when it is read. A client records once per batch or request, never per record. Names and
meanings are kafka-python's, or Apache Kafka's where kafka-python has no such metric.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.metrics._sensor import Sensor
from kafkacore.metrics.metric import KafkaMetric, Measure, MetricName
from kafkacore.metrics.reporter import Reporter

logger = logging.getLogger(__name__)

#: Group of the metric ``count``, the number of all metrics of a client.
COUNT_GROUP = "kafka-metrics-count"


@dataclass(frozen=True)
class MetricConfig:
    """The time span of averages, maxima and rates.

    Attributes
    ----------
    samples:
        Number of samples that a value is computed from (``metrics_num_samples``).
    time_window_ms:
        Duration of a sample (``metrics_sample_window_ms``).
    tags:
        Tags that every metric has.
    """

    samples: int = 2
    time_window_ms: float = 30_000.0
    tags: Mapping[str, str] = field(default_factory=dict)


class Metrics:
    """The sensors and metrics of a client, as Kafka's ``Metrics``. Thread safe.

    Parameters
    ----------
    config:
        Configuration of all sensors.
    reporters:
        Objects that are notified when metrics are added or removed: :class:`MetricsReporter`, or any object
        with its methods.
    clock:
        Time at which a metric is read if the caller passes none.
    """

    def __init__(
        self,
        config: MetricConfig | None = None,
        reporters: Iterable[Reporter] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.config = config or MetricConfig()
        self._reporters = list(reporters)
        self._clock = clock
        self._sensors: dict[str, Sensor] = {}
        self._metrics: dict[MetricName, KafkaMetric] = {}
        # Re-entrant: the garbage collector may run a finaliser that adds a metric while the lock is held.
        self._lock = RLock()
        for reporter in self._reporters:
            self._notify(reporter.init, [])
        self.add("count", COUNT_GROUP, "Number of metrics of the client.", lambda now_ms: len(self._metrics))

    @property
    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """A copy of the metrics by name."""
        return dict(self._metrics)

    def sensor(self, name: str, parents: tuple[Sensor, ...] = ()) -> Sensor:
        """Return the sensor with this name. If it is new, it also records its values in ``parents``."""
        with self._lock:
            found = self._sensors.get(name)
            if found is None:
                found = Sensor(name, self.config.samples, self.config.time_window_ms, parents)
                self._sensors[name] = found
            return found

    def add(
        self,
        name: str,
        group: str,
        description: str,
        measure: Measure,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Add a metric, unless one with the same name, group and tags exists.

        Parameters
        ----------
        measure:
            Returns the value at a time in monotonic milliseconds. The thread that reads the metric calls it.
        """
        metric_name = MetricName(name, group, description, {**self.config.tags, **(tags or {})})
        with self._lock:
            if metric_name in self._metrics:
                return
            metric = self._metrics[metric_name] = KafkaMetric(metric_name, measure, self._clock)
            for reporter in self._reporters:
                self._notify(reporter.metric_change, metric)

    def remove(self, group: str, tags: Mapping[str, str]) -> None:
        """Remove the metrics of ``group`` that have ``tags``, the client's tags and no others."""
        wanted = {**self.config.tags, **tags}
        with self._lock:
            gone = [each for each in self._metrics if each.group == group and each.tags == wanted]
            for metric_name in gone:
                metric = self._metrics.pop(metric_name)
                for reporter in self._reporters:
                    self._notify(reporter.metric_removal, metric)

    def remove_sensor(self, name: str) -> None:
        """Remove a sensor, so that the next :meth:`sensor` with this name creates a new one."""
        with self._lock:
            self._sensors.pop(name, None)

    def snapshot(self) -> dict[str, dict[str, float]]:
        """Return the current values by group and name.

        The values of a metric's own tags are appended to its group:
        ``consumer-fetch-manager-metrics.<topic>.<partition>``.
        """
        now_ms = self._clock.monotonic_ms()
        groups: dict[str, dict[str, float]] = {}
        for metric_name, metric in self.metrics.items():
            own = [value for tag, value in metric_name.tags.items() if tag not in self.config.tags]
            group = ".".join([metric_name.group, *own])
            groups.setdefault(group, {})[metric_name.name] = metric.value(now_ms)
        return groups

    def close(self) -> None:
        """Remove all metrics and close the reporters. Further calls do nothing."""
        with self._lock:
            reporters, self._reporters = self._reporters, []
            self._metrics.clear()
        for reporter in reporters:
            self._notify(reporter.close)

    def _notify(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except Exception:
            logger.exception("metric reporter %r failed", function)
