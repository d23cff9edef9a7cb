"""In random groups and their changes, the broker's assignors give the target assignments of Kafka's.

One JVM (``java/GroupAssignors.java``) computes the expected results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from model.dose import dose
from model.random_consumer_groups import ConsumerGroupCase, changed_case, random_case
from peers.group_assignors import JavaGroupAssignors, question, started_group_assignors

from kafkacore.broker.group.assignor import ASSIGNORS, Assignment, MemberSubscription, PartitionAssignorError

GROUPS = dose(in_ci=150, in_full=5_000)
CHANGES = 4


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaGroupAssignors]:
    errors: Path = tmp_path_factory.mktemp("group-assignors") / "errors"
    with started_group_assignors(errors) as assignors:
        yield assignors


def without_empty(assigned: Mapping[str, Assignment]) -> dict[str, dict[UUID, tuple[int, ...]]]:
    """Return the assignments of the members that have one; Java leaves out or returns the others."""
    return {member_id: dict(one) for member_id, one in assigned.items() if one}


def ours_and_javas(
    java: JavaGroupAssignors, name: str, case: ConsumerGroupCase
) -> tuple[dict[str, Assignment], dict[str, Assignment]]:
    ours = ASSIGNORS[name].assign(case.members, case.partition_counts, is_homogeneous=case.is_homogeneous)
    return ours, java.assign(question(name, case))


@pytest.mark.parametrize("name", ASSIGNORS)
def test_assignor_gives_what_javas_gives(java: JavaGroupAssignors, name: str) -> None:
    for seed in range(GROUPS):
        chance = Random(f"{name} {seed}")
        case = random_case(chance)
        for change in range(CHANGES):
            ours, javas = ours_and_javas(java, name, case)
            assert without_empty(ours) == without_empty(javas), (name, seed, change)
            assert ours.keys() == case.members.keys()
            case = changed_case(chance, case, ours)


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_missing_topic_gives_javas_error(java: JavaGroupAssignors, name: str, is_homogeneous: bool) -> None:
    known, missing = UUID(int=1), UUID(int=0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10)
    member = MemberSubscription(None, frozenset([known, missing]), {})
    case = ConsumerGroupCase({"a": member}, {known: 1}, is_homogeneous)
    with pytest.raises(PartitionAssignorError) as raised:
        ASSIGNORS[name].assign(case.members, case.partition_counts, is_homogeneous=is_homogeneous)
    assert java.ask(question(name, case))["error"] == str(raised.value)
