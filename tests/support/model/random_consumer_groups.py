"""Random groups of the consumer protocol and their changes, for tests of the broker's assignors.

The ids of the topics are small numbers. Java's hash tables iterate over those in ascending order, as our
assignors do, so that even ties are decided alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from uuid import UUID

from kafkacore.broker.group.assignor import Assignment, MemberSubscription

#: Java's smallest table has 16 entries.
TOPICS = tuple(UUID(int=number) for number in range(1, 16))
#: Java and Python sort these names differently: UTF-16 code units, or code points.
ODD_NAMES = ("\uffee", "\U0001f600", "z", "Z", "")


@dataclass(frozen=True)
class ConsumerGroupCase:
    """The input of an assignor."""

    members: dict[str, MemberSubscription]
    partition_counts: dict[UUID, int]
    is_homogeneous: bool


def random_case(chance: Random) -> ConsumerGroupCase:
    """Return a group of new members."""
    topic_ids = chance.sample(TOPICS, chance.randint(1, chance.choice((2, 6, 15))))
    most = chance.choice((1, 5, 30))
    counts = {topic_id: chance.randint(1, most) for topic_id in topic_ids}
    is_homogeneous = chance.random() < 0.5
    case = ConsumerGroupCase({}, counts, is_homogeneous)
    shared = frozenset(topic_ids)
    members = {}
    for _ in range(chance.randint(1, chance.choice((3, 10, 50)))):
        member_id, instance_id = _names(chance)
        members[member_id] = MemberSubscription(
            instance_id, shared if is_homogeneous else _subscription(chance, counts), {}
        )
    return _consistent(replace(case, members=members))


def changed_case(
    chance: Random, case: ConsumerGroupCase, assigned: Mapping[str, Assignment]
) -> ConsumerGroupCase:
    """Return the group after members, topics or partitions have changed, with its last assignment."""
    counts = dict(case.partition_counts)
    members = {
        member_id: replace(member, assigned=assigned[member_id]) for member_id, member in case.members.items()
    }
    for _ in range(chance.randint(1, 4)):
        what = chance.randrange(5)
        if what == 0:
            topic_id = chance.choice(list(counts))
            counts[topic_id] += chance.randint(1, 5)
        elif what == 1:
            counts.setdefault(chance.choice(TOPICS), chance.randint(1, 20))
        elif what == 2 and len(members) > 1:
            del members[chance.choice(list(members))]
        elif what == 3:
            member_id, instance_id = _names(chance)
            members[member_id] = MemberSubscription(instance_id, _subscription(chance, counts), {})
        else:
            member_id = chance.choice(list(members))
            members[member_id] = replace(members[member_id], topic_ids=_subscription(chance, counts))
    if len(counts) > 1 and chance.random() < 0.2:
        del counts[chance.choice(list(counts))]
    return _consistent(ConsumerGroupCase(members, counts, case.is_homogeneous))


def _names(chance: Random) -> tuple[str, str | None]:
    name = chance.choice(ODD_NAMES) if chance.random() < 0.1 else ""
    member_id = f"{name}{chance.getrandbits(64):016x}"
    return member_id, f"{name}i-{chance.getrandbits(48):012x}" if chance.random() < 0.3 else None


def _subscription(chance: Random, counts: Mapping[UUID, int]) -> frozenset[UUID]:
    return frozenset(chance.sample(list(counts), chance.randint(0, len(counts))))


def _consistent(case: ConsumerGroupCase) -> ConsumerGroupCase:
    """Return the case with subscriptions to topics that exist, and with counts of subscribed topics only."""
    topics = frozenset(case.partition_counts)
    members = {
        member_id: replace(member, topic_ids=topics if case.is_homogeneous else member.topic_ids & topics)
        for member_id, member in case.members.items()
    }
    subscribed = frozenset[UUID]().union(*(member.topic_ids for member in members.values()))
    counts = {topic_id: count for topic_id, count in case.partition_counts.items() if topic_id in subscribed}
    if not counts:
        # The next change needs a topic to choose from.
        return replace(case, members=members)
    return replace(case, members=members, partition_counts=counts)
