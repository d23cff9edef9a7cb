"""Requests that are allowed only in part, and rights that change while a request waits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest
from model.authorisation_matrix import (
    DELETE,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TOPIC_DENIED,
    UNKNOWN_TOPIC,
    WRITE,
    Grant,
)
from model.authorisation_requests import Names, fetch, made, produce
from model.broker_harness import BrokerHarness, batch
from model.granted import Granted

from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest

OPEN, SHUT = "open", "shut"
BY_NAME = 12
UNKNOWN_TOPIC_ID = 100


@pytest.fixture
def topics(broker: BrokerHarness) -> dict[str, UUID]:
    """Create two topics with a record each. The client has no rights yet."""
    found = {name: broker.topics.create(name, 1, {}).topic_id for name in (OPEN, SHUT)}
    for name, topic_id in found.items():
        broker.ask(produce(Names(name, topic_id, "")))
        broker.settle()
    allow(broker)
    return found


def allow(broker: BrokerHarness, *grants: Grant) -> None:
    broker.services.authorizer = Granted(grants)


def produce_to(names: Collection[str], acks: int = 1) -> Any:
    partitions = [{"index": 0, "records": batch(b"value")}]
    topics = [{"name": name, "partition_data": partitions} for name in names]
    return made(ProduceRequest, acks=acks, timeout_ms=1000, topic_data=topics)


def fetch_both(topics: dict[str, UUID], **fields: Any) -> Any:
    partitions = [{"partition": 0, "partition_max_bytes": 1000}]
    asked = [{"topic_id": topic_id, "partitions": partitions} for topic_id in topics.values()]
    return made(FetchRequest, min_bytes=1, topics=asked, **fields)


def codes_and_records(answer: Any) -> dict[UUID, tuple[int, bool]]:
    """Return the error code of each topic in a Fetch response, and whether it has records."""
    return {
        topic.topic_id: (partition.error_code, bool(partition.records))
        for topic in answer.responses
        for partition in topic.partitions
    }


def test_each_topic_of_a_produce_is_asked_for_itself(broker: BrokerHarness, topics: dict[str, UUID]) -> None:
    allow(broker, Grant(WRITE, TOPIC, OPEN))
    answer = broker.ask(produce_to([SHUT, OPEN, "none"]), BY_NAME)
    codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    assert codes == {SHUT: TOPIC_DENIED, OPEN: 0, "none": TOPIC_DENIED}
    assert (broker.log(OPEN).log_end_offset, broker.log(SHUT).log_end_offset) == (2, 1)


def test_a_produce_is_told_who_needs_what(broker: BrokerHarness, topics: dict[str, UUID]) -> None:
    answer = broker.ask(produce_to([SHUT]), BY_NAME)
    sentence = answer.responses[0].partition_responses[0].error_message
    assert sentence == "User:ANONYMOUS needs an ACL that allows WRITE on topic 'shut'"


def test_a_produce_without_answer_that_is_not_allowed_hangs_up(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    with pytest.raises(CloseConnectionError, match="allows WRITE on topic 'shut'"):
        broker.send(produce_to([SHUT], acks=0), BY_NAME)
    assert broker.log(SHUT).log_end_offset == 1


def test_acks_that_there_are_not_tell_nothing_of_a_topic(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    answer = broker.ask(produce_to([SHUT, "none"], acks=7), BY_NAME)
    assert {topic.partition_responses[0].error_code for topic in answer.responses} == {TOPIC_DENIED}


def test_a_session_goes_on_with_what_may_be_read_and_asks_again(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(READ, TOPIC, OPEN))
    first = broker.ask(fetch_both(topics, session_epoch=0))
    assert codes_and_records(first) == {topics[OPEN]: (0, True), topics[SHUT]: (TOPIC_DENIED, False)}
    again = made(FetchRequest, min_bytes=1, session_id=first.session_id, session_epoch=1)
    assert codes_and_records(broker.ask(again)) == codes_and_records(first)
    allow(broker, Grant(READ, TOPIC, SHUT))
    again.session_epoch = 2
    assert codes_and_records(broker.ask(again)) == {
        topics[OPEN]: (TOPIC_DENIED, False),
        topics[SHUT]: (0, True),
    }


def test_what_is_written_after_a_right_is_taken_is_not_read_by_whoever_waits(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(READ, TOPIC, OPEN))
    message = fetch(Names(OPEN, topics[OPEN], ""))
    message.topics[0].partitions[0].fetch_offset = 1
    message.max_wait_ms = 10_000
    waits = broker.send(message, 17)
    assert waits.message is None
    allow(broker, Grant(WRITE, TOPIC, OPEN))
    broker.ask(produce_to([OPEN]), BY_NAME)
    broker.settle()
    assert codes_and_records(waits.message) == {topics[OPEN]: (TOPIC_DENIED, False)}


def test_a_fetch_by_an_id_that_there_is_not_is_told_so(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    unknown = UUID(int=4711)
    assert codes_and_records(broker.ask(fetch(Names("", unknown, "")))) == {
        unknown: (UNKNOWN_TOPIC_ID, False)
    }


def test_each_topic_of_a_list_of_offsets_is_asked_for_itself(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(DESCRIBE, TOPIC, OPEN))
    partitions = [{"partition_index": 0, "timestamp": -1}]
    asked = [{"name": name, "partitions": partitions} for name in (SHUT, OPEN, "none")]
    answer = broker.ask(made(ListOffsetsRequest, topics=asked))
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {SHUT: TOPIC_DENIED, OPEN: 0, "none": TOPIC_DENIED}


def test_metadata_by_an_id_tells_no_name_that_may_not_be_known(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(DESCRIBE, TOPIC, OPEN))
    asked = [{"topic_id": topic_id, "name": None} for topic_id in topics.values()]
    answer = broker.ask(made(MetadataRequest, topics=asked))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [(OPEN, 0), (None, TOPIC_DENIED)]


@pytest.mark.parametrize("api", ["Produce", "DeleteTopics"])
def test_a_refusal_of_what_is_asked_for_by_id_has_no_name_in_it(
    broker: BrokerHarness, topics: dict[str, UUID], api: str
) -> None:
    names = Names(SHUT, topics[SHUT], "")
    asked = made(DeleteTopicsRequest, topics=[{"name": None, "topic_id": topics[SHUT]}])
    answer = broker.ask(produce(names) if api == "Produce" else asked)
    (topic,) = answer.responses
    refused = topic.partition_responses[0] if api == "Produce" else topic
    assert refused.error_code == TOPIC_DENIED
    operation = "WRITE" if api == "Produce" else "DELETE"
    assert refused.error_message == (
        f"User:ANONYMOUS needs an ACL that allows {operation} on the topic with id {topics[SHUT]}"
    )


def test_who_may_describe_and_not_delete_is_told_which_topic_stays(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    asked = made(DeleteTopicsRequest, topics=[{"name": None, "topic_id": topics[SHUT]}])

    def names_and_codes() -> list[tuple[str | None, int]]:
        return [(one.name, one.error_code) for one in broker.ask(asked).responses]

    assert names_and_codes() == [(None, TOPIC_DENIED)]
    allow(broker, Grant(DESCRIBE, TOPIC, SHUT))
    assert names_and_codes() == [(SHUT, TOPIC_DENIED)]
    allow(broker, Grant(DELETE, TOPIC, SHUT))
    assert names_and_codes() == [(SHUT, 0)]


def test_who_may_describe_is_told_of_a_deletion_that_there_is_no_such_topic(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(DESCRIBE, TOPIC, "none"))
    asked = made(DeleteTopicsRequest, topics=[{"name": name} for name in ("none", "neither")])
    codes = {one.name: one.error_code for one in broker.ask(asked).responses}
    assert codes == {"none": UNKNOWN_TOPIC, "neither": TOPIC_DENIED}


def test_a_page_of_topics_goes_on_behind_one_that_may_not_be_described_any_more(
    broker: BrokerHarness, topics: dict[str, UUID]
) -> None:
    allow(broker, Grant(DESCRIBE, TOPIC, SHUT))
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=OPEN, partition_index=1)
    answer = broker.ask(DescribeTopicPartitionsRequest(topics=[], cursor=cursor))
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [(SHUT, 1)]
    asked = [{"name": name} for name in (OPEN, SHUT)]
    named = made(DescribeTopicPartitionsRequest, topics=asked)
    named.cursor = cursor
    codes = {topic.name: topic.error_code for topic in broker.ask(named).topics}
    assert codes == {SHUT: 0, OPEN: TOPIC_DENIED}


def test_a_coordinator_that_may_not_be_found_makes_no_topic(broker: BrokerHarness) -> None:
    allow(broker)
    asked = FindCoordinatorRequest(coordinator_keys=["mine", "yours"])
    assert [one.error_code for one in broker.ask(asked).coordinators] == [30, 30]
    assert broker.topics.names() == []
    allow(broker, Grant(DESCRIBE, GROUP, "mine"))
    assert [one.error_code for one in broker.ask(asked).coordinators] == [0, 30]
