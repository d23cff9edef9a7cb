"""One trace from the producer through the embedded broker to the consumer."""

from __future__ import annotations

from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S
from opentelemetry import trace
from telemetry import Telemetry

from kafkacore.otel import traced_consumer, traced_producer
from kafkacore.testing import EmbeddedBroker


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    """Make an SDK the global one for a test."""
    made = Telemetry()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made.tracer_provider)
    monkeypatch.setattr("opentelemetry.metrics._internal.get_meter_provider", lambda: made.meter_provider)
    return made


def test_trace_reaches_from_the_producer_to_the_consumer(our_broker: EmbeddedBroker, sdk: Telemetry) -> None:
    topic = "otel-orders"
    common: dict[str, Any] = {"bootstrap_servers": our_broker.bootstrap_servers}
    with traced_producer(**common, client_id="shop") as producer:
        producer.send(topic, b"one", key=b"k").get(BUDGET_S)
        producer.send_batch(topic, [b"two", b"three"]).get(BUDGET_S)
    sent = [span for span in sdk.spans() if span.name == f"send {topic}"]
    assert len(sent) == 3
    consumer, telemetry = traced_consumer(
        topic, **common, group_id="otel-billing", auto_offset_reset="earliest"
    )
    with consumer:
        seen = 0
        while seen < 3:
            for record in (each for found in consumer.poll(BUDGET_MS).values() for each in found):
                with telemetry.process(record):
                    seen += 1
    processed = [span for span in sdk.spans() if span.name == f"process {topic}"]
    parents = {span.parent.span_id for span in processed if span.parent}
    contexts = [span.get_span_context() for span in sent]
    assert parents == {context.span_id for context in contexts if context}
    offsets = sorted((span.attributes or {})["messaging.kafka.offset"] for span in sent)
    assert offsets == sorted((span.attributes or {})["messaging.kafka.offset"] for span in processed)
    polls = [span for span in sdk.spans() if span.name == f"poll {topic}"]
    assert {link.context.span_id for span in polls for link in span.links} == parents
    assert all((span.end_time or 0) > (span.start_time or 0) for span in polls)
    assert sum(count for _, count in sdk.points("messaging.client.sent.messages")) == 3
    assert sum(count for _, count in sdk.points("messaging.client.consumed.messages")) == 3
