"""Encoding of group requests whose fields depend on the version."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacore.client import Cluster
from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.consumer.group.offset_requests import Topics, fetch_request
from kafkacore.consumer.group.requests import leave_request
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.protocol import Request, decode_request, encode_request
from kafkacore.structs import TopicPartition

MEMBER = Generation(7, "member-1", "range")


def encoded(request: Request[Any], version: int) -> Any:
    """Encode a request, and return it as a broker decodes it."""
    return decode_request(b"".join(encode_request(request, version, 1, None)))[1]


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_leave_names_one_member_in_every_version(version: int) -> None:
    decoded = encoded(leave_request(GroupSettings("readers"), MEMBER, "closed"), version)
    member_ids = [member.member_id for member in decoded.members]
    assert decoded.group_id == "readers"
    assert (decoded.member_id, member_ids) == (("member-1", []) if version < 3 else ("", ["member-1"]))


@pytest.mark.parametrize(("version", "is_stable"), [(1, False), (6, False), (7, True)])
def test_fetch_of_one_group_lists_its_topics(version: int, is_stable: bool) -> None:
    asked = [TopicPartition("t", 1), TopicPartition("t", 0)]
    decoded = encoded(fetch_request("readers", asked, Topics(asked, Cluster()), NO_GENERATION), version)
    assert (decoded.group_id, decoded.require_stable) == ("readers", is_stable)
    assert [(topic.name, topic.partition_indexes) for topic in decoded.topics] == [("t", [0, 1])]


def test_fetch_of_several_groups_has_one_group() -> None:
    asked = [TopicPartition("t", 0)]
    decoded = encoded(fetch_request("readers", asked, Topics(asked, Cluster()), NO_GENERATION), 9)
    assert decoded.require_stable
    assert [group.group_id for group in decoded.groups] == ["readers"]
    assert [(topic.name, topic.partition_indexes) for topic in decoded.groups[0].topics] == [("t", [0])]


@pytest.mark.parametrize(
    ("version", "generation", "sent"),
    [(8, MEMBER, (None, -1)), (9, MEMBER, ("member-1", 7)), (9, NO_GENERATION, (None, -1))],
)
def test_fetch_names_the_member_epoch_from_version_9(
    version: int, generation: Generation, sent: tuple[str | None, int]
) -> None:
    asked = [TopicPartition("t", 0)]
    request = fetch_request("readers", asked, Topics(asked, Cluster()), generation)
    (group,) = encoded(request, version).groups
    assert (group.member_id, group.member_epoch) == sent
