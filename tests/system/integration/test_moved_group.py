"""A data folder moves from Apache Kafka to our broker and back under a live group of the consumer protocol.

The members stay: no partition is lost or has two owners, and nothing is skipped.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from model.dose import dose, note
from model.group_history import GroupHistory
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.java_peer import JavaPeer
from peers.mixed_group import CLIENTS, MixedGroup

from kafkacore.testing import EmbeddedBroker

PARTITIONS = 8
MOVES = dose(1, 10)
HEARTBEATS = {
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
OPTIONS = {"group_protocol": "consumer"}


def await_commits(group: MixedGroup) -> None:
    """Wait until each member has committed once more."""
    known = {member: len(member.events) for member in group.members}
    for member, since in known.items():
        member.await_event(lambda event: event.kind == "committed", since)


@pytest.mark.timeout(dose(240, 1_800))
def test_members_stay_when_their_folder_moves_between_brokers(java_peer: JavaPeer, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka", {**RESTARTS_SOON, **HEARTBEATS}) as kafka:
        servers = kafka.bootstrap_servers
        java_peer.create_topic(servers, "moved", PARTITIONS)
        ours = {name.replace(".", "_"): int(value) for name, value in HEARTBEATS.items()}
        with MixedGroup(servers, "moved", PARTITIONS, "consumer", tmp_path) as group:
            with group.writing():
                for client in CLIENTS["consumer"]:
                    # After a restart of any broker, a member of librdkafka 2.16 sometimes never commits again
                    # (test_mixed_consumer_group.py).
                    if client != "confluent":
                        group.join(client, **OPTIONS)
                group.await_stable()
                for _ in range(MOVES):
                    kafka.stop()
                    with EmbeddedBroker(kafka.segments_dir, node_id=1, port=kafka.port, **ours):
                        await_commits(group)
                        # The assignment changes, so that the folder goes back with records of our broker.
                        group.join("kafkacore", **OPTIONS)
                        group.await_stable()
                        group.leave(group.members[0])
                        group.await_stable()
                    kafka.start()
                    await_commits(group)
                    group.join("java", **OPTIONS)
                    group.await_stable()
                    group.leave(group.members[0])
                    group.await_stable()
            group.settle()
            history = GroupHistory()
            assert "\n".join(history.check(group.events(), group.ends)) == ""
            stored = java_peer.group_offsets(servers, group.group_id, "moved")
            assert {number: offset for number, (offset, *_) in stored.items()} == group.ends
    note(
        "folder moved between Apache Kafka and our broker under a consumer group",
        moves=2 * MOVES,
        members=dict(Counter(member.client for member in group.past + group.members)),
        records=sum(group.ends.values()),
        repeated=history.repeated,
        assignments=history.counts["assigned"],
    )
    assert history.counts["lost"] == 0
