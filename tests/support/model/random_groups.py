"""Random consumer groups: members, topics, racks and claims of owned partitions, determined by a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from kafkacore.coordinator.assignors import PartitionAssignor, PartitionRacks
from kafkacore.coordinator.assignors.sticky.user_data import (
    MemberData,
    encode_generation,
    encode_previous_assignment,
)
from kafkacore.coordinator.protocol import Subscription
from kafkacore.structs import TopicPartition

RACKS = ("r1", "r2", "r3")


@dataclass(frozen=True)
class Group:
    """The input of an assignor."""

    partitions: dict[str, list[PartitionRacks]]
    subscriptions: dict[str, Subscription]

    @property
    def every_partition(self) -> list[TopicPartition]:
        """Return all partitions of topics that a member subscribes to."""
        wanted = {topic for sub in self.subscriptions.values() for topic in sub.topics}
        return [
            TopicPartition(topic, entry.partition)
            for topic in sorted(wanted & set(self.partitions))
            for entry in self.partitions[topic]
        ]


def random_partitions(chance: Random, racks: bool) -> dict[str, list[PartitionRacks]]:
    """Return one to six topics of one to eight partitions, often the same number for each."""
    usual = chance.randint(1, 8)
    found = {}
    for topic in chance.sample(("t0", "t1", "t2", "a.b", "T", "zz", "_u"), chance.randint(1, 6)):
        count = usual if chance.random() < 0.6 else chance.randint(1, 8)
        found[topic] = [
            PartitionRacks(
                number, frozenset(chance.sample(RACKS, chance.randint(0, 3))) if racks else frozenset()
            )
            for number in range(count)
        ]
    return found


def random_member_id(chance: Random) -> str:
    """Return short ids, whose hashes sort like them, long ids as brokers create them, or unusual ids."""
    kind = chance.random()
    if kind < 0.4:
        return f"c{chance.randint(0, 99)}"
    if kind < 0.9:
        return f"consumer-group-{chance.randint(1, 9)}-{chance.getrandbits(128):032x}"
    return chance.choice("äö\uffff\U00010000\U0001f600") + f"{chance.getrandbits(32):x}"


def random_group(chance: Random) -> Group:
    """Return a group whose members claim no partitions."""
    racks = chance.random() < 0.4
    partitions = random_partitions(chance, racks)
    topics = [*partitions, *(["gone"] if chance.random() < 0.1 else [])]
    alike = chance.random() < 0.5
    static = chance.random() < 0.25
    subscriptions: dict[str, Subscription] = {}
    for number in range(chance.randint(1, chance.choice((3, 6, 13, 30)))):
        subscriptions[random_member_id(chance)] = Subscription(
            tuple(topics if alike else chance.sample(topics, chance.randint(1, len(topics)))),
            rack_id=chance.choice((*RACKS, "r4", None)) if racks else None,
            group_instance_id=f"i{chance.randint(0, 9)}-{number}"
            if static and chance.random() < 0.7
            else None,
        )
    return Group(partitions, subscriptions)


def with_random_claims(chance: Random, group: Group) -> Group:
    """Let one member claim most partitions and two members claim some, mostly in the same generation."""
    every = group.every_partition
    members = list(group.subscriptions)
    owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    generation = {member: 5 if chance.random() < 0.8 else chance.randint(-1, 6) for member in members}
    # Uneven: few members own many partitions, as after many members have joined.
    owners = chance.sample(members, chance.randint(1, len(members)))
    for partition in every:
        if chance.random() < 0.85:
            for member in chance.sample(owners, min(len(owners), 1 if chance.random() < 0.93 else 2)):
                owned[member].append(partition)
    latest = max(generation.values())
    for member, mine in owned.items():
        if generation[member] < latest:
            _drop_unsubscribed(mine, group.subscriptions[member])
        chance.shuffle(mine)
    return claiming(group, owned, generation, chance)


def _drop_unsubscribed(mine: list[TopicPartition], sub: Subscription) -> None:
    # Java returns a partition to its earlier owner without checking the owner's current subscription.
    mine[:] = [partition for partition in mine if partition.topic in sub.topics]


def claiming(
    group: Group, owned: dict[str, list[TopicPartition]], generation: dict[str, int], chance: Random
) -> Group:
    """Return the group with these claims in the forms of the cooperative and the eager sticky assignor."""
    subscriptions = {}
    for member, sub in group.subscriptions.items():
        said = generation[member]
        data = encode_previous_assignment(MemberData(owned[member], said))
        kind = chance.random()
        if kind < 0.1 and all(partition.topic in sub.topics for partition in owned[member]):
            data = data[:-4]  # version 0
        elif kind < 0.12:
            data = data[:3]
        subscriptions[member] = replace_owned(sub, owned[member], said, data)
    return replace(group, subscriptions=subscriptions)


def replace_owned(
    sub: Subscription, owned: list[TopicPartition], generation: int, data: bytes
) -> Subscription:
    """Return a subscription of version 3 with both forms of claims."""
    return sub._replace(owned_partitions=tuple(owned), generation_id=generation, user_data=data)


def for_cooperative(chance: Random, group: Group) -> Group:
    """Return the group for the cooperative sticky assignor, partly with the generation in user data only."""
    subscriptions = {}
    for member, sub in group.subscriptions.items():
        old = chance.random() < 0.1
        data = encode_generation(sub.generation_id)
        subscriptions[member] = sub._replace(user_data=data, generation_id=-1 if old else sub.generation_id)
    return replace(group, subscriptions=subscriptions)


def random_history(chance: Random, assignor: PartitionAssignor, rounds: int) -> Iterator[Group]:
    """Yield rebalances of one group in which members come and go, each owning its last assignment."""
    group = random_group(chance)
    for generation in range(1, rounds + 1):
        yield group
        made = assignor.assign(group.partitions, group.subscriptions)
        owned = {member: list(assignment.partitions) for member, assignment in made.items()}
        members = dict(group.subscriptions)
        for member in list(members):
            if len(members) > 1 and chance.random() < 0.15:
                del members[member]
        some = next(iter(members.values()))
        while chance.random() < 0.4:
            members[random_member_id(chance)] = some._replace(group_instance_id=None)
        partitions = dict(group.partitions)
        if chance.random() < 0.2:
            # The number never decreases; another test covers deleted partitions.
            had = partitions.get("t1", [])
            partitions["t1"] = had + [PartitionRacks(len(had) + more) for more in range(chance.randint(1, 4))]
        group = Group(partitions, members)
        owned = {member: owned.get(member, []) for member in members}
        group = claiming(group, owned, dict.fromkeys(members, generation), chance)
        if assignor.name == "cooperative-sticky":
            group = for_cooperative(chance, group)
