"""Requests that the producer sends besides records: InitProducerId, on a virtual clock."""

from __future__ import annotations

import math

import pytest
from model.producer_cluster import NODES
from model.producer_harness import BUFFER_MEMORY, given_id, outcome, possibly_persisted
from model.producer_harness import SenderHarness as Harness

from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    MalformedMessageError,
    SaslAuthenticationFailedError,
    UnsupportedVersionError,
)
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest

COORDINATOR_LOADING, NOT_AVAILABLE, INVALID_REQUEST, FORBIDDEN = 14, 15, 42, 31


def make_harness(**changes: object) -> Harness:
    return Harness(idempotence=IdempotenceManager(), **changes)  # type: ignore[arg-type]


def test_identity_is_asked_for_before_there_is_a_record() -> None:
    harness = make_harness()
    harness.run()
    (asked,) = harness.client.asked
    assert isinstance(asked.request, InitProducerIdRequest)
    assert asked.request.transactional_id is None
    harness.run(3)
    assert len(harness.client.asked) == 1


def test_records_wait_for_the_identity_and_then_go_with_it() -> None:
    harness = make_harness()
    future = harness.send()
    harness.run(2)
    assert harness.client.sent == []
    harness.client.answer(message=given_id(7, 3))
    harness.run(2)
    assert harness.sequences() == {0: (7, 3, 0)}
    harness.client.respond(base_offset=5)
    harness.run()
    assert outcome(future) == 5


def test_a_poll_returns_when_the_request_for_the_identity_can_be_sent() -> None:
    harness = make_harness()
    harness.client.unready = dict.fromkeys(NODES, math.inf)
    harness.run()
    assert harness.client.has_unsent
    harness.client.unready.clear()
    harness.run()
    assert len(harness.client.asked) == 1
    assert not harness.client.has_unsent


def test_records_expire_while_no_identity_is_given() -> None:
    harness = make_harness(delivery_timeout_ms=1000.0)
    future = harness.send()
    harness.run()
    harness.after(1000)
    assert isinstance(future.exception, KafkaError)
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY


@pytest.mark.parametrize("code", [COORDINATOR_LOADING, NOT_AVAILABLE])
def test_identity_is_asked_for_again_after_a_back_off_that_grows(code: int) -> None:
    harness = make_harness()
    harness.run()
    for lowest_ms in (80, 160, 320):
        harness.client.answer(message=given_id(error_code=code))
        harness.run(2)
        assert harness.client.asked == []
        assert lowest_ms <= harness.client.polls[-1] <= lowest_ms * 1.5
        harness.after(lowest_ms - 1)
        assert harness.client.asked == []
        harness.after(lowest_ms * 0.5 + 1)
        assert len(harness.client.asked) == 1


def test_identity_is_asked_for_again_when_the_connection_ended() -> None:
    harness = make_harness()
    harness.run()
    harness.client.answer(disconnected=True)
    harness.run(2)
    assert harness.client.asked == []
    harness.after(121)
    assert len(harness.client.asked) == 1


def test_identity_is_asked_for_when_a_node_is_there() -> None:
    harness = make_harness()
    harness.client.failed = {0, 1, 2, 3}
    harness.run()
    assert harness.client.asked == []
    assert harness.client.polls[-1] <= 120
    harness.client.failed = {0, 1, 3}
    harness.run()
    assert [asked.node_id for asked in harness.client.asked] == [2]


def test_producer_that_may_not_write_idempotently_fails_what_waits_and_asks_again_for_what_comes() -> None:
    harness = make_harness()
    future = harness.send()
    harness.run()
    harness.client.answer(message=given_id(error_code=FORBIDDEN))
    harness.run(3)
    assert outcome(future) is ClusterAuthorizationFailedError
    assert "enable_idempotence=False" in str(future.exception)
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY
    assert harness.client.asked == []
    future = harness.send()
    harness.run()
    harness.client.answer(message=given_id())
    harness.run(2)
    harness.client.respond()
    harness.run()
    assert outcome(future) == 0


@pytest.mark.parametrize(
    ("answer", "error_class", "said"),
    [
        (
            {"version_mismatch": UnsupportedVersionError("unknown")},
            UnsupportedVersionError,
            "enable_idempotence=False",
        ),
        ({"message": given_id(error_code=INVALID_REQUEST)}, KafkaError, "InvalidRequestError"),
        ({"message": given_id(-1)}, MalformedMessageError, "producer id -1"),
        ({"message": given_id(7, -1)}, MalformedMessageError, "epoch -1"),
        (
            {"disconnected": True, "authentication_error": SaslAuthenticationFailedError("wrong password")},
            SaslAuthenticationFailedError,
            "wrong password",
        ),
    ],
)
def test_answer_that_rules_idempotence_out_fails_what_waits_and_every_later_send(
    answer: dict[str, object], error_class: type[KafkaError], said: str
) -> None:
    harness = make_harness()
    future = harness.send()
    harness.run()
    harness.client.answer(**answer)
    harness.run(2)
    assert outcome(future) is error_class
    assert said in str(future.exception)
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY
    for _ in range(2):
        with pytest.raises(error_class, match=said):
            harness.send()
    assert harness.client.asked == []
    assert not harness.sender.has_work
