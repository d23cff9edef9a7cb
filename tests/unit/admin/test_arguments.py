"""A wrong argument of an admin call is one sentence that names the argument, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka
import pytest

from kafkacore.admin import (
    ClientQuotaAlteration,
    ConfigResource,
    KafkaAdminClient,
    MemberToRemove,
    NewTopic,
    kafka_admin_client,
)
from kafkacore.admin.arguments import partition, partitions
from kafkacore.errors import IllegalArgumentError
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.mock_client import MockClient

TP = TopicPartition("t", 0)


def resource(configs: object) -> ConfigResource:
    return ConfigResource("TOPIC", "t", configs)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def mock() -> MockClient:
    return MockClient(topics={"t": 1})


@pytest.fixture(scope="module")
def admin(mock: MockClient) -> Iterator[KafkaAdminClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kafka_admin_client, "bootstrap_client", lambda config, clock: (mock.client, mock.metadata)
        )
        with KafkaAdminClient(bootstrap_servers="node0:9092", clock=mock.clock) as admin:
            yield admin


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("describe_topics", (5,), "topics must be a list of names, not int"),
        ("describe_topics", ("t",), r"topics must be a list of names; pass \['t'\]"),
        ("describe_topics", ([5],), "topics: 5 is not a name; pass it as str"),
        ("describe_topics", (["\ud800"],), r"topics: '\\ud800' is not valid Unicode"),
        ("describe_topic_partitions", (["t"], "x"), "response_partition_limit: 'x' is not an integer"),
        ("describe_topic_partitions", (["t"], 1, {}), "cursor must be the next_cursor of the previous page"),
        ("create_topics", ([5],), "new_topics: 5 is not a NewTopic or a name"),
        ("create_topics", ([],), "create_topics needs at least one topic"),
        ("create_topics", (["a", "a"],), "new_topics names a topic twice"),
        ("create_topics", ({"a": 5},), r"new_topics\['a'\] must be a mapping of names of options to values"),
        (
            "create_topics",
            ({"a": {"num_partition": 5}},),
            "unknown option 'num_partition'; options are num_p",
        ),
        (
            "create_topics",
            ({"a": {"num_partitions": "x"}},),
            "topic 'a': num_partitions: 'x' is not an integer",
        ),
        (
            "create_topics",
            ([NewTopic("a", topic_configs=["x"])],),
            "topic_configs must be a mapping of names",
        ),  # type: ignore[arg-type]
        ("create_topics", ([NewTopic("a", replica_assignments={0: 1})],), "must be a list of ids of brokers"),  # type: ignore[dict-item]
        ("create_topics", (["a"], None, True, True, True), "validate_only creates no topics"),
        ("delete_topics", ([None],), "topics: None is not a name"),
        ("create_partitions", ("t",), "topic_partitions must be a mapping of topics to counts, not str"),
        ("create_partitions", ({"t": {}},), r"topic_partitions\['t'\]: count: None is not an integer"),
        ("delete_records", ({"t": 1},), "records_to_delete: 't' is not a TopicPartition"),
        ("delete_records", ({TP: "x"},), "records_to_delete: offset of t-0: 'x' is not an integer"),
        ("list_partition_offsets", ({TP: "latest"},), "t-0: 'latest' is not an OffsetSpec or a timestamp"),
        ("list_partition_offsets", ({TP: -99},), "t-0: -99 is neither a timestamp nor an OffsetSpec"),
        ("list_partition_offsets", ([TP],), "topic_partition_specs must be a mapping of partitions to"),
        ("elect_leaders", ("preferred",), "election_type: 'preferred' is not an integer"),
        ("elect_leaders", (0, {"t": 0}), r"topic_partitions\['t'\] must be a list of partition numbers"),
        ("alter_partition_reassignments", ({TP: 1},), "replicas of t-0 must be a list of ids of brokers"),
        ("alter_partition_reassignments", ({TP: []},), "t-0: the list of replicas is empty; pass None"),
        ("list_partition_reassignments", (["t"],), "topic_partitions: 't' is not a TopicPartition"),
        ("describe_configs", (["t"],), "config_resources: 't' is not a ConfigResource"),
        (
            "describe_configs",
            ([resource("retention.ms")],),
            r"configs must be a list of names; pass \['retention.ms",
        ),
        (
            "describe_configs",
            ([resource(None)], False, "x"),
            "ConfigFilterType has no member 'x'; its members are ALL",
        ),
        ("alter_configs", ([resource(["x"])],), "configs must be a mapping of names to values"),
        ("alter_configs", ([resource({"x": ("ADD", 1)})],), "AlterConfigOp has no member 'ADD'"),
        (
            "alter_configs",
            ([resource({"x": (1, 2, 3)})],),
            "x must have a value, or a pair of an AlterConfigOp",
        ),
        ("reset_configs", ([resource(5)],), "configs must be a list of names, not int"),
        (
            "list_config_resources",
            ("TOPIC",),
            r"must be a list of ConfigResourceType members; pass \['TOPIC'\]",
        ),
        (
            "list_groups",
            (None, "Stable"),
            r"states_filter must be a list of GroupState members; pass \['Stable'\]",
        ),
        ("list_groups", (5,), "broker_ids must be a list of ids of brokers, not int"),
        ("describe_groups", (["g"], "x"), "group_coordinator_id: 'x' is not an integer"),
        ("delete_groups", ("g",), r"group_ids must be a list of names; pass \['g'\]"),
        ("remove_group_members", ("g", ["m"]), "members: 'm' is not a MemberToRemove"),
        ("remove_group_members", (5, [MemberToRemove("m")]), "group_id: 5 is not a name"),
        ("list_group_offsets", ({"g": ["t"]},), "partitions of 'g': 't' is not a TopicPartition"),
        ("list_group_offsets", ({},), "list_group_offsets needs at least one group"),
        ("alter_group_offsets", ("g", {TP: 5}), "offsets: 5 of t-0 is not an OffsetAndMetadata"),
        ("alter_group_offsets", ("g", {TP: OffsetAndMetadata(-5)}), "offsets: -5 of t-0 is negative"),
        ("reset_group_offsets", ("g", {TP: "earliest"}), "t-0: 'earliest' is not an OffsetSpec, OffsetTim"),
        (
            "delete_group_offsets",
            ("g", "t"),
            r"partitions must be a list of TopicPartition objects; pass \['t'\]",
        ),
        ("list_transactions", (None, 5), "producer_id_filters must be a list of producer ids, not int"),
        ("list_transactions", (None, None, ["x"]), "TransactionState has no member 'x'"),
        ("describe_transactions", ("x",), r"transactional_ids must be a list of names; pass \['x'\]"),
        ("describe_producers", (TP,), "partitions: 't' is not a TopicPartition"),
        ("abort_transaction", ("x",), "spec: 'x' is not an AbortTransactionSpec"),
        ("fence_producers", ([5],), "transactional_ids: 5 is not a name"),
        ("describe_log_dirs", (None, ["x"]), "brokers: 'x' is not an integer"),
        ("alter_replica_log_dirs", ({("t", 0): "/x"},), r"\('t', 0\) is not a TopicPartitionReplica"),
        ("update_features", ({"x": "y"},), r"feature_updates\['x'\]: 'y' is not an integer"),
        ("update_features", ({"x": ("DOWN", 1)},), "UpdateFeatureType has no member 'DOWN'"),
        ("get_broker_version_data", ("x",), "broker_id: 'x' is not an integer"),
        ("create_delegation_token", ("User:a",), r"renewers must be a list of principals; pass \['User:a'\]"),
        ("create_delegation_token", ([5],), "5 is not a principal such as 'User:alice'"),
        ("renew_delegation_token", ("x",), "hmac must be the bytes of DelegationToken.hmac, not str"),
        ("create_acls", (5,), "acls must be a list of ACL objects, not int"),
        ("alter_user_scram_credentials", (["x"],), "must be UserScramCredentialUpsertion or UserScram"),
        ("describe_user_scram_credentials", ([5],), "users: 5 is not a name"),
        ("describe_client_quotas", (["x"],), "components: 'x' is not a ClientQuotaFilterComponent"),
        (
            "alter_client_quotas",
            ([ClientQuotaAlteration("u")],),
            "entity must be a mapping of types to names",
        ),  # type: ignore[arg-type]
        (
            "alter_client_quotas",
            ([ClientQuotaAlteration({"user": "a"}, {"q": "x"})],),
            "quota q: 'x' is not a",
        ),  # type: ignore[dict-item]
    ],
)
def test_wrong_argument_is_named(
    admin: KafkaAdminClient, mock: MockClient, method: str, arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises((TypeError, ValueError, IllegalArgumentError), match=words):
        getattr(admin, method)(*arguments)
    assert {type(each.message) for each in mock.requests} <= {ApiVersionsRequest, MetadataRequest}


def test_classes_of_kafka_python_are_accepted() -> None:
    theirs = kafka.TopicPartition("t", 1)
    assert partitions("partitions", [theirs, TP, ("u", 2)]) == [
        TopicPartition("t", 1),
        TP,
        TopicPartition("u", 2),
    ]
    assert type(partition("partition", theirs)) is TopicPartition
