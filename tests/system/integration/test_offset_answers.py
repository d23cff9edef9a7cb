"""Requests about offsets get the same responses from Apache Kafka and from our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from eventually import BUDGET_S, eventually
from model.broker_harness import batch
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer

from kafkacore import KafkaAdminClient, KafkaProducer, TopicPartition
from kafkacore.admin import NewTopic, OffsetSpec
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker
from kafkacore.wire import Uuid

TOPIC = "asked-about"
GROUP = "asked-group"
OFFSETS_TOPIC = "__consumer_offsets"
UNKNOWN_ID = UUID(int=77)


class Both:
    """One connection to each broker, and the id of :data:`TOPIC` there."""

    def __init__(self, theirs: Line, ours: Line) -> None:
        self._brokers = [(theirs, topic_id(theirs)), (ours, topic_id(ours))]

    def answers(self, question: Callable[[Line, UUID], Any]) -> Any:
        """Ask both brokers, and return their response after a check that it is the same."""
        theirs, ours = (question(*broker) for broker in self._brokers)
        assert ours == theirs
        return theirs


def topic_id(broker: Line) -> UUID:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    (topic,) = broker.ask(request, 12).topics
    assert isinstance(topic.topic_id, Uuid)
    return topic.topic_id


@pytest.fixture(scope="module")
def both(apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, java_peer: JavaPeer) -> Iterator[Both]:
    for broker in (apache_kafka, our_broker):
        java_peer.create_topic(broker.bootstrap_servers, TOPIC, 2)
    with Line(apache_kafka.bootstrap_servers) as theirs, Line(our_broker.bootstrap_servers) as ours:
        for broker in (theirs, ours):
            wait_for_coordinator(broker)
        yield Both(theirs, ours)


def wait_for_coordinator(broker: Line) -> None:
    """Wait until Apache Kafka has created and loaded its offsets topic, which the first lookup triggers."""

    def step() -> None:
        broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
        SYSTEM_CLOCK.sleep_ms(50)

    eventually(lambda: not committed(broker, UUID(int=0), 9, {0: 0}, group="another")[0], step=step)


def committed(
    broker: Line,
    uuid: UUID,
    version: int,
    offsets: dict[int, int],
    *,
    topic: str = TOPIC,
    group: str = GROUP,
    note: str | None = "note",
    **fields: Any,
) -> dict[int, int]:
    """Commit offsets, and return the error code of each partition."""
    named: dict[str, Any] = {"topic_id": uuid} if version >= 10 else {"name": topic}
    wanted = OffsetCommitRequest.OffsetCommitRequestTopic(
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=note
            )
            for partition, offset in offsets.items()
        ],
        **named,
    )
    answer = broker.ask(OffsetCommitRequest(group_id=group, topics=[wanted], **fields), version)
    return {
        one.partition_index: one.error_code
        for found in answer.topics
        for one in sorted(found.partitions, key=lambda each: int(each.partition_index))
    }


def fetched(broker: Line, uuid: UUID, version: int, partitions: list[int] | None, group: str = GROUP) -> Any:
    """Return (partition, offset, epoch, metadata, code) in order, and the group's error code."""
    if version < 8:
        old = [OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=partitions or [])]
        request = OffsetFetchRequest(group_id=group, topics=None if partitions is None else old)
    else:
        named: dict[str, Any] = {"topic_id": uuid} if version >= 10 else {"name": TOPIC}
        new = [OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=partitions or [], **named)]
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group, topics=None if partitions is None else new
        )
        request = OffsetFetchRequest(groups=[asked])
    answer = broker.ask(request, version)
    found = answer.groups[0] if version >= 8 else answer
    return found.error_code, sorted(
        (one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code)
        for topic in found.topics
        for one in topic.partitions
    )


@pytest.mark.parametrize("version", range(2, 11))
def test_commits_and_what_is_fetched_of_them(both: Both, version: int) -> None:
    assert both.answers(lambda broker, uuid: committed(broker, uuid, version, {0: 7, 1: version})) == {
        0: 0,
        1: 0,
    }
    for fetching in range(1, 11):
        code, found = both.answers(lambda broker, uuid, v=fetching: fetched(broker, uuid, v, [0, 1, 5, -1]))
        assert (code, found[1][1], found[2][1]) == (0, 7, version)
        if fetching >= 2:
            both.answers(lambda broker, uuid, v=fetching: fetched(broker, uuid, v, None))


@pytest.mark.parametrize("version", range(2, 11))
@pytest.mark.parametrize(
    "question",
    [
        {"offsets": {0: 1, 2: 1, -1: 1}},
        {"offsets": {0: 1}, "note": "x" * 4096},
        {"offsets": {0: 1}, "note": "x" * 4097},
        {"offsets": {0: 1}, "note": None},
        {"offsets": {0: 1}, "member_id": "unknown"},
        {"offsets": {0: 1}, "generation_id_or_member_epoch": 0},
        {"offsets": {0: 1}, "member_id": "unknown", "generation_id_or_member_epoch": 5},
        {"offsets": {0: 1}, "group": "never-seen", "generation_id_or_member_epoch": 5},
        {"offsets": {0: 1}, "group": "never-seen-either", "member_id": "unknown"},
        {"offsets": {0: 1}, "group": ""},
        {"offsets": {0: -5}, "group": "of-negative-offsets"},
        {"offsets": {}},
    ],
    ids=lambda question: "-".join(map(str, [*question, *question["offsets"]])),
)
def test_commits_that_are_taken_or_refused(both: Both, version: int, question: dict[str, Any]) -> None:
    both.answers(lambda broker, uuid: committed(broker, uuid, version, **question))


@pytest.mark.parametrize("version", range(7, 11))
def test_static_member_that_nobody_knows(both: Both, version: int) -> None:
    both.answers(
        lambda broker, uuid: committed(
            broker, uuid, version, {0: 1}, group_instance_id="i", generation_id_or_member_epoch=3
        )
    )


@pytest.mark.parametrize("version", range(2, 11))
def test_topic_that_is_not_there(both: Both, version: int) -> None:
    def commit(broker: Line, _: UUID) -> Any:
        return committed(broker, UNKNOWN_ID, version, {0: 1}, topic="not-there")

    assert both.answers(commit) == {0: 100 if version >= 10 else 3}


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize("group", ["unknown", ""])
def test_fetch_of_a_group_that_is_not_there(both: Both, version: int, group: str) -> None:
    code, _ = both.answers(lambda broker, uuid: fetched(broker, uuid, version, [0, 1], group))
    assert code == 0
    if version >= 2:
        both.answers(lambda broker, uuid: fetched(broker, uuid, version, None, group))


def test_fetch_by_ids_that_nobody_has(both: Both) -> None:
    for unknown in (UNKNOWN_ID, ZERO_UUID):
        both.answers(lambda broker, _, unknown=unknown: fetched(broker, unknown, 10, [0]))


def deleted(broker: Line, group: str, topic: str, partitions: list[int]) -> Any:
    wanted = OffsetDeleteRequest.OffsetDeleteRequestTopic(
        name=topic,
        partitions=[
            OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=one) for one in partitions
        ],
    )
    answer = broker.ask(OffsetDeleteRequest(group_id=group, topics=[wanted]), 0)
    return answer.error_code, sorted(
        (one.partition_index, one.error_code) for found in answer.topics for one in found.partitions
    )


@pytest.mark.parametrize(
    ("group", "topic", "partitions"),
    [
        ("deleting", TOPIC, [0, 1, 2, -1]),
        ("deleting", "not-there", [0]),
        ("deleting", TOPIC, []),
        ("never-heard-of", TOPIC, [0]),
        ("", TOPIC, [0]),
    ],
)
def test_deletion_of_offsets(both: Both, group: str, topic: str, partitions: list[int]) -> None:
    both.answers(lambda broker, uuid: committed(broker, uuid, 9, {0: 1, 1: 2}, group="deleting"))
    both.answers(lambda broker, _: deleted(broker, group, topic, partitions))
    both.answers(lambda broker, uuid: fetched(broker, uuid, 9, [0, 1], "deleting"))


@pytest.mark.parametrize("version", range(7))
def test_coordinator_of_a_group_is_found(both: Both, version: int) -> None:
    def find(broker: Line, _: UUID) -> Any:
        if version < 4:
            answer = broker.ask(FindCoordinatorRequest(key=GROUP), version)
            return [(answer.error_code, answer.node_id >= 0)]
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP, "other", ""])
        found = broker.ask(request, version).coordinators
        return [(one.key, one.error_code, one.node_id >= 0) for one in found]

    both.answers(find)


def test_offsets_topic_is_internal_and_nobody_produces_to_it(both: Both) -> None:
    def describe(broker: Line, _: UUID) -> Any:
        topics = broker.ask(MetadataRequest(topics=None), 9).topics
        return [(one.name, one.is_internal) for one in topics if one.name in (OFFSETS_TOPIC, TOPIC)]

    def produce(broker: Line, _: UUID) -> Any:
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"x"))
        topic = ProduceRequest.TopicProduceData(name=OFFSETS_TOPIC, partition_data=[data])
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
        return broker.ask(request, 9).responses[0].partition_responses[0].error_code

    def create(broker: Line, _: UUID) -> Any:
        topic = CreateTopicsRequest.CreatableTopic(name=OFFSETS_TOPIC, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        return broker.ask(request, 7).topics[0].error_code

    assert sorted(both.answers(lambda *broker: sorted(describe(*broker)))) == [
        (OFFSETS_TOPIC, True),
        (TOPIC, False),
    ]
    assert both.answers(produce) == 17
    assert both.answers(create) == 36


def test_configs_of_the_offsets_topic(both: Both, java_peer: JavaPeer) -> None:
    from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest

    def configs(broker: Line, _: UUID) -> Any:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=2,
            resource_name=OFFSETS_TOPIC,
            configuration_keys=["cleanup.policy", "compression.type", "segment.bytes"],
        )
        (result,) = broker.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        return sorted((one.name, one.value, one.config_source) for one in result.configs)

    assert [(name, value) for name, value, _ in both.answers(configs)] == [
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("segment.bytes", "104857600"),
    ]


@pytest.mark.parametrize(
    ("timestamps", "before_offset"),
    [((3000, 2000, 1000), 2), ((1000, 2000, 3000), 3), ((1000, 2000, 3000), 1)],
)
def test_largest_timestamp_after_records_were_deleted(
    apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, timestamps: tuple[int, ...], before_offset: int
) -> None:
    """Both return a deleted record as long as its segment exists."""
    found = []
    tp = TopicPartition(f"deleted-{timestamps[0]}-{before_offset}", 0)
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(tp.topic, 1, 1)])
            with KafkaProducer(bootstrap_servers=servers) as producer:
                for timestamp in timestamps:
                    producer.send(tp.topic, b"v", timestamp_ms=timestamp).get(BUDGET_S)
            assert admin.delete_records({tp: before_offset})[tp]["low_watermark"] == before_offset
            specs = (OffsetSpec.MAX_TIMESTAMP, OffsetSpec.EARLIEST, OffsetSpec.LATEST, 0, 1500)
            found.append([admin.list_partition_offsets({tp: spec})[tp] for spec in specs])
    theirs, ours = found
    assert ours == theirs
    assert ours[0] == (timestamps.index(3000), 3000, 0)
