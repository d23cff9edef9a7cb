"""FetchSessionHandler: the client side of fetch sessions (KIP-227)."""

from uuid import UUID

import pytest

from kafkacore.consumer.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchMetadata,
    FetchPartition,
    FetchSessionHandler,
)
from kafkacore.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    KafkaConnectionError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.structs import TopicPartition

FOO, BAR = UUID(int=1), UUID(int=2)
IDS = {"foo": FOO, "bar": BAR}
FOO0, FOO1, BAR0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)


def request(handler, partitions, ids=IDS):
    """Build a request for the offsets ``{partition: offset}``."""
    builder = handler.new_builder()
    for tp, offset in partitions.items():
        builder.add(tp, FetchPartition(ids.get(tp.topic, ZERO_UUID), offset, 1000))
    return builder.build()


def response(session_id, partitions=(), error_code=0, ids=IDS, throttle_time_ms=0):
    topics = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic,
                topic_id=ids.get(topic, ZERO_UUID),
                partitions=[FetchResponse.PartitionData(partition_index=number) for number in numbers],
            )
            for topic, numbers in topics.items()
        ],
    )


@pytest.fixture
def handler():
    return FetchSessionHandler(1)


def established(handler, partitions, session_id=123):
    """Return a handler with an established session of ``partitions``."""
    request(handler, partitions)
    assert handler.handle_response(response(session_id, partitions), 17)
    return handler


@pytest.mark.behaviour(
    "FetchSessionHandler",
    "the first request of a session is full, later ones contain the changes",
)
def test_first_request_is_full_and_asks_for_a_session(handler):
    data = request(handler, {FOO0: 0, FOO1: 10})
    assert data.metadata == FetchMetadata(0, INITIAL_EPOCH)
    assert list(data.to_send) == [FOO0, FOO1]
    assert data.to_forget == []
    assert data.can_use_topic_ids


@pytest.mark.kafka(
    "FetcherTest.testFetcherSessionEpochUpdate",
    "FetchSessionHandlerTest.testIncrementals",
)
@pytest.mark.behaviour(
    "FetchSessionHandler",
    "the first request of a session is full, later ones contain the changes",
)
def test_later_requests_carry_only_what_changed(handler):
    established(handler, {FOO0: 0, FOO1: 10})
    data = request(handler, {FOO0: 0, FOO1: 20, BAR0: 5})
    assert data.metadata == FetchMetadata(123, 1)
    assert {tp: p.fetch_offset for tp, p in data.to_send.items()} == {FOO1: 20, BAR0: 5}
    assert set(data.session_partitions) == {FOO0, FOO1, BAR0}
    assert handler.handle_response(response(123, [FOO1]), 17)
    assert request(handler, {FOO0: 0, FOO1: 20, BAR0: 5}).to_send == {}


@pytest.mark.kafka(
    "FetcherTest.testFetchForgetTopicIdWhenUnassigned",
    "FetchSessionHandlerTest.testIncrementalPartitionRemoval",
)
@pytest.mark.behaviour("FetchSessionHandler", "partitions that are no longer fetched are forgotten")
def test_removed_partitions_are_forgotten(handler):
    established(handler, {FOO0: 0, FOO1: 10, BAR0: 5})
    data = request(handler, {FOO1: 10})
    assert data.to_forget == [(FOO0, FOO), (BAR0, BAR)]
    assert data.to_send == {}


@pytest.mark.kafka("FetchSessionHandlerTest.testSessionless")
@pytest.mark.behaviour("FetchSessionHandler", "a broker without sessions always gets full requests")
def test_broker_without_sessions_always_gets_full_requests(handler):
    for _ in range(3):
        data = request(handler, {FOO0: 0, FOO1: 10})
        assert data.metadata == FetchMetadata(0, INITIAL_EPOCH)
        assert len(data.to_send) == 2
        assert handler.handle_response(response(0, [FOO0, FOO1]), 6)


def test_disabled_sessions_ask_for_none():
    handler = FetchSessionHandler(1, enabled=False)
    for _ in range(2):
        data = request(handler, {FOO0: 0})
        assert data.metadata == FetchMetadata(0, FINAL_EPOCH)
        assert handler.handle_response(response(0, [FOO0]), 17)
    handler.handle_error(KafkaConnectionError())
    assert request(handler, {FOO0: 0}).metadata == FetchMetadata(0, FINAL_EPOCH)


@pytest.mark.behaviour("FetchSessionHandler", "an invalid epoch or unknown session starts a new session")
def test_invalid_epoch_closes_the_session_and_asks_for_a_new_one(handler):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 1})
    assert not handler.handle_response(response(0, error_code=InvalidFetchSessionEpochError.errno), 17)
    data = request(handler, {FOO0: 1})
    assert data.metadata == FetchMetadata(123, INITIAL_EPOCH)
    assert set(data.to_send) == {FOO0}
    assert handler.handle_response(response(124, [FOO0]), 17)
    assert request(handler, {FOO0: 1}).metadata == FetchMetadata(124, 1)


@pytest.mark.behaviour("FetchSessionHandler", "an invalid epoch or unknown session starts a new session")
def test_unknown_session_starts_over_with_a_full_request(handler):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 1})
    assert not handler.handle_response(response(0, error_code=FetchSessionIdNotFoundError.errno), 17)
    data = request(handler, {FOO0: 1})
    assert data.metadata == FetchMetadata(0, INITIAL_EPOCH)
    assert set(data.to_send) == {FOO0}


def test_session_that_the_broker_ends_is_started_over(handler):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 1})
    assert handler.handle_response(response(0, [FOO0]), 17)
    assert request(handler, {FOO0: 2}).metadata == FetchMetadata(0, INITIAL_EPOCH)


@pytest.mark.kafka(
    "FetchSessionHandlerTest.testFindMissing",
    "FetchSessionHandlerTest.testVerifyFullFetchResponsePartitions",
)
@pytest.mark.behaviour("FetchSessionHandler", "responses with missing or additional partitions are rejected")
def test_full_answer_that_misses_a_partition_is_rejected(handler):
    request(handler, {FOO0: 0, FOO1: 0})
    assert not handler.handle_response(response(123, [FOO0]), 17)
    assert request(handler, {FOO0: 0, FOO1: 0}).metadata == FetchMetadata(0, INITIAL_EPOCH)


def test_incremental_answer_that_misses_partitions_is_fine(handler):
    established(handler, {FOO0: 0, FOO1: 0})
    request(handler, {FOO0: 0, FOO1: 0})
    assert handler.handle_response(response(123, []), 17)
    assert request(handler, {FOO0: 0, FOO1: 0}).metadata == FetchMetadata(123, 2)


@pytest.mark.kafka(
    "FetchSessionHandlerTest.testFindMissing",
    "FetchSessionHandlerTest.testVerifyFullFetchResponsePartitionsWithTopicIds",
)
@pytest.mark.behaviour("FetchSessionHandler", "responses with missing or additional partitions are rejected")
@pytest.mark.parametrize("version", [12, 17])
def test_answer_with_a_partition_nobody_asked_for_is_rejected(handler, version):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 1})
    assert not handler.handle_response(response(123, [FOO0, FOO1]), version)
    assert request(handler, {FOO0: 1}).metadata == FetchMetadata(123, INITIAL_EPOCH)
    assert not handler.handle_response(response(123, [FOO0, BAR0]), version)


def test_throttled_empty_answer_starts_over(handler):
    request(handler, {FOO0: 0})
    assert not handler.handle_response(response(0, [], throttle_time_ms=500), 17)
    assert request(handler, {FOO0: 0}).metadata == FetchMetadata(0, INITIAL_EPOCH)


@pytest.mark.kafka("FetchSessionHandlerTest.testTopicIdReplaced")
@pytest.mark.behaviour(
    "FetchSessionHandler",
    "another topic id replaces the old one; a change between ids and names closes the session",
)
def test_changed_topic_id_replaces_the_partition(handler):
    established(handler, {FOO0: 0})
    new_id = UUID(int=99)
    data = request(handler, {FOO0: 0}, ids={"foo": new_id})
    assert data.to_replace == [(FOO0, FOO)]
    assert data.to_send[FOO0].topic_id == new_id
    assert data.to_forget == []


@pytest.mark.kafka(
    "FetcherTest.testFetchTopicIdUpgradeDowngrade",
    "FetchSessionHandlerTest.testTopicIdUsageGrantedOnIdUpgrade",
    "FetchSessionHandlerTest.testIdUsageRevokedOnIdDowngrade",
    "FetchSessionHandlerTest.testSessionEpochWhenMixedUsageOfTopicIDs",
)
@pytest.mark.behaviour(
    "FetchSessionHandler",
    "another topic id replaces the old one; a change between ids and names closes the session",
)
@pytest.mark.parametrize(("before", "after"), [(IDS, {}), ({}, IDS)])
def test_change_between_names_and_ids_closes_the_session(handler, before, after):
    request(handler, {FOO0: 0}, ids=before)
    assert handler.handle_response(response(123, [FOO0], ids=before), 17 if before else 12)
    data = request(handler, {FOO0: 0}, ids=after)
    assert data.metadata == FetchMetadata(123, INITIAL_EPOCH)
    assert set(data.to_send) == {FOO0}
    assert data.can_use_topic_ids == bool(after)


@pytest.mark.kafka("FetchSessionHandlerTest.testSessionEpochWhenMixedUsageOfTopicIDs")
def test_one_partition_without_id_keeps_the_request_by_name(handler):
    assert not request(handler, {FOO0: 0, BAR0: 0}, ids={"foo": FOO}).can_use_topic_ids


def test_topic_id_error_closes_the_session(handler):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 0})
    assert not handler.handle_response(response(0, error_code=FetchSessionTopicIdError.errno), 17)
    assert request(handler, {FOO0: 0}).metadata == FetchMetadata(123, INITIAL_EPOCH)


@pytest.mark.kafka("FetchSessionHandlerTest.testDoubleBuild")
@pytest.mark.behaviour("FetchSessionHandler", "a request builder can be used only once")
def test_builder_cannot_be_built_twice(handler):
    builder = handler.new_builder()
    builder.add(FOO0, FetchPartition(FOO, 0, 1000))
    builder.build()
    with pytest.raises(AssertionError):
        builder.build()
    with pytest.raises(AssertionError):
        builder.add(FOO1, FetchPartition(FOO, 0, 1000))


@pytest.mark.kafka("FetchSessionHandlerTest.testTopLevelErrorResetsMetadata")
@pytest.mark.behaviour("FetchSessionHandler", "an error or a lost connection starts a new session")
def test_top_level_error_or_disconnect_resets_the_epoch(handler):
    established(handler, {FOO0: 0})
    request(handler, {FOO0: 1})
    handler.handle_error(KafkaConnectionError("gone"))
    assert request(handler, {FOO0: 1}).metadata == FetchMetadata(123, INITIAL_EPOCH)


def test_epoch_wraps_past_its_special_values():
    assert FetchMetadata(1, 2**31 - 1).next_incremental() == FetchMetadata(1, 1)


def test_topic_names_of_ids_are_known_for_the_answer(handler):
    established(handler, {FOO0: 0, BAR0: 0})
    request(handler, {FOO0: 0})
    assert handler.topic_name(FOO) == "foo"
    assert handler.topic_name(BAR) == "bar"
    assert handler.topic_name(UUID(int=77)) is None


def test_closing_sends_the_final_epoch_once(handler):
    assert handler.notify_close() is None
    established(handler, {FOO0: 0})
    assert handler.notify_close() == FetchMetadata(123, FINAL_EPOCH)
    assert handler.notify_close() is None


def test_thousand_partitions_send_only_the_one_that_moved(handler):
    partitions = {TopicPartition("foo", number): 0 for number in range(1000)}
    established(handler, partitions)
    moved = TopicPartition("foo", 500)
    assert list(request(handler, partitions | {moved: 7}).to_send) == [moved]


@pytest.mark.kafka("FetchSessionHandlerTest.testIdUsageWithAllForgottenPartitions")
@pytest.mark.behaviour("FetchSessionHandler", "partitions that are no longer fetched are forgotten")
@pytest.mark.parametrize("ids", [IDS, {}])
def test_session_goes_on_by_ids_or_names_though_all_its_partitions_are_forgotten(handler, ids):
    request(handler, {FOO0: 0}, ids)
    assert handler.handle_response(response(123, [FOO0], ids=ids), 17 if ids else 12)
    data = request(handler, {}, ids)
    assert data.to_forget == [(FOO0, ids.get("foo", ZERO_UUID))]
    assert data.metadata == FetchMetadata(123, 1)
    assert data.can_use_topic_ids == bool(ids)


@pytest.mark.kafka("FetchSessionHandlerTest.testOkToAddNewIdAfterTopicRemovedFromSession")
def test_topic_that_has_left_the_session_may_come_back_with_another_id(handler):
    request(handler, {FOO0: 0})
    assert handler.handle_response(response(123, [FOO0]), 17)
    request(handler, {})
    assert handler.handle_response(response(123), 17)
    data = request(handler, {FOO0: 0}, {"foo": UUID(int=9)})
    assert data.metadata == FetchMetadata(123, 2)
    assert data.to_replace == []
    assert data.can_use_topic_ids
