"""Spans and metrics of records that a producer sends, without a producer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from interleaving import at_each_step
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from telemetry import Telemetry

from kafkacore.errors import NotLeaderForPartitionError
from kafkacore.otel import OpenTelemetryProducerInterceptor
from kafkacore.producer import ProducerInterceptor, ProducerRecord
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.producer.interceptors import ProducerInterceptors
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

TP = TopicPartition("orders", 3)


@pytest.fixture
def sdk() -> Telemetry:
    return Telemetry()


class Sent:
    """A record on its way through the interceptors of a producer."""

    def __init__(self, interceptors: ProducerInterceptors, record: ProducerRecord) -> None:
        self.record = interceptors.on_send(record)
        self.result = ProduceResult(TP)
        interceptors.notify_when_done(FutureRecordMetadata(self.result), self.record.headers)


def made(sdk: Telemetry, *others: Any, clock: VirtualClock | None = None) -> ProducerInterceptors:
    telemetry = OpenTelemetryProducerInterceptor("shop", clock=clock or VirtualClock(), **sdk.providers)
    return ProducerInterceptors([telemetry, *others])


def test_span_lasts_until_the_record_is_acknowledged(sdk: Telemetry) -> None:
    clock = VirtualClock()
    sent = Sent(made(sdk, clock=clock), ProducerRecord("orders", b"v", b"k", [("h", b"x")]))
    assert sdk.spans() == []
    clock.advance(250)
    sent.result.complete(base_offset=42)
    span = sdk.span("send orders")
    assert span.kind is SpanKind.PRODUCER
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "3",
        "messaging.client.id": "shop",
        "messaging.kafka.message.key": "k",
        "messaging.kafka.offset": 42,
    }
    context = span.get_span_context()
    assert context is not None
    parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}".encode()
    assert sent.record.headers == [("h", b"x"), ("traceparent", parent)]
    measured = {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "3",
    }
    assert sdk.points("messaging.client.sent.messages") == [(measured, 1)]
    assert sdk.points("messaging.client.operation.duration") == [(measured, 0.25)]


def test_failed_record_has_its_error(sdk: Telemetry) -> None:
    Sent(made(sdk), ProducerRecord("orders")).result.complete(error=NotLeaderForPartitionError("moved"))
    span = sdk.span("send orders")
    assert span.attributes is not None
    assert span.attributes["error.type"] == "kafkacore.errors.NotLeaderForPartitionError"
    assert span.attributes["messaging.kafka.message.tombstone"] is True
    assert span.status.status_code is StatusCode.ERROR
    assert [event.name for event in span.events] == ["exception"]
    ((attributes, count),) = sdk.points("messaging.client.sent.messages")
    assert (attributes["error.type"], count) == ("kafkacore.errors.NotLeaderForPartitionError", 1)


def test_record_that_fails_before_it_is_appended_ends_its_span(sdk: Telemetry) -> None:
    interceptors = made(sdk)
    interceptors.notify_failed(interceptors.on_send(ProducerRecord("orders")), TypeError("not bytes"))
    assert (sdk.span("send orders").attributes or {})["error.type"] == "TypeError"


def test_current_span_is_the_parent(sdk: Telemetry) -> None:
    with sdk.tracer_provider.get_tracer("app").start_as_current_span("order") as order:
        Sent(made(sdk), ProducerRecord("orders")).result.complete(base_offset=0)
    parent = sdk.span("send orders").parent
    assert parent is not None
    assert parent.span_id == order.get_span_context().span_id


def test_forwarded_record_gets_the_context_of_its_new_span(sdk: Telemetry) -> None:
    sent = Sent(made(sdk), ProducerRecord("orders", headers=[("traceparent", b"old"), ("h", b"x")]))
    assert sent.record.headers is not None
    assert [name for name, _ in sent.record.headers] == ["h", "traceparent"]


def test_outcomes_find_their_spans_in_any_order(sdk: Telemetry) -> None:
    interceptors = made(sdk)
    first, second = (Sent(interceptors, ProducerRecord("orders", key=key)) for key in ("1", "2"))
    second.result.complete(base_offset=8)
    first.result.complete(base_offset=7)
    found = {
        span.attributes["messaging.kafka.message.key"]: span.attributes["messaging.kafka.offset"]
        for span in sdk.spans()
        if span.attributes
    }
    assert found == {"1": 7, "2": 8}


@pytest.mark.parametrize(("key", "text"), [("k", "k"), (7, "7"), (b"\xff", None), (None, None), ([1], None)])
def test_key_is_an_attribute_if_it_has_a_text(sdk: Telemetry, key: object, text: str | None) -> None:
    Sent(made(sdk), ProducerRecord("orders", b"v", key)).result.complete(base_offset=0)
    assert (sdk.span("send orders").attributes or {}).get("messaging.kafka.message.key") == text


def test_close_ends_spans_whose_context_was_removed(sdk: Telemetry) -> None:
    class Removes(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=None)

    interceptors = made(sdk, Removes())
    Sent(interceptors, ProducerRecord("orders")).result.complete(base_offset=0)
    assert sdk.spans() == []
    interceptors.close()
    assert sdk.span("send orders").end_time is not None


def test_program_without_an_sdk_records_nothing_and_changes_no_header() -> None:
    assert not trace.get_current_span().get_span_context().is_valid
    telemetry = OpenTelemetryProducerInterceptor(
        tracer_provider=trace.NoOpTracerProvider(), clock=VirtualClock()
    )
    sent = Sent(ProducerInterceptors([telemetry]), ProducerRecord("orders", headers=[("h", b"x")]))
    sent.result.complete(base_offset=0)
    assert sent.record.headers == [("h", b"x")]
    assert telemetry._in_flight == {}


def test_close_ends_each_span_once_while_a_record_fails(sdk: Telemetry) -> None:
    telemetry = OpenTelemetryProducerInterceptor("shop", clock=VirtualClock(), **sdk.providers)
    interceptors = ProducerInterceptors([telemetry])

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        sent = Sent(interceptors, ProducerRecord("orders", b"v"))
        return telemetry.close, lambda: sent.result.complete(error=NotLeaderForPartitionError())

    outcomes = list(at_each_step(OpenTelemetryProducerInterceptor.close, prepare))
    assert outcomes == [None] * len(outcomes)
    # The last call of prepare() made one more span, which no other thread ended.
    assert len(sdk.spans()) == len(outcomes) + 1
