"""Spans and metrics of records that a consumer returns, without a consumer."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from opentelemetry.trace import SpanKind, StatusCode
from telemetry import Telemetry

from kafkacore.consumer import ConsumerRecord
from kafkacore.otel import OpenTelemetryConsumerInterceptor
from kafkacore.otel.consumer_interceptor import MAX_LINKS
from kafkacore.record import ColumnBuilder, encode, read_batches
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

TRACE, SPAN = 0x1234567890ABCDEF1234567890ABCDEF, 0x1234567890ABCDEF
CONTEXT = [("traceparent", f"00-{TRACE:032x}-{SPAN:016x}-01".encode())]
HOSTILE: list[tuple[str, bytes | None]] = [
    ("traceparent", b"\xff" * 100_000),
    ("traceparent", None),
    ("tracestate", b"=,=" * 1000),
    ("baggage", b"a=%zz;" * 5000),
]


def record(offset: int, headers: Any = (), partition: int = 0, value: Any = b"v") -> ConsumerRecord:
    return ConsumerRecord("orders", partition, 0, offset, 1, 0, b"k", value, headers)


@pytest.fixture
def sdk() -> Telemetry:
    return Telemetry()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def telemetry(sdk: Telemetry, clock: VirtualClock) -> OpenTelemetryConsumerInterceptor:
    return OpenTelemetryConsumerInterceptor("billing", "c1", clock=clock, **sdk.providers)


def test_poll_is_linked_to_the_spans_that_sent(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor
) -> None:
    records = {
        TopicPartition("orders", 0): [record(0, CONTEXT), record(1)],
        TopicPartition("orders", 1): [record(9, partition=1)],
        TopicPartition("other", 0): [],
    }
    assert telemetry.on_consume(records) is records
    (span,) = sdk.spans()
    assert (span.name, span.kind) == ("poll orders", SpanKind.CLIENT)
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "orders",
        "messaging.batch.message_count": 3,
        "messaging.client.id": "c1",
        "messaging.consumer.group.name": "billing",
    }
    assert [(link.context.trace_id, link.context.span_id) for link in span.links] == [(TRACE, SPAN)]
    consumed = {
        attributes["messaging.destination.partition.id"]: count
        for attributes, count in sdk.points("messaging.client.consumed.messages")
    }
    assert consumed == {"0": 2, "1": 1}


def test_poll_span_lasts_as_long_as_the_poll(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor, clock: VirtualClock
) -> None:
    started_ns = clock.wall_ms() * 1_000_000
    telemetry.on_poll()
    clock.advance(250)
    telemetry.on_consume({TopicPartition("orders", 0): [record(0)]})
    span = sdk.span("poll orders")
    assert (span.start_time, span.end_time) == (started_ns, started_ns + 250_000_000)
    ((attributes, seconds),) = sdk.points("messaging.client.operation.duration")
    assert seconds == 0.25
    assert attributes["messaging.operation.type"] == "receive"


def test_poll_without_records_has_no_span(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor
) -> None:
    telemetry.on_poll()
    telemetry.on_consume({})
    telemetry.on_consume_columns({})
    assert sdk.spans() == []


@pytest.mark.parametrize("has_headers", [False, True])
def test_columns_are_linked_if_they_have_headers(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor, has_headers: bool
) -> None:
    assert pyarrow.__version__, "links need that the program has imported it"
    builder = ColumnBuilder(["value", "headers"] if has_headers else ["value"])
    for data in encode([b"v"] * 3, headers=[CONTEXT, [], HOSTILE]):
        for batch in read_batches(data):
            builder.append(batch)
    telemetry.on_consume_columns({TopicPartition("orders", 2): builder.finish()})
    span = sdk.span("poll orders")
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 3
    assert span.attributes["messaging.destination.partition.id"] == "2"
    assert [link.context.span_id for link in span.links] == ([SPAN] if has_headers else [])
    ((_, count),) = sdk.points("messaging.client.consumed.messages")
    assert count == 3


def test_number_of_links_is_limited(sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor) -> None:
    telemetry.on_consume({TopicPartition("orders", 0): [record(n, CONTEXT) for n in range(2 * MAX_LINKS)]})
    assert len(sdk.span("poll orders").links) == MAX_LINKS


def test_process_continues_the_trace_of_the_sender(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor, clock: VirtualClock
) -> None:
    with telemetry.process(record(5, CONTEXT)):
        clock.advance(1500)
        with sdk.tracer_provider.get_tracer("app").start_as_current_span("inner"):
            pass
    span, inner = sdk.span("process orders"), sdk.span("inner")
    assert span.kind is SpanKind.CONSUMER
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, SPAN, True)
    assert inner.parent == span.get_span_context()
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.client.id": "c1",
        "messaging.consumer.group.name": "billing",
        "messaging.kafka.offset": 5,
        "messaging.kafka.message.key": "k",
    }
    ((attributes, seconds),) = sdk.points("messaging.process.duration")
    assert seconds == 1.5
    assert attributes["messaging.consumer.group.name"] == "billing"


def test_failed_processing_is_recorded_and_raised(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor
) -> None:
    with pytest.raises(KeyError), telemetry.process(record(5, value=None)):
        raise KeyError("price")
    span = sdk.span("process orders")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "KeyError"
    assert span.attributes["messaging.kafka.message.tombstone"] is True
    ((attributes, _),) = sdk.points("messaging.process.duration")
    assert attributes["error.type"] == "KeyError"


def test_record_without_context_continues_the_current_trace(
    sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor
) -> None:
    with (
        sdk.tracer_provider.get_tracer("app").start_as_current_span("loop") as loop,
        telemetry.process(record(0)),
    ):
        pass
    assert sdk.span("process orders").parent == loop.get_span_context()


def test_hostile_headers_are_no_context(sdk: Telemetry, telemetry: OpenTelemetryConsumerInterceptor) -> None:
    telemetry.on_consume({TopicPartition("orders", 0): [record(0, HOSTILE)]})
    with telemetry.process(record(0, HOSTILE)):
        pass
    assert sdk.span("poll orders").links == ()
    assert sdk.span("process orders").parent is None
