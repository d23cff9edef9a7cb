"""The registry of the sensors and metrics of one client.

A metric is computed when it is read. A client records values once per batch or request, never per record.
Names and meanings are those of kafka-python, or of Apache Kafka for metrics that kafka-python does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from types import MappingProxyType
from typing import NamedTuple

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.logs import logger_of
from kafkacore.metrics._sensor import Sensor
from kafkacore.metrics.metric import KafkaMetric, Measure, MetricName
from kafkacore.metrics.reporter import Reporter

logger = logger_of(__name__)

#: Group of the metric ``count``, which is the number of all metrics of a client.
COUNT_GROUP = "kafka-metrics-count"


class MetricConfig(NamedTuple):
    """The settings of all metrics: the time span of averages, maxima and rates, and common tags.

    Attributes
    ----------
    samples:
        Number of samples from which a metric is computed (``metrics_num_samples``).
    time_window_ms:
        Duration of a sample (``metrics_sample_window_ms``).
    tags:
        Tags that every metric has.
    """

    samples: int = 2
    time_window_ms: float = 30_000.0
    tags: Mapping[str, str] = MappingProxyType({})


class Metrics:
    """The sensors and metrics of a client, like Kafka's ``Metrics``. The class is thread-safe.

    Parameters
    ----------
    config:
        Configuration that applies to all sensors.
    reporters:
        Objects that are notified when metrics are added or removed. They have the methods of
        :class:`MetricsReporter`.
    clock:
        Source of the time at which a metric is read, if the caller passes no time.
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
        # The lock is re-entrant, because the garbage collector may run a finalizer that adds a metric while
        # the lock is held.
        self._lock = RLock()
        for reporter in self._reporters:
            self._notify(reporter.init, [])
        self.add("count", COUNT_GROUP, "Number of metrics of the client.", lambda now_ms: len(self._metrics))

    @property
    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """A copy of the dictionary of metrics by name."""
        return dict(self._metrics)

    def sensor(self, name: str, parents: tuple[Sensor, ...] = ()) -> Sensor:
        """Return the sensor with this name. A new sensor also records its values in ``parents``."""
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
        """Add a metric, unless a metric with the same name, group and tags exists.

        Parameters
        ----------
        measure:
            Function that returns the value at a time in monotonic milliseconds. The thread that reads the
            metric calls the function.
        """
        metric_name = MetricName(name, group, description, {**self.config.tags, **(tags or {})})
        with self._lock:
            if metric_name in self._metrics:
                return
            metric = self._metrics[metric_name] = KafkaMetric(metric_name, measure, self._clock)
            for reporter in self._reporters:
                self._notify(reporter.metric_change, metric)

    def remove(self, group: str, tags: Mapping[str, str]) -> None:
        """Remove the metrics of ``group`` whose tags are exactly ``tags`` and the client's tags."""
        wanted = {**self.config.tags, **tags}
        with self._lock:
            gone = [each for each in self._metrics if each.group == group and each.tags == wanted]
            for metric_name in gone:
                metric = self._metrics.pop(metric_name)
                for reporter in self._reporters:
                    self._notify(reporter.metric_removal, metric)

    def remove_sensor(self, name: str) -> None:
        """Remove a sensor, so that the next call of :meth:`sensor` with this name creates a new sensor."""
        with self._lock:
            self._sensors.pop(name, None)

    def snapshot(self) -> dict[str, dict[str, float]]:
        """Return the current values by group and name.

        If a metric has tags of its own, their values are appended to its group:
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
            logger.exception("metric reporter failed in %r", function)
