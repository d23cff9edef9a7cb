"""Metric reporters: the objects of the setting ``metric_reporters``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

from kafkacore.metrics.metric import KafkaMetric


class MetricsReporter(ABC):
    """The base class of a reporter. kafka-python's ``AbstractMetricsReporter`` works as well.

    Pass the class in ``metric_reporters``. The thread that adds or removes a metric calls the methods, so the
    methods must return quickly. Exceptions that they raise are logged.
    """

    @abstractmethod
    def init(self, metrics: Iterable[KafkaMetric]) -> None:
        """Receive the metrics that exist when the reporter is created."""

    @abstractmethod
    def metric_change(self, metric: KafkaMetric) -> None:
        """Handle a metric that was added."""

    @abstractmethod
    def metric_removal(self, metric: KafkaMetric) -> None:
        """Handle a metric that was removed."""

    def close(self) -> None:
        """Release the reporter's resources, because the client is being closed."""
        return


class Reporter(Protocol):
    """The methods of a reporter. Its class need not derive from :class:`MetricsReporter`."""

    def init(self, metrics: Iterable[KafkaMetric], /) -> None: ...
    def metric_change(self, metric: KafkaMetric, /) -> None: ...
    def metric_removal(self, metric: KafkaMetric, /) -> None: ...
    def close(self) -> None: ...


class DictReporter(MetricsReporter):
    """A reporter that keeps the metrics in a dictionary, by category and name.

    Parameters
    ----------
    prefix:
        Prefix of each category.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._metrics: dict[str, dict[str, KafkaMetric]] = {}

    def init(self, metrics: Iterable[KafkaMetric]) -> None:
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: KafkaMetric) -> None:
        self._metrics.setdefault(self.get_category(metric), {})[metric.metric_name.name] = metric

    def metric_removal(self, metric: KafkaMetric) -> None:
        category = self.get_category(metric)
        of_category = self._metrics.get(category, {})
        of_category.pop(metric.metric_name.name, None)
        if not of_category:
            self._metrics.pop(category, None)

    def get_category(self, metric: KafkaMetric) -> str:
        """Return prefix, group and tags of a metric: ``app.producer-metrics.client-id=p1``."""
        tags = ",".join(f"{tag}={value}" for tag, value in sorted(metric.metric_name.tags.items()))
        return ".".join(filter(None, [self._prefix, metric.metric_name.group, tags]))

    def snapshot(self) -> dict[str, dict[str, float]]:
        """Return the current values by category and name."""
        return {
            category: {name: metric.value() for name, metric in dict(metrics).items()}
            for category, metrics in dict(self._metrics).items()
        }
