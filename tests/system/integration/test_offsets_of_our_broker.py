"""Offsets in our broker, read by Java's Admin client and as files: each broker can read the other's."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from pathlib import Path

import pytest
from eventually import eventually
from model.offsets_topic_records import broken_records, log_of, offsets_topic_records
from peers.apache_kafka import ApacheKafka
from peers.jars import JavaToolError, run_java
from peers.java_peer import JavaPeer

from kafkacore import KafkaConsumer, SubscriptionPattern, TopicPartition
from kafkacore.broker.coordinator.loader import load_partition
from kafkacore.broker.group.replay import Replay
from kafkacore.broker.log import LogManager
from kafkacore.cli.main import main
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.coordinator import partition_for
from kafkacore.structs import OffsetAndMetadata
from kafkacore.testing.embedded_broker import EmbeddedBroker

DUMP = "org.apache.kafka.tools.DumpLogSegments"
OFFSETS_TOPIC = "__consumer_offsets"


def test_admin_client_alters_lists_and_deletes_offsets(
    our_broker: EmbeddedBroker, java_peer: JavaPeer
) -> None:
    servers, topic, group = our_broker.bootstrap_servers, "administered", "administered-group"
    java_peer.create_topic(servers, topic, 3)
    offsets = {0: (5, "a note", 2), 1: (6, "", -1), 2: (7, "ü", -1)}
    java_peer.alter_group_offsets(servers, group, topic, offsets)
    assert java_peer.group_offsets(servers, group, topic) == offsets
    java_peer.delete_group_offsets(servers, group, topic, [0, 2])
    assert java_peer.group_offsets(servers, group, topic) == {1: (6, "", -1)}
    with pytest.raises(JavaToolError, match="UnknownTopicOrPartition"):
        java_peer.alter_group_offsets(servers, group, topic, {3: (1, "", -1)})
    with pytest.raises(JavaToolError, match="GroupIdNotFound"):
        java_peer.delete_group_offsets(servers, "unknown", topic, [0])


def test_offsets_survive_a_restart_and_go_with_their_topic(java_peer: JavaPeer) -> None:
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        for topic in ("stays", "goes"):
            java_peer.create_topic(servers, topic, 1)
            java_peer.alter_group_offsets(servers, "g", topic, {0: (3, "note", -1)})
        broker.restart()
        assert java_peer.group_offsets(servers, "g", "stays") == {0: (3, "note", -1)}
        java_peer.delete_topic(servers, "goes")
        java_peer.create_topic(servers, "goes", 1)
        assert java_peer.group_offsets(servers, "g", "goes") == {}
        broker.kill()
        broker.start()
        assert java_peer.group_offsets(servers, "g", "goes") == {}
        assert java_peer.group_offsets(servers, "g", "stays") == {0: (3, "note", -1)}


def test_our_consumer_commits_without_a_group_of_members(
    our_broker: EmbeddedBroker, java_peer: JavaPeer
) -> None:
    topic, group = "assigned-topic", "assigned-group"
    java_peer.create_topic(our_broker.bootstrap_servers, topic, 1)
    place = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=our_broker.bootstrap_servers, group_id=group) as consumer:
        consumer.assign([place])
        assert consumer.committed(place) is None
        consumer.commit({place: OffsetAndMetadata(11, "note", 0)})
        assert consumer.committed(place, metadata=True) == OffsetAndMetadata(11, "note", 0)
        errors: list[object] = []
        for number in range(30):
            consumer.commit_async({place: OffsetAndMetadata(number)}, lambda *said: errors.append(said[1]))
        consumer.commit({place: OffsetAndMetadata(99)})
        assert errors == [None] * 30
    with KafkaConsumer(bootstrap_servers=our_broker.bootstrap_servers, group_id=group) as consumer:
        assert consumer.committed(place) == 99


@pytest.mark.parametrize("codec", [0, 4])
def test_dump_log_segments_reads_our_records(tmp_path: Path, java_peer: JavaPeer, codec: int) -> None:
    # If a commit had to wait for the disk longer than Kafka's 5 s, Java would repeat it, and add records.
    settings = {"offsets_topic_compression_codec": codec, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(tmp_path, **settings) as broker:
        servers = broker.bootstrap_servers
        java_peer.create_topic(servers, "t", 2)
        java_peer.alter_group_offsets(servers, "dumped", "t", {0: (41, "a note", 7), 1: (42, "", -1)})
        java_peer.delete_group_offsets(servers, "dumped", "t", [1])
        broker.stop()
        folder = tmp_path / f"{OFFSETS_TOPIC}-{partition_for('dumped')}"
        files = ",".join(map(str, sorted(folder.glob("*.log"))))
        said = run_java(DUMP, "--offsets-decoder", "--deep-iteration", "--files", files).decode()
    lines = [line for line in said.splitlines() if " key: " in line]
    keys = [re.findall(r'key: .*?"group":"dumped","topic":"t","partition":(\d)', line) for line in lines]
    # Java sends the partitions of a commit in an order of its own.
    commits = {number: line for (number,), line in zip(keys[:2], lines, strict=False)}
    for number, offset, note, epoch in (("0", 41, "a note", 7), ("1", 42, "", -1)):
        said_of_it = f'"offset":{offset},"leaderEpoch":{epoch},"metadata":"{note}","commitTimestamp":'
        assert said_of_it in commits[number]
    assert keys[2:] == [["1"]]
    assert "payload: <DELETE>" in lines[2] or "payload" not in lines[2], lines[2]
    assert not re.search("unknown|exception|invalid", said, re.IGNORECASE)


def member_of(servers: str, group: str, topic: str) -> KafkaConsumer:
    """Return a member of a consumer group that owns the topic's two partitions."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        group_protocol="consumer",
        client_id="the-member",
        client_rack="the-rack",
        enable_auto_commit=False,
    )
    consumer.subscribe(pattern=SubscriptionPattern(f"{topic}.*"))
    eventually(lambda: len(consumer.assignment()) == 2, step=lambda: consumer.poll(timeout_ms=100))
    return consumer


def test_dump_log_segments_reads_our_consumer_groups(tmp_path: Path, java_peer: JavaPeer) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        java_peer.create_topic(broker.bootstrap_servers, "t", 2)
        member_of(broker.bootstrap_servers, "dumped", "t").close()
        broker.stop()
        folder = tmp_path / f"{OFFSETS_TOPIC}-{partition_for('dumped')}"
        files = ",".join(map(str, sorted(folder.glob("*.log"))))
        said = run_java(DUMP, "--offsets-decoder", "--deep-iteration", "--files", files).decode()
    assert not re.search("unknown|exception|invalid|error", said, re.IGNORECASE)
    found = [
        (json.loads(key), None if payload == "<DELETE>" else json.loads(payload)["data"])
        for key, payload in re.findall(r"key: (\{.*?\}\}) payload: (.*)", said)
    ]
    assert all(key["data"]["groupId"] == "dumped" for key, _ in found)
    kinds = {(int(key["type"]), payload is None) for key, payload in found}
    assert kinds == {
        *((kind, False) for kind in (3, 5, 6, 7, 8, 16)),
        *((kind, True) for kind in (5, 7, 8, 16)),
    }
    last = {int(key["type"]): payload for key, payload in found if payload is not None}
    assert (last[5]["clientId"], last[5]["rackId"]) == ("the-member", "the-rack")
    assert (last[5]["subscribedTopicRegex"], last[5]["classicMemberMetadata"]) == ("t.*", None)
    assert last[16]["topics"] == ["t"]
    owned = [payload["assignedPartitions"] for key, payload in found if key["type"] == "8" and payload]
    assert [one["partitions"] for one in owned[-1]] == [[0, 1]]
    assert len(owned[-1][0]["assignmentEpochs"]) == 2


def test_our_dump_of_the_offsets_topic_is_that_of_kafkas_tool(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The text after the metadata of each record is the same, except the reason of an error."""
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(log_of([*offsets_topic_records(), *broken_records()]))
    theirs = run_java(DUMP, "--offsets-decoder", "--files", str(file)).decode()
    assert main(["dump-log", str(file), "--offsets-decoder"]) == 0
    ours = capfd.readouterr().out
    content = re.compile(r"\| offset: .*? (key: (?:Error at offset \d+, skipping\.|.*))")
    assert content.findall(ours) == content.findall(theirs)
    assert len(content.findall(ours)) == len(offsets_topic_records()) + len(broken_records())


def test_segments_of_apache_kafka_load_as_what_was_committed_there(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, tmp_path: Path
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"kept-{uuid.uuid4().hex[:8]}"
    group = f"{topic}-group"
    java_peer.create_topic(servers, topic, 2)
    for offset in range(20):
        java_peer.commit(servers, group, topic, {0: (offset, "note", 3), 1: (2 * offset, "", -1)})
    java_peer.delete_group_offsets(servers, group, topic, [1])
    shutil.copytree(apache_kafka.segments_dir / f"{OFFSETS_TOPIC}-0", tmp_path / f"{OFFSETS_TOPIC}-0")
    with LogManager(tmp_path, clock=SYSTEM_CLOCK) as logs:
        place = TopicPartition(OFFSETS_TOPIC, 0)
        log = logs.log(place)
        assert log is not None
        loaded = load_partition(Replay(place), log, 1 << 20, lambda: False)
    (partition,) = loaded.offsets.of_group(group)[topic].items()
    assert partition[0] == 0
    assert (partition[1].offset, partition[1].metadata, partition[1].leader_epoch) == (19, "note", 3)


def test_consumer_group_of_apache_kafka_loads_as_it_was_there(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, tmp_path: Path
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"kept-{uuid.uuid4().hex[:8]}"
    group_id = f"{topic}-group"
    java_peer.create_topic(servers, topic, 2)
    with member_of(servers, group_id, topic) as consumer:
        generation = consumer.group_metadata()
        shutil.copytree(apache_kafka.segments_dir / f"{OFFSETS_TOPIC}-0", tmp_path / f"{OFFSETS_TOPIC}-0")
    with LogManager(tmp_path, clock=SYSTEM_CLOCK) as logs:
        log = logs.log(TopicPartition(OFFSETS_TOPIC, 0))
        assert log is not None
        loaded = load_partition(Replay(TopicPartition(OFFSETS_TOPIC, 0)), log, 1 << 20, lambda: False)
    group = loaded.consumer_groups[group_id]
    member = group.get(generation.member_id)
    assert member is not None
    assert (member.client_id, member.rack_id) == ("the-member", "the-rack")
    assert member.member_epoch == generation.generation_id
    (owned,) = member.assigned.values()
    assert sorted(owned) == [0, 1]
