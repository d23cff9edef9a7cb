"""The usual response to a lone batch is read without message objects; any other response is left alone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from model.producer_harness import TP0
from model.producer_harness import SenderHarness as Harness

from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._lone_batch import LoneBatch
from kafkacore.producer.produce_request import LAST_VERSION_BY_NAME, BatchesRequest, topic_in_response
from kafkacore.protocol import encode_response
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse

TOPIC_ID = UUID(int=77)
VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
CORRELATION_ID = 5


class Lone:
    """A drained batch, and the object that reads its response."""

    def __init__(self, version: int) -> None:
        self.harness = Harness(linger_ms=0.0)
        self.version = version
        self.future = self.harness.send()
        self.batch: ProducerBatch = next(iter(self.harness.accumulator.incomplete))
        self.reader = LoneBatch(
            self.harness.sender,
            self.harness.clock,
            self.batch,
            BatchesRequest(1, 1000, [("t", TOPIC_ID, [self.batch])]),
            topic_in_response("t", TOPIC_ID, version),
            CORRELATION_ID,
            version,
        )

    def payload(
        self, correlation_id: int = CORRELATION_ID, throttle_time_ms: int = 0, **fields: Any
    ) -> bytes:
        by_id = self.version > LAST_VERSION_BY_NAME
        topic = {"topic_id": TOPIC_ID} if by_id else {"name": "t"}
        topic |= fields.pop("topic", {})
        count = fields.pop("count", 1)
        partition = ProduceResponse.PartitionProduceResponse(
            **{"index": TP0.partition, "base_offset": 42, "log_append_time_ms": 7, **fields}
        )
        response = ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(**topic, partition_responses=[partition] * count)  # type: ignore[arg-type]
            ],
            throttle_time_ms=throttle_time_ms,
        )
        return b"".join(bytes(piece) for piece in encode_response(response, self.version, correlation_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_usual_response_completes_the_batch(version: int) -> None:
    lone = Lone(version)
    assert lone.reader.read(memoryview(lone.payload()))
    lone.reader.on_complete()
    metadata = lone.future.value
    assert metadata is not None
    assert (metadata.offset, metadata.timestamp) == (42, 7)
    assert not lone.harness.accumulator.incomplete


UNUSUAL: dict[str, dict[str, Any]] = {
    "an error": {"error_code": 6},
    "throttled": {"throttle_time_ms": 1},
    "another request": {"correlation_id": CORRELATION_ID + 1},
    "another partition": {"index": 1},
    "two partitions": {"count": 2},
    "no partition": {"count": 0},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fields", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_any_other_response_is_left_to_the_general_decoder(version: int, fields: dict[str, Any]) -> None:
    lone = Lone(version)
    assert not lone.reader.read(memoryview(lone.payload(**fields)))
    assert not lone.future.is_done


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_for_another_topic_is_not_the_usual_one(version: int) -> None:
    lone = Lone(version)
    other = {"topic_id": UUID(int=78)} if version > LAST_VERSION_BY_NAME else {"name": "u"}
    assert not lone.reader.read(memoryview(lone.payload(topic=other)))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_that_is_cut_is_not_the_usual_one(version: int) -> None:
    lone = Lone(version)
    whole = lone.payload()
    for size in range(len(whole)):
        assert not lone.reader.read(memoryview(whole[:size])), size
