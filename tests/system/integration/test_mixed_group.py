"""A group of our consumers and those of Java, confluent, kafka-python and aiokafka, on both brokers.

Members join, leave and are killed. Every partition has one owner at a time, no record is skipped, and
repeated records start at the last commit. ``model.group_history`` checks what the members report, and is
itself validated with planted faults.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from model.dose import IS_FULL, dose, new_seed, note
from model.group_history import GroupHistory
from peers.apache_kafka import ApacheKafka
from peers.group_events import GroupEvents
from peers.java_peer import JavaPeer
from peers.mixed_group import ASSIGNORS, CLIENTS, MixedGroup

from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 8
#: Number of joins, leaves and kills for each protocol.
EVENTS = dose(8, 100)
#: Number of kills of the broker.
BROKER_KILLS = dose(2, 50)
PROTOCOLS = ASSIGNORS if IS_FULL else ["range", "cooperative-sticky"]
BROKERS = ["Apache Kafka", "our broker"]
#: A fault planted in a member, and a pattern of what the checker must report. Of a partition that is not
#: revoked it reports the one or the other, depending on which member reports first.
PLANTED = [
    ("no revoke", "was assigned|both own"),
    ("commit first", "commits"),
    ("skip", "processed"),
][: dose(1, 3)]

Made = Callable[..., MixedGroup]


@pytest.fixture
def mixed_group(
    apache_kafka: ApacheKafka, our_groups: EmbeddedBroker, java_peer: JavaPeer, tmp_path: Path
) -> Made:
    """Return a function that creates a group on a topic of its own."""
    servers = dict(zip(BROKERS, (apache_kafka.bootstrap_servers, our_groups.bootstrap_servers), strict=True))

    def make(topic: str, protocol: str, broker: str = "Apache Kafka") -> MixedGroup:
        java_peer.create_topic(servers[broker], topic, PARTITIONS)
        return MixedGroup(servers[broker], topic, PARTITIONS, protocol, tmp_path)

    return make


@pytest.mark.timeout(dose(120, 900))
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("broker", BROKERS)
def test_group_of_many_clients_keeps_its_word(mixed_group: Made, broker: str, protocol: str) -> None:
    seed = new_seed()
    with mixed_group(f"mixed-{protocol}".replace(" ", "-"), protocol, broker) as group:
        GroupEvents(group, random.Random(seed)).run(EVENTS)
        history = GroupHistory()
        assert "\n".join(history.check(group.events(), group.ends)) == ""
    members = Counter(member.client for member in (*group.members, *group.past))
    note(
        f"group of many clients on {broker}, {protocol}",
        seed,
        members=dict(members),
        killed=history.counts["dead"],
        records=sum(group.ends.values()),
        repeated=history.repeated,
        assignments=history.counts["assigned"],
        losses=history.counts["lost"],
        refused_commits=history.counts["commit_failed"],
    )
    assert history.counts["dead"] + history.counts["closed"] == len(group.members) + len(group.past)


@pytest.mark.timeout(dose(120, 1_200))
def test_group_of_every_client_outlives_kills_of_our_broker(java_peer: JavaPeer, tmp_path: Path) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=500) as broker:
        java_peer.create_topic(broker.bootstrap_servers, "outlives", PARTITIONS)
        with MixedGroup(broker.bootstrap_servers, "outlives", PARTITIONS, "range", tmp_path) as group:
            with group.writing():
                for client in CLIENTS["range"]:
                    group.join(client)
                for _ in range(BROKER_KILLS):
                    group.await_stable()
                    # A random time before the kill, not a wait for a condition.
                    threading.Event().wait(chance.uniform(0.0, 1.0))
                    broker.kill()
                    broker.start()
                    known = {member: len(member.events) for member in group.members}
                    for member, since in known.items():
                        member.await_event(lambda event: event.kind == "committed", since)
            group.settle()
            history = GroupHistory()
            assert "\n".join(history.check(group.events(), group.ends)) == ""
    note(
        "our broker killed under a group of every client",
        seed,
        kills=BROKER_KILLS,
        records=sum(group.ends.values()),
        repeated=history.repeated,
        losses=history.counts["lost"],
        refused_commits=history.counts["commit_failed"],
    )
    assert history.counts["closed"] == len(CLIENTS["range"])


@pytest.mark.parametrize(("bug", "sentence"), PLANTED)
def test_judge_sees_a_planted_fault(mixed_group: Made, bug: str, sentence: str) -> None:
    with mixed_group(f"bug-{bug.replace(' ', '-')}", "cooperative-sticky") as group:
        with group.writing():
            first = group.join("kafkacore", bug=bug)
            first.await_event(lambda event: event.kind == "committed")
            # When the other member has records, the first one must have lost partitions.
            group.join("kafkacore").await_event(lambda event: event.kind == "records")
            first.await_event(lambda event: event.kind == "records", since=30)
        group.settle()
        wrong = GroupHistory().check(group.events(), group.ends)
    assert any(re.search(sentence, one) for one in wrong), wrong
