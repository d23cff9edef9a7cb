"""Our codec reads the records of Apache Kafka's ``__consumer_offsets``."""

from __future__ import annotations

import struct
import uuid

from eventually import BUDGET_MS, eventually
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer

from kafkacore import KafkaConsumer, SubscriptionPattern, TopicPartition
from kafkacore.broker.group import records
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.coordinator import partition_for
from kafkacore.coordinator.protocol import decode_assignment, decode_subscription
from kafkacore.protocol.generated.group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupRegularExpressionKey,
    GroupMetadataKey,
    OffsetCommitKey,
)
from kafkacore.structs import OffsetAndMetadata

CLASSIC = (OffsetCommitKey, GroupMetadataKey)


def pairs_of(
    servers: str, group: str, last: type, is_tombstone: bool = False
) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values of a group's records, once there is a record (or tombstone) of type ``last``.

    If the topic was not known at first, the group has rejoined, and several records come before it.
    """
    found: list[tuple[bytes, bytes | None]] = []
    with KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", exclude_internal_topics=False
    ) as consumer:
        partitions = consumer.partitions_for_topic("__consumer_offsets")
        place = TopicPartition("__consumer_offsets", partition_for(group, len(partitions)))
        consumer.assign([place])

        def step() -> None:
            for record in consumer.poll(timeout_ms=200).get(place, ()):
                key = records.decode_key(record.key)
                if key is not None and group == (key.group if isinstance(key, CLASSIC) else key.group_id):
                    found.append((record.key, record.value))

        eventually(
            lambda: any(
                isinstance(records.decode_key(key), last) and is_tombstone == (value is None)
                for key, value in found
            ),
            lambda: found,
            step=step,
        )
    return found


def test_what_apache_kafka_keeps_of_a_group_is_read(apache_kafka: ApacheKafka, java_peer: JavaPeer) -> None:
    servers = apache_kafka.bootstrap_servers
    topic, group = f"kept-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    java_peer.create_topic(servers, topic, 2)
    place = TopicPartition(topic, 1)
    with KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        client_id="the-member",
        group_instance_id="static-1",
        enable_auto_commit=False,  # on a slow machine, it would add a second commit
    ) as consumer:
        eventually(lambda: len(consumer.assignment()) >= 2, step=lambda: consumer.poll(timeout_ms=100))
        consumer.commit({place: OffsetAndMetadata(42, "a note", 5)})
        found = pairs_of(servers, group, OffsetCommitKey)
    decoded = [(records.decode_key(key), value) for key, value in found]
    generations = [value for key, value in decoded if isinstance(key, GroupMetadataKey) and value is not None]
    generation = records.decode_group_metadata(generations[-1])
    assert generation.protocol_type == "consumer"
    assert generation.generation >= 1
    (member,) = generation.members
    assert (generation.leader, member.group_instance_id, member.client_id) == (
        member.member_id,
        "static-1",
        "the-member",
    )
    assert list(decode_subscription(member.subscription).topics) == [topic]
    assert set(decode_assignment(member.assignment).partitions) == {TopicPartition(topic, 0), place}
    (commit,) = [
        value
        for key, value in decoded
        if value is not None and key == OffsetCommitKey(group=group, topic=topic, partition=1)
    ]
    offset = records.decode_offset_commit(commit)
    assert (offset.offset, offset.leader_epoch, offset.metadata) == (42, 5, "a note")
    assert abs(SYSTEM_CLOCK.wall_ms() - offset.commit_timestamp) < BUDGET_MS
    # Our encoding equals the record that was read, byte for byte and in the same version.
    assert records.offset_commit(group, topic, 1, offset).value == commit
    assert records.group_metadata(group, generation).value == generations[-1]
    assert struct.unpack_from(">h", commit)[0] == records.OFFSET_COMMIT_VALUE_VERSION


def test_what_apache_kafka_keeps_of_a_consumer_group_is_read(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    servers = apache_kafka.bootstrap_servers
    topic, group = f"kept-{uuid.uuid4().hex[:8]}", f"group-{uuid.uuid4().hex[:8]}"
    java_peer.create_topic(servers, topic, 2)
    with KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        group_protocol="consumer",
        client_id="the-member",
        client_rack="the-rack",
    ) as consumer:
        consumer.subscribe(pattern=SubscriptionPattern(f"{topic}.*"))
        eventually(lambda: len(consumer.assignment()) >= 2, step=lambda: consumer.poll(timeout_ms=100))
        consumer.commit({TopicPartition(topic, 1): OffsetAndMetadata(42, "a note", 5)})
    # Of the tombstones, that of the regular expression is the last one. A poll may end before it.
    found = pairs_of(servers, group, ConsumerGroupRegularExpressionKey, is_tombstone=True)
    kinds = set()
    for key, value in found:
        decoded = records.decode_key(key)
        if decoded is None or isinstance(decoded, CLASSIC):
            continue
        read = None if value is None else records.decode_consumer_value(decoded, value)
        kinds.add((records.CONSUMER_RECORDS[type(decoded)][0], value is None))
        # Our encoding equals the record that was read, byte for byte.
        assert records.consumer_record(decoded, read) == (key, value)
        if isinstance(decoded, ConsumerGroupMemberMetadataKey) and value is not None:
            assert (read.client_id, read.rack_id) == ("the-member", "the-rack")
            assert (read.subscribed_topic_regex, read.classic_member_metadata) == (f"{topic}.*", None)
    assert kinds == {
        *((kind, False) for kind in (3, 5, 6, 7, 8, 16)),
        *((kind, True) for kind in (5, 7, 8, 16)),
    }
