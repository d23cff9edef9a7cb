"""Who listens to metrics that come and go: what a user hands to ``metric_reporters``.

Does not know: where metrics come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

from kafkacore.metrics.metric import KafkaMetric


class MetricsReporter(ABC):
    """Derive from this, or from kafka-python's ``AbstractMetricsReporter``, and pass the class.

    Called on whatever thread adds a metric, and so to be quick; what it raises is logged.
    """

    @abstractmethod
    def init(self, metrics: Iterable[KafkaMetric]) -> None:
        """The metrics that there are when this is made."""

    @abstractmethod
    def metric_change(self, metric: KafkaMetric) -> None:
        """A metric has been added."""

    @abstractmethod
    def metric_removal(self, metric: KafkaMetric) -> None:
        """A metric is gone."""

    def close(self) -> None:
        """The client closes."""
        return


class Reporter(Protocol):
    """The methods of a reporter, which need not derive from :class:`MetricsReporter`."""

    def init(self, metrics: Iterable[KafkaMetric], /) -> None: ...
    def metric_change(self, metric: KafkaMetric, /) -> None: ...
    def metric_removal(self, metric: KafkaMetric, /) -> None: ...
    def close(self) -> None: ...


class DictReporter(MetricsReporter):
    """The metrics by category and name.

    Parameters
    ----------
    prefix:
        Before each category.
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
        """Prefix, group and tags, as ``app.producer-metrics.client-id=p1``."""
        tags = ",".join(f"{tag}={value}" for tag, value in sorted(metric.metric_name.tags.items()))
        return ".".join(filter(None, [self._prefix, metric.metric_name.group, tags]))

    def snapshot(self) -> dict[str, dict[str, float]]:
        """Category → name → the figure now."""
        return {
            category: {name: metric.value() for name, metric in list(metrics.items())}
            for category, metrics in list(self._metrics.items())
        }
