"""Create a span for each record that a producer sends, and add the trace context to the headers."""

from __future__ import annotations

from typing import Final

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.otel import conventions as names
from kafkacore.otel.conventions import HEADER_GETTER, HEADER_SETTER, Attributes, Headers
from kafkacore.producer import ProducerInterceptor, ProducerRecord, RecordMetadata
from kafkacore.structs import printable

#: Trace id and span id.
_SpanKey = tuple[int, int]
_NO_CONTEXT: Final = Context()


class OpenTelemetryProducerInterceptor(ProducerInterceptor):
    """Creates a span ``send <topic>`` per record, from ``send()`` until the record is acknowledged or fails.

    The span's parent is the current span of the thread that calls ``send()``. The interceptor adds the trace
    context to the record's headers, by default as ``traceparent`` and ``tracestate`` of the W3C. The metrics
    are ``messaging.client.sent.messages`` and ``messaging.client.operation.duration``.

    Parameters
    ----------
    client_id:
        The producer's ``client_id``, for the attribute ``messaging.client.id``.
    tracer_provider, meter_provider:
        OpenTelemetry's providers; by default the global providers.
    propagator:
        Writes the trace context; by default the global propagator.
    clock:
        Clock with which durations are measured.
    """

    def __init__(
        self,
        client_id: str | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client_id = client_id
        self._tracer = trace.get_tracer(names.INSTRUMENTATION, tracer_provider=tracer_provider)
        self._propagator = propagator
        self._clock = clock
        meter = metrics.get_meter(names.INSTRUMENTATION, meter_provider=meter_provider)
        self._sent = meter.create_counter(
            names.SENT_MESSAGES, "{message}", "Records that the producer tried to send."
        )
        self._duration = meter.create_histogram(
            names.OPERATION_DURATION,
            "s",
            "Time from send() until the record was acknowledged or had failed.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS_S,
        )
        #: Ids of a span → the span and its start time, for each record whose outcome is not known yet.
        self._in_flight: dict[_SpanKey, tuple[Span, float]] = {}

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Start a span for the record, and add the trace context to the record's headers."""
        attributes = self._attributes(record.topic)
        if (key := names.key_text(record.key)) is not None:
            attributes[names.KEY] = key
        if record.value is None:
            attributes[names.TOMBSTONE] = True
        span = self._tracer.start_span(
            f"send {printable(record.topic)}", kind=SpanKind.PRODUCER, attributes=dict(attributes)
        )
        headers: Headers = list(record.headers or ())
        self._chosen_propagator().inject(headers, trace.set_span_in_context(span), HEADER_SETTER)
        span_key = _key_of(span)
        # Without an SDK, start_span() returns the parent span or a span without an id. Do not track these
        # spans.
        if span_key[1] and span_key != _key_of(trace.get_current_span()):
            self._in_flight[span_key] = (span, self._clock.monotonic_ms())
        return record._replace(headers=headers)

    def on_acknowledgement(
        self, metadata: RecordMetadata, error: Exception | None, headers: Headers | None = None
    ) -> None:
        """End the span whose context is in the record's headers (KIP-512)."""
        attributes = self._attributes(metadata.topic)
        if metadata.partition >= 0:
            attributes[names.PARTITION] = str(metadata.partition)
        if error is not None:
            attributes[names.ERROR_TYPE] = names.error_type(error)
        measured = names.measured(attributes)
        self._sent.add(1, measured)
        context = self._chosen_propagator().extract(headers or [], _NO_CONTEXT, HEADER_GETTER)
        span, started_ms = self._in_flight.pop(_key_of(trace.get_current_span(context)), (None, 0.0))
        if span is None:
            return
        self._duration.record((self._clock.monotonic_ms() - started_ms) / 1000, measured)
        if metadata.offset >= 0:
            attributes[names.OFFSET] = metadata.offset
        span.set_attributes(dict(attributes))
        if error is not None:
            span.record_exception(error)
            span.set_status(StatusCode.ERROR, str(error))
        span.end()

    def close(self) -> None:
        """End the spans of records from which a later interceptor removed the trace context."""
        # Another thread may end a span meanwhile, because its send() fails after the producer is closed.
        for span_key in list(self._in_flight):
            span, _ = self._in_flight.pop(span_key, (None, 0.0))
            if span is not None:
                span.end()

    def _attributes(self, topic: str) -> Attributes:
        return names.operation("send", "send", topic, self._client_id, None)

    def _chosen_propagator(self) -> TextMapPropagator:
        return self._propagator or propagate.get_global_textmap()


def _key_of(span: Span) -> _SpanKey:
    context = span.get_span_context()
    return context.trace_id, context.span_id
