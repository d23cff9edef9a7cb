"""A group of the consumer protocol (KIP-848) with our consumers, Java's and librdkafka's, on both brokers.

Members join, leave, are killed and are paused, and the broker restarts. Every partition has one owner at a
time, no record is skipped, and repeated records start at the last commit. ``model.group_history`` checks what
the members report, and is itself validated with planted faults.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from model.dose import dose, new_seed, note
from model.group_history import GroupHistory
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.group_events import WITH_OUTAGES, GroupEvents
from peers.java_peer import JavaPeer
from peers.mixed_group import CLIENTS, SHORT_CONSUMER_SESSIONS, MixedGroup

from kafkacore.testing import EmbeddedBroker

PARTITIONS = 8
EVENTS = dose(10, 500)
#: Events of a group that migrates. Each migration needs a new member in the place of each old one.
MIGRATION_EVENTS = dose(12, 500)
BROKERS = ["Apache Kafka", "our broker"]
#: A fault planted in a member, and a part of what the checker must report.
PLANTED = [("no revoke", "was assigned"), ("skip", "processed"), ("commit first", "commits")][: dose(2, 3)]


class Place(NamedTuple):
    """A broker and a folder for the members of its groups."""

    broker: ApacheKafka | EmbeddedBroker
    java: JavaPeer
    folder: Path

    def events(self, group: MixedGroup, seed: int) -> GroupEvents:
        """Return the events of a group.

        Apache Kafka 4.3.1 is stopped, not killed. After a SIGKILL, its coordinator sometimes starts with a
        part of the state ("Partitions were left unassigned", "Cannot set the epoch ... is still owned at
        epoch", "out of sync with the underlying log"), and some partitions have no owner from then on.

        In the full run there, librdkafka 2.16 takes no part. In one such run it reported five times that it
        had revoked partitions after another member had them; in another, a member of it never polled again
        after a restart of the broker. Three runs of 250 events with members of librdkafka alone did not
        become stable either: in one, a partition had no owner, and in two, synchronous commits of one and of
        two members did not return after a restart of the broker.
        """
        is_ours = isinstance(self.broker, EmbeddedBroker)
        return GroupEvents(
            group,
            random.Random(seed),
            WITH_OUTAGES,
            self.broker,
            may_kill_broker=is_ours,
            without=dose((), () if is_ours else ("confluent",)),
        )

    def group(self, topic: str, protocol: str) -> MixedGroup:
        """Return a group on a new topic."""
        servers = self.broker.bootstrap_servers
        self.java.create_topic(servers, topic, PARTITIONS)
        return MixedGroup(servers, topic, PARTITIONS, protocol, self.folder)


@pytest.fixture(scope="module", params=BROKERS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka | EmbeddedBroker]:
    """Start a broker that the tests of this file restart."""
    if request.param == "our broker":
        sessions = {name.replace(".", "_"): int(value) for name, value in SHORT_CONSUMER_SESSIONS.items()}
        with EmbeddedBroker(
            group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=500, **sessions
        ) as ours:
            yield ours
        return
    folder = tmp_path_factory.mktemp("restarted")
    with ApacheKafka(folder, {**RESTARTS_SOON, **SHORT_CONSUMER_SESSIONS}) as kafka:
        yield kafka


@pytest.fixture
def place(broker: ApacheKafka | EmbeddedBroker, java_peer: JavaPeer, tmp_path: Path) -> Place:
    return Place(broker, java_peer, tmp_path)


def check(place: Place, group: MixedGroup, events: GroupEvents, what: str, seed: int) -> None:
    """Check the history of the group and its stored offsets, and note its figures.

    The events stay in the folder of the test, to explain a violation.
    """
    history = GroupHistory()
    (place.folder / "events.txt").write_text("".join(f"{event}\n" for event in sorted(group.events())))
    assert "\n".join(history.check(group.events(), group.ends)) == ""
    stored = place.java.group_offsets(group.servers, group.group_id, group.topic)
    assert {number: offset for number, (offset, *_) in stored.items()} == group.ends
    note(
        what,
        seed,
        events=dict(events.counts),
        members=dict(Counter(member.client for member in group.past + group.members)),
        records=sum(group.ends.values()),
        repeated=history.repeated,
        assignments=history.counts["assigned"],
        losses=history.counts["lost"],
        refused_commits=history.counts["commit_failed"],
    )
    assert history.counts["dead"] + history.counts["closed"] == len(group.members) + len(group.past)


@pytest.mark.timeout(dose(300, 3_600))
def test_consumer_group_of_many_clients_keeps_its_word(place: Place) -> None:
    seed = new_seed()
    with place.group("mixed-consumer", "consumer") as group:
        events = place.events(group, seed)
        events.run(EVENTS)
        check(place, group, events, "consumer group of many clients", seed)


@pytest.mark.timeout(dose(300, 3_600))
def test_group_keeps_its_word_while_its_members_migrate(place: Place) -> None:
    seed = new_seed()
    with place.group("migrating", "classic and consumer") as group:
        events = place.events(group, seed)
        events.run(MIGRATION_EVENTS)
        assert min(events.counts["to classic"], events.counts["to consumer"]) >= 1
        check(place, group, events, "members that migrate to the consumer protocol and back", seed)


@pytest.mark.parametrize(("bug", "sentence"), PLANTED)
@pytest.mark.parametrize("client", CLIENTS["consumer"][-1:])
def test_checker_finds_a_fault_planted_in_a_member(
    place: Place, client: str, bug: str, sentence: str
) -> None:
    options = {"group_protocol": "consumer"}
    with place.group(f"fault-{bug.replace(' ', '-')}", "consumer") as group:
        with group.writing():
            first = group.join(client, bug=bug, **options)
            first.await_event(lambda event: event.kind == "committed")
            # When the other member has records, the first one must have lost partitions.
            group.join(client, **options).await_event(lambda event: event.kind == "records")
            first.await_event(lambda event: event.kind == "records", since=30)
        group.settle()
        wrong = GroupHistory().check(group.events(), group.ends)
    assert any(sentence in one for one in wrong), wrong
