"""EndTxn for the next transaction, while the markers of the previous one are not on disk yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model.broker_in_hand import BrokerInHand, broker_in_hand, frame_of
from model.power_transactions import CONFIG, RETRIABLE, TOPIC
from model.transaction_log import batch

from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.produce import ProduceRequest

ID = "payments"
CONCURRENT_TRANSACTIONS = 51


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerInHand]:
    with broker_in_hand(tmp_path, **CONFIG) as broker:
        broker.services.topics.create(TOPIC, 1, {})
        yield broker


def asked(broker: BrokerInHand, message: Any, version: int) -> Any:
    answers = broker.give(frame_of(message, version))
    while not answers:
        broker.settle()
    return decode_response(answers[0], type(message), version)[1]


def initialized(broker: BrokerInHand) -> Any:
    asked(broker, FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]), 4)
    wanted = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
    while (producer := asked(broker, wanted, 4)).error_code in RETRIABLE:
        broker.settle()
    return producer


def produce(broker: BrokerInHand, producer: Any) -> int:
    identity = producer.producer_id, producer.producer_epoch, 0
    records = batch([b"v"], identity, timestamp=1_000_000)
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    message = ProduceRequest(transactional_id=ID, acks=-1, timeout_ms=10**6, topic_data=[topic])
    return int(asked(broker, message, 12).responses[0].partition_responses[0].error_code)


def ended(broker: BrokerInHand, producer: Any, *, commits: bool) -> Any:
    message = EndTxnRequest(
        transactional_id=ID,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commits,
    )
    return asked(broker, message, 5)


def test_next_end_is_retried_until_the_last_one_is_complete(broker: BrokerInHand) -> None:
    """A producer aborts a transaction whose records it did not send, right after a commit."""
    producer = initialized(broker)
    assert produce(broker, producer) == 0
    first = ended(broker, producer, commits=True)
    assert (first.error_code, first.producer_epoch) == (0, producer.producer_epoch + 1)
    codes = []
    while (second := ended(broker, first, commits=False)).error_code in RETRIABLE:
        codes.append(second.error_code)
        broker.settle()
    assert second.error_code == 0
    assert set(codes) <= {CONCURRENT_TRANSACTIONS}
    assert second.producer_epoch == first.producer_epoch + 1
