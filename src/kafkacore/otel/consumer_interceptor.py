"""Create spans for the records that a consumer returns, and connect them to the producers' spans."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Final, NamedTuple

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanKind, TracerProvider

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import ConsumerInterceptor, ConsumerRecord
from kafkacore.otel import conventions as names
from kafkacore.otel.conventions import HEADER_GETTER, Attributes, Headers
from kafkacore.record import RecordColumns
from kafkacore.structs import TopicPartition, printable

#: Maximum number of links of a span. The SDK's default limit is the same.
MAX_LINKS: Final = 128
_NO_CONTEXT: Final = Context()


class _Received(NamedTuple):
    """The number of records of a partition, and the headers of some or all of them."""

    size: int
    headers: Iterable[Headers]


class OpenTelemetryConsumerInterceptor(ConsumerInterceptor):
    """Creates a span ``poll <topic>`` for each poll that returns records, and ``process <topic>`` on request.

    A ``poll`` span lasts from the start to the end of the poll, and has links to the spans that sent the
    records. A poll that returns no records has no span. For ``poll_arrow()``, links need the column
    ``headers`` and an imported pyarrow. :meth:`process` creates the span in which the program handles a
    record, as a child of the span that sent the record. The metrics are
    ``messaging.client.consumed.messages``, ``messaging.client.operation.duration`` (of a poll) and
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
        Clock of the spans and the durations.
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
        self._poll_duration = meter.create_histogram(
            names.OPERATION_DURATION,
            "s",
            "Time from the start of a poll until it returned records.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS_S,
        )
        self._duration = meter.create_histogram(
            names.PROCESS_DURATION,
            "s",
            "Time in which the program processed a record.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS_S,
        )

        #: Start time of the current poll, in milliseconds: by the wall clock and by the monotonic clock.
        self._started: tuple[int, float] | None = None

    def on_poll(self) -> None:
        """Store the current time as the start of the ``poll`` spans that this call to ``poll()`` creates."""
        self._started = self._clock.wall_ms(), self._clock.monotonic_ms()

    def on_consume(
        self, records: dict[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Create a ``poll`` span per topic, and count the records."""
        self._poll_spans(
            {tp: _Received(len(each), (record.headers for record in each)) for tp, each in records.items()}
        )
        return records

    def on_consume_columns(self, columns: Mapping[TopicPartition, RecordColumns]) -> None:
        """Create a ``poll`` span per topic, and count the rows."""
        self._poll_spans({tp: _Received(len(each), _headers_of(each)) for tp, each in columns.items()})

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
        sent = self._context(record.headers)
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

    def _poll_spans(self, received: Mapping[TopicPartition, _Received]) -> None:
        wall_ms, now_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
        started_wall_ms, started_ms = self._started or (wall_ms, now_ms)
        self._started = None
        by_topic: dict[str, dict[int, _Received]] = {}
        for tp, of_partition in received.items():
            if of_partition.size:
                by_topic.setdefault(tp.topic, {})[tp.partition] = of_partition
        for topic, of_topic in by_topic.items():
            self._poll_span(topic, of_topic, started_wall_ms, now_ms - started_ms)

    def _poll_span(
        self, topic: str, received: dict[int, _Received], started_wall_ms: int, duration_ms: float
    ) -> None:
        attributes = self._attributes("poll", "receive", topic)
        self._poll_duration.record(duration_ms / 1000, names.measured(attributes))
        for partition, of_partition in received.items():
            self._consumed.add(
                of_partition.size, names.measured(attributes) | {names.PARTITION: str(partition)}
            )
        attributes[names.BATCH_COUNT] = sum(each.size for each in received.values())
        if len(received) == 1:
            attributes[names.PARTITION] = str(next(iter(received)))
        links: list[Link] = []
        for headers in chain.from_iterable(each.headers for each in received.values()):
            if len(links) == MAX_LINKS:
                break
            sent = trace.get_current_span(self._context(headers)).get_span_context()
            if sent.is_valid:
                links.append(Link(sent))
        start_ns = started_wall_ms * 1_000_000
        self._tracer.start_span(
            f"poll {printable(topic)}",
            kind=SpanKind.CLIENT,
            attributes=dict(attributes),
            links=links,
            start_time=start_ns,
        ).end(start_ns + int(duration_ms * 1_000_000))

    def _context(self, headers: Headers) -> Context:
        propagator = self._propagator or propagate.get_global_textmap()
        return propagator.extract(headers, _NO_CONTEXT, HEADER_GETTER)

    def _attributes(self, name: str, kind: str, topic: str) -> Attributes:
        return names.operation(name, kind, topic, self._client_id, self._group_id)


def _headers_of(columns: RecordColumns) -> Iterator[Headers]:
    """Yield the headers of the first rows; nothing without the column ``headers`` or without pyarrow."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or "headers" not in columns.column_names:
        return
    first = pyarrow.record_batch(columns).column("headers").slice(0, MAX_LINKS)
    for row in first.to_pylist():
        yield [(header["key"], header["value"]) for header in row or ()]
