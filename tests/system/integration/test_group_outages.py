"""Our consumers on Apache Kafka when a member is paused or restarted, or when many come and go at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from eventually import BUDGET_MS, LONG_SESSION_MS, eventually
from model.dose import IS_FULL, dose, new_seed, note
from model.group_history import Event, GroupHistory
from model.paused_process import paused
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer
from peers.mixed_group import Member, MixedGroup

from kafkacore.clock import SYSTEM_CLOCK

SHORT_SESSION_MS = 1_500


def made_group(
    kafka: ApacheKafka, java: JavaPeer, scratch: Path, topic: str, protocol: str, partitions: int = 8
) -> MixedGroup:
    java.create_topic(kafka.bootstrap_servers, topic, partitions)
    return MixedGroup(kafka.bootstrap_servers, topic, partitions, protocol, scratch)


def is_change(event: Event) -> bool:
    return event.kind in {"assigned", "revoked", "lost"}


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"][dose(1, 0) :])
def test_member_that_stood_still_too_long_is_fenced(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, tmp_path: Path, protocol: str
) -> None:
    with made_group(apache_kafka, java_peer, tmp_path, f"stopped-{protocol}", protocol) as group:
        group.options = {"session_timeout_ms": SHORT_SESSION_MS}
        with group.writing():
            # The member works long between a record and its commit, so that it is probably paused there.
            stopped = group.join("kafkacore", work_s=0.4)
            other = group.join("kafkacore", session_timeout_ms=int(2 * BUDGET_MS))
            group.await_stable()

            def was_refused() -> bool:
                """Return whether the pause came before a commit, and the commit was rejected."""
                before, after = stand_still(group, stopped, other)
                if before[-1] == "committing":
                    return False
                assert "committed" not in after[: after.index("lost")]
                return "commit_failed" in after

            eventually(was_refused, "it was never paused between a record and its commit")
        group.settle()
        assert GroupHistory().check(group.events(), group.ends) == []


def stand_still(group: MixedGroup, stopped: Member, other: Member) -> tuple[list[str], list[str]]:
    """Pause a member until the other one owns all partitions.

    Return the kinds of its events before and since. A busy machine may pause it at another point than between
    a record and its commit.
    """
    stopped.await_event(lambda event: event.kind == "records", since=len(stopped.events))
    seen = len(other.events)
    with paused(stopped.process.pid):
        stopped_ns = SYSTEM_CLOCK.monotonic_ms() * 1e6
        other.await_event(lambda event: len(event.what.get("owned", ())) == group.partitions, seen)
    stopped.await_event(lambda event: event.kind == "lost" and event.time_ns > stopped_ns)
    group.await_stable()
    before = [event.kind for event in stopped.events if event.time_ns <= stopped_ns]
    return before, [event.kind for event in stopped.events[len(before) :]]


@pytest.mark.parametrize("how", ["killed", "closed"][: dose(1, 2)])
def test_static_member_bounced_within_its_session_causes_no_rebalance(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, tmp_path: Path, how: str
) -> None:
    with made_group(apache_kafka, java_peer, tmp_path, f"bounced-{how}", "range") as group:
        # The session does not expire even if a process is slow to start.
        group.options = {"session_timeout_ms": LONG_SESSION_MS}
        with group.writing():
            members = [group.join("kafkacore", instance=f"i{number}") for number in range(3)]
            group.await_stable()
            first = members[0]
            owned = first.owned()
            seen = [sum(map(is_change, member.events)) for member in members[1:]]
            if how == "killed":
                group.kill(first)
            else:
                group.leave(first)
                first.ended()
            again = group.join("kafkacore", instance="i0")
            again.await_event(lambda event: event.kind == "committed")
            assert again.owned() == owned
            assert [sum(map(is_change, member.events)) for member in members[1:]] == seen
            assert generation_of(again.events) == generation_of(members[1].events)
        group.settle()
        assert GroupHistory().check(group.events(), group.ends) == []


def generation_of(events: list[Event]) -> int:
    found: int = [event.what["generation"] for event in events if event.kind == "assigned"][-1]
    return found


@pytest.mark.timeout(dose(120, 600))
@pytest.mark.parametrize("kind", ["eager", "cooperative", "static"] if IS_FULL else ["cooperative"])
def test_group_is_stable_again_after_many_have_come_and_gone(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, tmp_path: Path, kind: str
) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    count, partitions = dose((4, 12), (20, 64))
    protocol = "cooperative-sticky" if kind == "cooperative" else "range"
    with made_group(apache_kafka, java_peer, tmp_path, f"storm-{kind}", protocol, partitions) as group:
        group.options = {"session_timeout_ms": 5_000}
        instances = [f"i{number}" if kind == "static" else None for number in range(count)]
        with group.writing():
            names = {group.join("kafkacore", instance=instance).name: instance for instance in instances}
            group.await_stable()
            for _ in range(dose(1, 3)):
                gone = chance.sample(group.members, count // 2)
                for place, member in enumerate(gone):
                    group.kill(member) if place % 2 else group.leave(member)
                begun_ms = SYSTEM_CLOCK.monotonic_ms()
                for member in gone:
                    new = group.join("kafkacore", instance=names[member.name])
                    names[new.name] = names[member.name]
                for member in group.members:
                    member.await_event(lambda event: event.kind == "started")
                begun_ms = max(begun_ms, SYSTEM_CLOCK.monotonic_ms())
                stable_ms = group.await_stable() - begun_ms
                note(
                    f"storm of {count} {kind} members, {partitions} partitions",
                    seed,
                    stable_after_ms=round(stable_ms),
                )
        group.settle()
        assert GroupHistory().check(group.events(), group.ends) == []
