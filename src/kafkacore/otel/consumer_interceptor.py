"""Create spans for the records that a consumer returns, and connect them to the producers' spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanKind, TracerProvider

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import ConsumerInterceptor, ConsumerRecord
from kafkacore.otel import conventions as names
from kafkacore.otel.conventions import HEADER_GETTER, Attributes
from kafkacore.structs import TopicPartition, printable

#: Maximum number of links of a span. The SDK's default limit is the same.
MAX_LINKS: Final = 128
_NO_CONTEXT: Final = Context()


class OpenTelemetryConsumerInterceptor(ConsumerInterceptor):
    """Creates a span ``poll <topic>`` for each poll that returns records, and ``process <topic>`` on request.

    A ``poll`` span has links to the spans that sent the records. A ``poll`` span starts and ends when the
    records are returned, so it has no duration. :meth:`process` creates the span in which the program handles
    a record, as a child of the span that sent it. The metrics are ``messaging.client.consumed.messages`` and
    ``messaging.process.duration``.

    Parameters
    ----------
    group_id, client_id:
        The consumer's settings, for the attributes ``messaging.consumer.group.name`` and
        ``messaging.client.id``.
    tracer_provider, meter_provider:
        OpenTelemetry's providers; by default the global providers.
    propagator:
        Reads the trace context of a record; by default the global propagator.
    clock:
        Clock with which durations are measured.
    """

    def __init__(
        self,
        group_id: str | None = None,
        client_id: str | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._group_id = group_id
        self._client_id = client_id
        self._tracer = trace.get_tracer(names.INSTRUMENTATION, tracer_provider=tracer_provider)
        self._propagator = propagator
        self._clock = clock
        meter = metrics.get_meter(names.INSTRUMENTATION, meter_provider=meter_provider)
        self._consumed = meter.create_counter(
            names.CONSUMED_MESSAGES, "{message}", "Records that the consumer returned."
        )
        self._duration = meter.create_histogram(
            names.PROCESS_DURATION,
            "s",
            "Time in which the program processed a record.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS_S,
        )

    def on_consume(
        self, records: dict[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Create a ``poll`` span per topic, and count the records."""
        by_topic: dict[str, dict[TopicPartition, list[ConsumerRecord]]] = {}
        for tp, of_partition in records.items():
            if of_partition:
                by_topic.setdefault(tp.topic, {})[tp] = of_partition
        for topic, of_topic in by_topic.items():
            self._poll_span(topic, of_topic)
        return records

    @contextmanager
    def process(self, record: ConsumerRecord) -> Iterator[Span]:
        """Process a record in a span: ``with telemetry.process(record): handle(record)``.

        The span is the current span in the ``with`` block. Spans and records that the block creates therefore
        belong to the same trace. An exception that the block raises is recorded in the span and re-raised.
        """
        attributes = self._attributes("process", "process", record.topic)
        attributes[names.PARTITION] = str(record.partition)
        measured = names.measured(attributes)
        attributes[names.OFFSET] = record.offset
        if (key := names.key_text(record.key)) is not None:
            attributes[names.KEY] = key
        if record.serialized_value_size < 0:
            attributes[names.TOMBSTONE] = True
        started_ms = self._clock.monotonic_ms()
        sent = self._context(record)
        try:
            with self._tracer.start_as_current_span(
                f"process {printable(record.topic)}",
                # Without a trace context in the record, the span belongs to the current trace.
                context=sent if trace.get_current_span(sent).get_span_context().is_valid else None,
                kind=SpanKind.CONSUMER,
                attributes=dict(attributes),
            ) as span:
                try:
                    yield span
                except BaseException as error:
                    measured[names.ERROR_TYPE] = names.error_type(error)
                    span.set_attribute(names.ERROR_TYPE, measured[names.ERROR_TYPE])
                    raise
        finally:
            self._duration.record((self._clock.monotonic_ms() - started_ms) / 1000, measured)

    def _poll_span(self, topic: str, records: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        attributes = self._attributes("poll", "receive", topic)
        for tp, of_partition in records.items():
            self._consumed.add(
                len(of_partition), names.measured(attributes) | {names.PARTITION: str(tp.partition)}
            )
        attributes[names.BATCH_COUNT] = sum(map(len, records.values()))
        if len(records) == 1:
            attributes[names.PARTITION] = str(next(iter(records)).partition)
        links: list[Link] = []
        for record in (record for of_partition in records.values() for record in of_partition):
            if len(links) == MAX_LINKS:
                break
            sent = trace.get_current_span(self._context(record)).get_span_context()
            if sent.is_valid:
                links.append(Link(sent))
        self._tracer.start_span(
            f"poll {printable(topic)}", kind=SpanKind.CLIENT, attributes=dict(attributes), links=links
        ).end()

    def _context(self, record: ConsumerRecord) -> Context:
        propagator = self._propagator or propagate.get_global_textmap()
        return propagator.extract(record.headers, _NO_CONTEXT, HEADER_GETTER)

    def _attributes(self, name: str, kind: str, topic: str) -> Attributes:
        return names.operation(name, kind, topic, self._client_id, self._group_id)
