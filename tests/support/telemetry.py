"""OpenTelemetry's SDK that records spans and metrics in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Telemetry:
    """Providers for interceptors, and what they have recorded."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.providers: dict[str, Any] = {
            "tracer_provider": self.tracer_provider,
            "meter_provider": self.meter_provider,
        }

    def spans(self) -> list[ReadableSpan]:
        """Return the spans that have ended, in this order."""
        return list(self._exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """Return the one span with this name."""
        (found,) = [span for span in self.spans() if span.name == name]
        return found

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return attributes and value (or sum) of each point of a metric."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), getattr(point, "value", getattr(point, "sum", None)))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
