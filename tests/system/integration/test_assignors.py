"""In thousands of random groups, our assignors give the assignments and the metadata of Java's.

One JVM (``java/Assignors.java``) computes the expected results. In a group of clients of several languages,
any client may be the leader. A leader that assigns differently would move partitions without need.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from model.dose import dose
from model.random_groups import (
    Group,
    for_cooperative,
    random_group,
    random_history,
    random_member_id,
    with_random_claims,
)
from peers.jars import java_command

from kafkacore.coordinator import partition_for
from kafkacore.coordinator.assignors import PartitionRacks, assignors_for
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafkacore.structs import TopicPartition

Asked = Callable[[dict[str, Any]], dict[str, Any]]

GROUPS_PER_ASSIGNOR = dose(in_ci=500, in_full=10_000)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Start the Java program, and yield a function that asks it one question."""
    errors: Path = tmp_path_factory.mktemp("assignors") / "errors"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            java_command("Assignors"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(question: dict[str, Any]) -> dict[str, Any]:
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
            answer = stdout.readline()
            assert answer, errors.read_text()
            found: dict[str, Any] = json.loads(answer)
            return found

        yield ask
        stdin.close()
    assert process.returncode == 0, errors.read_text()


def random_groups(name: str) -> Iterator[tuple[int, Group]]:
    """Yield single rebalances and some sequences of rebalances, each with its seed."""
    (assignor,) = assignors_for(name)
    for seed in range(GROUPS_PER_ASSIGNOR):
        chance = Random(f"{name} {seed}")
        if chance.random() < 0.2:
            for group in random_history(chance, assignor, rounds=4):
                yield seed, group
            continue
        group = random_group(chance)
        if chance.random() < 0.8:
            group = with_random_claims(chance, group)
        yield seed, for_cooperative(chance, group) if name == "cooperative-sticky" else group


def asked(name: str, group: Group) -> dict[str, Any]:
    return {
        "assignor": name,
        "partitions": {
            topic: [sorted(entry.racks) for entry in entries] for topic, entries in group.partitions.items()
        },
        "members": [
            [member, sub.group_instance_id, base64.b64encode(encode_subscription(sub)).decode()]
            for member, sub in group.subscriptions.items()
        ],
    }


def by_member(assignments: dict[str, Assignment]) -> dict[str, list[TopicPartition]]:
    return {member: sorted(made.partitions) for member, made in assignments.items()}


def of_java(answer: dict[str, Any]) -> dict[str, list[TopicPartition]]:
    blobs = answer["assignments"]
    return by_member({member: decode_assignment(base64.b64decode(blob)) for member, blob in blobs.items()})


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assignor_gives_what_javas_gives(java: Asked, name: str) -> None:
    seen = 0
    for seed, group in random_groups(name):
        (assignor,) = assignors_for(name)
        question = asked(name, group)
        answer = java(question)
        ours = assignor.assign(group.partitions, group.subscriptions)
        assert "error" not in answer, (name, seed, answer)
        assert by_member(ours) == of_java(answer), (name, seed)
        assert answer["subscriptions"] == [blob for _, _, blob in question["members"]], (name, seed)
        seen += 1
    assert seen > GROUPS_PER_ASSIGNOR


def test_large_groups_are_assigned_as_java_does(java: Asked) -> None:
    chance = Random("large")
    for name in ("sticky", "cooperative-sticky"):
        for alike in (True, False):
            group = large_group(chance, alike, members=120, partitions=500)
            if name == "cooperative-sticky":
                group = for_cooperative(chance, group)
            (assignor,) = assignors_for(name)
            ours = assignor.assign(group.partitions, group.subscriptions)
            assert by_member(ours) == of_java(java(asked(name, group)))


def large_group(chance: Random, alike: bool, members: int, partitions: int) -> Group:
    topics = [f"topic-{number}" for number in range(10)]
    infos = {topic: [PartitionRacks(number) for number in range(partitions // 10)] for topic in topics}
    subscriptions = {
        random_member_id(chance): Subscription(tuple(topics if alike else chance.sample(topics, 6)))
        for _ in range(members)
    }
    return with_random_claims(chance, Group(infos, subscriptions))


def test_assignment_blob_is_javas(java: Asked) -> None:
    answer = java(asked("range", random_group(Random(5))))
    for blob in answer["assignments"].values():
        data = base64.b64decode(blob)
        assert encode_assignment(decode_assignment(data)) == data


def test_groups_live_where_java_puts_them(java: Asked) -> None:
    chance = Random("groups")
    groups = ["consume_group", "", "polygenelubricants", "\ud800", "\udc00x\U0001f600"]
    while len(groups) < 10_000:
        groups.append("".join(map(chr, chance.choices((chance.randrange(0x110000), *range(32, 127)), k=12))))
    units = [group.encode("utf-16-be", "surrogatepass").hex() for group in groups]
    for count in (50, 7):
        answer = java({"partitions_count": count, "groups": units})
        assert answer["partitions"] == [partition_for(group, count) for group in groups]
