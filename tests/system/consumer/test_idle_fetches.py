"""An idle consumer always has a fetch at the broker."""

from __future__ import annotations

import uuid

from eventually import BUDGET_S, eventually

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.bench.stages import TraceStage
from kafkacore.wire import _trace


def test_poll_never_waits_without_a_fetch_in_flight(our_broker):
    """Empty responses end fetches again and again. In the same poll, the next fetch follows at once."""
    topic = f"idle-{uuid.uuid4().hex}"
    settings = our_broker.client_settings()
    with KafkaProducer(**settings) as producer:
        producer.send(topic, b"x").get(BUDGET_S)
    with KafkaConsumer(**settings, auto_offset_reset="earliest", fetch_max_wait_ms=5) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while not consumer.poll(1_000):
            pass

        def fetches():
            return consumer.metrics()["consumer-fetch-manager-metrics"]["fetch-total"]

        def poll():
            assert not consumer.poll(200)

        before = fetches()
        _trace.start(100_000)
        try:
            eventually(lambda: fetches() > before + 20, step=poll)
        finally:
            stamps, _ = _trace.stop()
    in_flight = set()
    responses = waits = 0
    for stage, _, number in stamps:
        if stage == TraceStage.REQUEST_WRITTEN:
            in_flight.add(number & 0xFFFF_FFFF)
        elif stage == TraceStage.RESPONSE_READ:
            responses += 1
            in_flight.discard(number)
        elif responses:
            waits += 1
            assert in_flight, f"a wait after {responses} responses had no fetch in flight"
    assert waits >= responses - 1 > 10
