"""A broker that answers nonsense leads to an error of ours or to a result, never to another exception."""

from __future__ import annotations

import inspect
import random
import re
import sys
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kafkacore.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ClientQuotaAlteration,
    ConfigResource,
    KafkaAdminClient,
    MemberToRemove,
    OffsetSpec,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialDeletion,
    kafka_admin_client,
)
from kafkacore.errors import GroupIdNotFoundError, KafkaError, MalformedMessageError
from kafkacore.protocol import API_REGISTRY, ApiKey, encode_response
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasResponse
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.consumer_group_describe import ConsumerGroupDescribeResponse
from kafkacore.protocol.generated.describe_groups import DescribeGroupsResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupResponse
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.generated.offset_commit import OffsetCommitResponse
from kafkacore.protocol.generated.offset_delete import OffsetDeleteResponse
from kafkacore.protocol.generated.offset_fetch import OffsetFetchResponse
from kafkacore.protocol.message import ResponseMessage
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.mock_client import MockClient, SentRequest
from kafkacore.wire import Uuid

TP = TopicPartition("t", 0)
NUMBERS = (-128, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3, 14, 15, 16, 41, 127)
TEXTS = ("", "t", "t", "g", "u", "consumer", "node0", "Stable", "x\n\x1b[31m\0", "\u202e" * 50)
BLOBS = (b"", b"\x00\x01", b"\x00\x00\x00\x00\x00\x01\x00\x01t", b"\xff" * 40)
ANY_ACL = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
ENTRY = ACL(
    "User:u", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, "t")
)
TOPIC = ConfigResource("TOPIC", "t", {"retention.ms": "1"})

CALLS: dict[str, Callable[[KafkaAdminClient], object]] = {
    "list_topics": lambda admin: admin.list_topics(),
    "describe_topics": lambda admin: admin.describe_topics(["t", uuid.UUID(int=1)]),
    "describe_topic_partitions": lambda admin: admin.describe_topic_partitions(["t"]),
    "create_topics": lambda admin: admin.create_topics(["t"], wait_for_metadata=True),
    "delete_topics": lambda admin: admin.delete_topics(["t", uuid.UUID(int=1)]),
    "create_partitions": lambda admin: admin.create_partitions({"t": 2}),
    "delete_records": lambda admin: admin.delete_records({TP: 1}),
    "list_partition_offsets": lambda admin: admin.list_partition_offsets({TP: OffsetSpec.LATEST}),
    "elect_leaders": lambda admin: admin.elect_leaders(0, ["t"]),
    "alter_partition_reassignments": lambda admin: admin.alter_partition_reassignments({TP: [1]}),
    "list_partition_reassignments": lambda admin: admin.list_partition_reassignments(),
    "describe_configs": lambda admin: admin.describe_configs([TOPIC]),
    "alter_configs": lambda admin: admin.alter_configs([TOPIC], raise_on_unknown=False),
    "alter_configs whole": lambda admin: admin.alter_configs([TOPIC], incremental=False),
    "reset_configs": lambda admin: admin.reset_configs([ConfigResource("TOPIC", "t")]),
    "list_config_resources": lambda admin: admin.list_config_resources(),
    "list_groups": lambda admin: admin.list_groups(),
    "describe_groups": lambda admin: admin.describe_groups(["g"]),
    "delete_groups": lambda admin: admin.delete_groups(["g", "u"]),
    "remove_group_members": lambda admin: admin.remove_group_members("g", [MemberToRemove("u")]),
    "list_group_offsets": lambda admin: admin.list_group_offsets({"g": [TP], "u": None}),
    "alter_group_offsets": lambda admin: admin.alter_group_offsets("g", {TP: OffsetAndMetadata(1)}),
    "reset_group_offsets": lambda admin: admin.reset_group_offsets("g", {TP: OffsetSpec.EARLIEST}),
    "delete_group_offsets": lambda admin: admin.delete_group_offsets("g", [TP]),
    "list_transactions": lambda admin: admin.list_transactions(),
    "describe_transactions": lambda admin: admin.describe_transactions(["t"]),
    "find_hanging_transactions": lambda admin: admin.find_hanging_transactions(),
    "describe_producers": lambda admin: admin.describe_producers([TP]),
    "abort_transaction": lambda admin: admin.abort_transaction(AbortTransactionSpec(TP, 1, 1)),
    "fence_producers": lambda admin: admin.fence_producers(["t"]),
    "describe_cluster": lambda admin: admin.describe_cluster(),
    "describe_log_dirs": lambda admin: admin.describe_log_dirs(["t"]),
    "alter_replica_log_dirs": lambda admin: admin.alter_replica_log_dirs({("t", 0, 0): "/x"}),
    "describe_metadata_quorum": lambda admin: admin.describe_metadata_quorum(),
    "describe_features": lambda admin: admin.describe_features(),
    "update_features": lambda admin: admin.update_features({"t": 1}),
    "api_versions": lambda admin: admin.api_versions(),
    "create_delegation_token": lambda admin: admin.create_delegation_token(["User:u"]),
    "renew_delegation_token": lambda admin: admin.renew_delegation_token(b"x"),
    "expire_delegation_token": lambda admin: admin.expire_delegation_token(b"x"),
    "describe_delegation_tokens": lambda admin: admin.describe_delegation_tokens(),
    "describe_acls": lambda admin: admin.describe_acls(ANY_ACL),
    "create_acls": lambda admin: admin.create_acls([ENTRY]),
    "delete_acls": lambda admin: admin.delete_acls([ANY_ACL]),
    "alter_user_scram_credentials": lambda admin: admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion("u", 1)]
    ),
    "describe_user_scram_credentials": lambda admin: admin.describe_user_scram_credentials(["u"]),
    "describe_client_quotas": lambda admin: admin.describe_client_quotas(),
    "alter_client_quotas": lambda admin: admin.alter_client_quotas(
        [ClientQuotaAlteration({"user": "u"}, {})]
    ),
}


def random_value(annotation: str, module: dict[str, Any], chance: random.Random) -> Any:
    """Return a value for the annotation of a message's field."""
    if annotation.endswith(" | None"):
        annotation = annotation.removesuffix(" | None")
        if chance.random() < 0.2:
            return None
    if match := re.fullmatch(r"list\[(.*)\]", annotation):
        return [random_value(match[1], module, chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    simple: dict[str, Callable[[], Any]] = {
        "int": lambda: chance.choice(NUMBERS),
        "bool": lambda: chance.random() < 0.5,
        "float": lambda: chance.choice((-1.0, 0.0, float("nan"), float("inf"))),
        "str": lambda: chance.choice(TEXTS),
        "bytes": lambda: chance.choice(BLOBS),
        "bytes | memoryview": lambda: chance.choice(BLOBS),
        "Uuid": lambda: Uuid(chance.choice((0, 1, 7)).to_bytes(16)),
    }
    if annotation in simple:
        return simple[annotation]()
    return random_message(eval(annotation, module), chance)


def random_message(kind: Any, chance: random.Random) -> Any:
    module = vars(sys.modules[kind.__module__])
    message = kind()
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        # A field that is left out has its default, which every version can encode.
        if name in ("self", "throttle_time_ms") or chance.random() < 0.1:
            continue
        setattr(message, name, random_value(str(parameter.annotation), module, chance))
    return message


class HostileBroker:
    """Answers every request with a random response, most of which the protocol can encode."""

    def __init__(self, mock: MockClient, seed: int) -> None:
        self._mock = mock
        self._chance = random.Random(seed)

    def __call__(self, request: SentRequest) -> ResponseMessage:
        message = request.message
        if isinstance(message, ApiVersionsRequest) and self._chance.random() < 0.7:
            return self._mock.api_versions
        if isinstance(message, MetadataRequest) and self._chance.random() < 0.7:
            return self._mock.metadata_response(message)
        response_class = API_REGISTRY[ApiKey(message.API_KEY)][1]
        for _ in range(20):
            response = random_message(response_class, self._chance)
            try:
                encode_response(response, request.version, 1)
            except KafkaError:
                continue
            return response
        return response_class()


def connected_mock() -> MockClient:
    mock = MockClient(topics={"t": 2}, node_count=2)
    mock.connect()
    return mock


def admin_of(mock: MockClient, monkeypatch: pytest.MonkeyPatch) -> KafkaAdminClient:
    monkeypatch.setattr(
        kafka_admin_client, "bootstrap_client", lambda config, clock: (mock.client, mock.metadata)
    )
    return KafkaAdminClient(bootstrap_servers="node0:9092", clock=mock.clock)


@pytest.mark.parametrize("name", CALLS)
def test_random_responses_lead_to_an_error_of_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(25):
        mock = connected_mock()
        with admin_of(mock, monkeypatch) as admin:
            broker = HostileBroker(mock, seed)
            for _ in range(500):
                mock.prepare_response(broker)
            before_ms = mock.clock.monotonic_ms()
            raised = ""
            try:
                CALLS[name](admin)
            except KafkaError as error:
                raised = str(error)
            assert raised.isprintable(), (seed, raised)
            assert mock.clock.monotonic_ms() - before_ms <= 61_000, seed


# ---- Responses that leave something out, or have too much --------------------------------------------------
def coordinator(key: str = "g") -> FindCoordinatorResponse:
    found = FindCoordinatorResponse.Coordinator(key=key, node_id=0, host="node0", port=9092)
    return FindCoordinatorResponse(coordinators=[found])


def topic(name: str) -> MetadataResponse.MetadataResponseTopic:
    return MetadataResponse.MetadataResponseTopic(name=name)


@pytest.mark.parametrize(
    ("call", "answers", "words"),
    [
        (
            lambda admin: admin.describe_topics(["t", "u"]),
            [MetadataResponse(topics=[topic("t"), topic("other")])],
            "the result of 'u' is missing from the response",
        ),
        (
            lambda admin: admin.list_group_offsets({"g": [TP]}),
            [
                coordinator(),
                OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="g")]),
            ],
            "the result of TopicPartition",
        ),
        (
            lambda admin: admin.alter_group_offsets("g", {TP: OffsetAndMetadata(1)}),
            [coordinator(), OffsetCommitResponse()],
            "the result of TopicPartition",
        ),
        (
            lambda admin: admin.delete_group_offsets("g", [TP]),
            [coordinator(), OffsetDeleteResponse()],
            "the result of TopicPartition",
        ),
        (
            lambda admin: admin.remove_group_members("g", [MemberToRemove("a"), MemberToRemove("b")]),
            [
                coordinator(),
                LeaveGroupResponse(members=[LeaveGroupResponse.MemberResponse(member_id="a")]),
            ],
            "the result of 'b' is missing from the response",
        ),
        (
            lambda admin: admin.delete_groups(["g"]),
            [coordinator("another group")],
            "the response names no broker for 'g'",
        ),
        (
            lambda admin: admin.delete_groups(["g"]),
            [
                FindCoordinatorResponse(
                    coordinators=[
                        FindCoordinatorResponse.Coordinator(key="g", node_id=-7, host="\x1b", port=99_999)
                    ]
                )
            ],
            r"invalid coordinator: node -7 at '\\x1b':99999 for 'g'",
        ),
        (
            lambda admin: admin.alter_user_scram_credentials([UserScramCredentialDeletion("u", 1)]),
            [AlterUserScramCredentialsResponse()],
            "the result of 'u' is missing from the response",
        ),
        (
            lambda admin: admin.alter_client_quotas([ClientQuotaAlteration({"user": "u"}, {})]),
            [AlterClientQuotasResponse()],
            "the response has 0 results for 1 items",
        ),
    ],
)
def test_incomplete_response_is_malformed(
    call: Callable[[KafkaAdminClient], object],
    answers: list[ResponseMessage],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mock = connected_mock()
    with admin_of(mock, monkeypatch) as admin:
        for answer in answers:
            mock.prepare_response(answer)
        with pytest.raises(MalformedMessageError, match=words):
            call(admin)


def test_other_items_of_a_response_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = connected_mock()
    with admin_of(mock, monkeypatch) as admin:
        mock.prepare_response(MetadataResponse(topics=[topic("other"), topic("t")]))
        assert [each["name"] for each in admin.describe_topics(["t"])] == ["t"]


@pytest.mark.parametrize("topic_id", [Uuid(bytes(15) + b"\7"), uuid.UUID(int=7)])
def test_topic_is_found_by_either_type_of_id(
    topic_id: Uuid | uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock = connected_mock()
    answer = topic("t")
    answer.topic_id = Uuid(bytes(15) + b"\7")
    with admin_of(mock, monkeypatch) as admin:
        mock.prepare_response(MetadataResponse(topics=[answer]))
        (described,) = admin.describe_topics([topic_id])
        assert (described["name"], described["topic_id"]) == ("t", str(topic_id))


@pytest.mark.parametrize("topic_id", [5, None, bytes(16)])
def test_other_types_of_topic_ids_are_refused(topic_id: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with admin_of(connected_mock(), monkeypatch) as admin:
        for call in (admin.describe_topics, admin.delete_topics):
            with pytest.raises(TypeError, match=r"topics: .* is not a name"):
                call([topic_id])


def test_member_that_cannot_be_decoded_is_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = connected_mock()
    unknown = ConsumerGroupDescribeResponse.DescribedGroup(
        group_id="g", error_code=GroupIdNotFoundError.errno
    )
    member = DescribeGroupsResponse.DescribedGroupMember(member_id="m", member_metadata=b"\xff" * 9)
    group = DescribeGroupsResponse.DescribedGroup(group_id="g", protocol_type="consumer", members=[member])
    with admin_of(mock, monkeypatch) as admin:
        mock.prepare_response(coordinator())
        mock.prepare_response(ConsumerGroupDescribeResponse(groups=[unknown]))
        mock.prepare_response(coordinator())
        mock.prepare_response(DescribeGroupsResponse(groups=[group]))
        (described,) = admin.describe_groups(["g"])["g"]["members"]
        assert described["member_metadata"] == b"\xff" * 9
