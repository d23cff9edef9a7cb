"""The metrics of one client: sensors and metrics by name.

Figures are computed when someone asks for them. A client records once per batch or request, never per
record. Names and meanings are kafka-python's, or Apache Kafka's where kafka-python has no such metric.
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

#: Of the one metric that every client has, the number of all.
COUNT_GROUP = "kafka-metrics-count"


@dataclass(frozen=True)
class MetricConfig:
    """How long is remembered.

    Attributes
    ----------
    samples:
        How many samples a figure is taken over (``metrics_num_samples``).
    time_window_ms:
        For how long one is filled (``metrics_sample_window_ms``).
    tags:
        Of every metric.
    """

    samples: int = 2
    time_window_ms: float = 30_000.0
    tags: Mapping[str, str] = field(default_factory=dict)


class Metrics:
    """Kafka's ``Metrics``. Thread safe.

    Parameters
    ----------
    config:
        Of all sensors.
    reporters:
        Told of what comes and goes: :class:`MetricsReporter`, or whatever has its methods.
    clock:
        Of those who ask without saying when.
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
        # Taken again by a finaliser that adds a metric, should the garbage collector run it in here.
        self._lock = RLock()
        for reporter in self._reporters:
            self._tell(reporter.init, [])
        self.add("count", COUNT_GROUP, "Number of metrics there are.", lambda now_ms: len(self._metrics))

    @property
    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """All there are, as of now."""
        return dict(self._metrics)

    def sensor(self, name: str, parents: tuple[Sensor, ...] = ()) -> Sensor:
        """The sensor of that name, made if there is none; what it is told, ``parents`` are told too."""
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
        """Add a metric; one of the same name, group and tags stays as it is.

        Parameters
        ----------
        measure:
            Monotonic milliseconds in, the figure out; called by whoever asks, on any thread.
        """
        metric_name = MetricName(name, group, description, {**self.config.tags, **(tags or {})})
        with self._lock:
            if metric_name in self._metrics:
                return
            metric = self._metrics[metric_name] = KafkaMetric(metric_name, measure, self._clock)
            for reporter in self._reporters:
                self._tell(reporter.metric_change, metric)

    def remove(self, group: str, tags: Mapping[str, str]) -> None:
        """Forget the metrics of ``group`` whose tags are, beside the client's, exactly ``tags``."""
        wanted = {**self.config.tags, **tags}
        with self._lock:
            gone = [each for each in self._metrics if each.group == group and each.tags == wanted]
            for metric_name in gone:
                metric = self._metrics.pop(metric_name)
                for reporter in self._reporters:
                    self._tell(reporter.metric_removal, metric)

    def remove_sensor(self, name: str) -> None:
        """The next :meth:`sensor` of that name is a new one."""
        with self._lock:
            self._sensors.pop(name, None)

    def snapshot(self) -> dict[str, dict[str, float]]:
        """Group → name → the figure now. Of metrics with tags of their own, the group has their values behind
        it: ``consumer-fetch-manager-metrics.<topic>.<partition>``.
        """
        now_ms = self._clock.monotonic_ms()
        groups: dict[str, dict[str, float]] = {}
        for metric_name, metric in self.metrics.items():
            own = [value for tag, value in metric_name.tags.items() if tag not in self.config.tags]
            group = ".".join([metric_name.group, *own])
            groups.setdefault(group, {})[metric_name.name] = metric.value(now_ms)
        return groups

    def close(self) -> None:
        """Forget all metrics and close the reporters; twice is once."""
        with self._lock:
            reporters, self._reporters = self._reporters, []
            self._metrics.clear()
        for reporter in reporters:
            self._tell(reporter.close)

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except Exception:
            logger.exception("metric reporter %r failed", function)
