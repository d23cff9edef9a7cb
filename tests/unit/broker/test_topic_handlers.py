"""Metadata, CreateTopics, DeleteTopics, CreatePartitions and DescribeConfigs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.errors import (
    BrokerResponseError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaStorageError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest

NOBODY = UUID(int=77)


def metadata(*names: str, create: bool = True) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
    )


def create(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication, **more
    )
    return CreateTopicsRequest(topics=[topic])


# ---- Metadata ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 14))
def test_metadata_makes_a_missing_topic_and_leads_all_its_partitions(tmp_path: Path, version: int) -> None:
    broker = BrokerHarness(tmp_path, num_partitions=3)
    response = broker.ask(metadata("t"), version)
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", 9092)
    assert response.cluster_id == "test-cluster-id-000001"
    assert response.controller_id == 1
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "t")
    assert [(p.partition_index, p.leader_id, list(p.isr_nodes)) for p in topic.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
        (2, 1, [1]),
    ]
    if version >= 10:
        assert topic.topic_id == broker.log_manager.topic_states["t"].topic_id


def test_metadata_makes_no_topic_unless_both_sides_want_it(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path / "a")
    (topic,) = broker.ask(metadata("t", create=False)).topics
    assert topic.error_code == UnknownTopicOrPartitionError.errno
    broker = BrokerHarness(tmp_path / "b", auto_create_topics_enable=False)
    (topic,) = broker.ask(metadata("t")).topics
    assert topic.error_code == UnknownTopicOrPartitionError.errno
    assert broker.log_manager.topic_states == {}


def test_metadata_of_null_topics_is_all_and_of_none_is_none(broker: BrokerHarness) -> None:
    broker.ask(metadata("b", "a"))
    assert [t.name for t in broker.ask(MetadataRequest(topics=None)).topics] == ["a", "b"]
    assert list(broker.ask(MetadataRequest(topics=[])).topics) == []
    assert [t.name for t in broker.ask(MetadataRequest(topics=[]), 0).topics] == ["a", "b"]


def test_metadata_finds_a_topic_by_id_and_says_when_there_is_none(broker: BrokerHarness) -> None:
    broker.ask(metadata("t"))
    topic_id = broker.log_manager.topic_states["t"].topic_id
    asked = [MetadataRequest.MetadataRequestTopic(topic_id=i, name=None) for i in (topic_id, NOBODY)]
    found, missing = broker.ask(MetadataRequest(topics=asked), 12).topics
    assert (found.name, found.error_code) == ("t", 0)
    assert (missing.name, missing.error_code, missing.topic_id) == (None, UnknownTopicIdError.errno, NOBODY)


def test_metadata_by_id_hangs_up_before_version_12(broker: BrokerHarness) -> None:
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(topic_id=NOBODY, name="t")])
    with pytest.raises(CloseConnectionError):
        broker.send(asked, 11)


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 250, "a b"])
@pytest.mark.parametrize("may_create", [True, False])
def test_metadata_refuses_an_invalid_name(broker: BrokerHarness, name: str, may_create: bool) -> None:
    (topic,) = broker.ask(metadata(name, create=may_create)).topics
    assert topic.error_code == InvalidTopicError.errno
    assert broker.log_manager.topic_states == {}


def test_metadata_names_each_topic_once(broker: BrokerHarness) -> None:
    assert [t.name for t in broker.ask(metadata("t", "t")).topics] == ["t"]


def test_metadata_tells_operations_only_when_asked(broker: BrokerHarness) -> None:
    request = metadata("t")
    assert broker.ask(request).topics[0].topic_authorized_operations == -(2**31)
    request.include_topic_authorized_operations = True
    assert broker.ask(request).topics[0].topic_authorized_operations == 3576


def test_metadata_says_storage_error_when_the_topic_cannot_be_made(broker: BrokerHarness) -> None:
    broker.log_manager.failure = OSError("no space left on device")
    (topic,) = broker.ask(metadata("t")).topics
    assert topic.error_code == KafkaStorageError.errno


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.ENOSPC, "The broker's disk is full. Free some space and try again."),
        (errno.EIO, "The broker's disk has failed. See the broker's log for the cause."),
    ],
)
def test_create_topics_says_what_is_wrong_with_the_disk(
    broker: BrokerHarness, caplog: pytest.LogCaptureFixture, code: int, sentence: str
) -> None:
    broker.log_manager.failure = OSError(code, "planted", "/data/t-0")
    (topic,) = broker.ask(create("t")).topics
    assert (topic.error_code, topic.error_message) == (KafkaStorageError.errno, sentence)
    assert "/data/t-0" in caplog.text


# ---- CreateTopics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics_makes_a_topic_with_its_configs(broker: BrokerHarness, version: int) -> None:
    config = CreateTopicsRequest.CreatableTopicConfig(name="segment.bytes", value="4096")
    (result,) = broker.ask(create("t", 6, configs=[config]), version).topics
    assert (result.name, result.error_code) == ("t", 0)
    made = broker.log_manager.topic_states["t"]
    assert (made.partition_count, made.configs) == (6, {"segment.bytes": "4096"})
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (6, 1)
        assert {c.name: c.value for c in result.configs}["segment.bytes"] == "4096"
    if version >= 7:
        assert result.topic_id == made.topic_id


def test_create_topics_takes_the_default_number_of_partitions(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, num_partitions=4)
    (result,) = broker.ask(create("t", -1, -1)).topics
    assert (result.error_code, result.num_partitions) == (0, 4)


def test_create_topics_only_checks_when_asked_to(broker: BrokerHarness) -> None:
    request = create("t", 3)
    request.validate_only = True
    (result,) = broker.ask(request).topics
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert broker.log_manager.topic_states == {}


def assignments(*replicas: list[int]) -> dict[str, Any]:
    made = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in enumerate(replicas)
    ]
    return {"assignments": made}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (create("a/b"), InvalidTopicError),
        (create("there"), TopicAlreadyExistsError),
        (create("the.re_"), None),
        (create("t", 0), InvalidPartitionsError),
        (create("t", -2), InvalidPartitionsError),
        (create("t", 2**31 - 1), PolicyViolationError),
        (create("t", 1, 3), InvalidReplicationFactorError),
        (create("t", 1, 0), InvalidReplicationFactorError),
        (create("t", -1, -1, **assignments([1], [1])), None),
        (create("t", 2, -1, **assignments([1], [1])), InvalidRequestError),
        (create("t", -1, -1, **assignments([1], [2])), InvalidReplicationAssignmentError),
        (create("t", -1, -1, **assignments([1], [])), InvalidReplicationAssignmentError),
        (
            create("t", configs=[CreateTopicsRequest.CreatableTopicConfig(name="x", value="1")]),
            InvalidConfigurationError,
        ),
        (
            create("t", configs=[CreateTopicsRequest.CreatableTopicConfig(name="segment.bytes", value=None)]),
            InvalidConfigurationError,
        ),
    ],
)
def test_create_topics_refuses_what_kafka_refuses(
    broker: BrokerHarness, request_: Any, error: type[BrokerResponseError] | None
) -> None:
    broker.ask(create("there"))
    (result,) = broker.ask(request_).topics
    assert result.error_code == (error.errno if error else 0)
    assert bool(result.error_message) == (error is not None)


def test_existing_topic_is_reported_before_other_errors(broker: BrokerHarness) -> None:
    broker.ask(create("t"))
    (result,) = broker.ask(create("t", 1, 9)).topics
    assert result.error_code == TopicAlreadyExistsError.errno


def test_create_topics_refuses_a_name_that_collides(broker: BrokerHarness) -> None:
    broker.ask(create("a.b"))
    (result,) = broker.ask(create("a_b")).topics
    assert result.error_code == InvalidTopicError.errno
    assert "a.b" in result.error_message


def test_create_topics_refuses_a_name_given_twice_and_makes_the_others(broker: BrokerHarness) -> None:
    topics = [*create("t").topics, *create("u").topics, *create("t").topics]
    results = broker.ask(CreateTopicsRequest(topics=topics)).topics
    assert [(r.name, r.error_code) for r in results] == [("t", InvalidRequestError.errno), ("u", 0)]
    assert list(broker.log_manager.topic_states) == ["u"]


def test_create_topics_refuses_more_than_10_000_partitions_in_a_request(broker: BrokerHarness) -> None:
    many = [*create("t", 5_000).topics, *create("u", 4_999).topics, *create("v").topics]
    request = CreateTopicsRequest(topics=many, validate_only=True)
    assert {result.error_code for result in broker.ask(request).topics} == {0}
    request.topics += create("w", -1, -1, **assignments([1])).topics
    results = broker.ask(request).topics
    assert {result.error_code for result in results} == {PolicyViolationError.errno}
    assert {result.error_message for result in results} == {
        "Excessively large number of partitions per request."
    }


# ---- DeleteTopics, CreatePartitions --------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_removes_by_name(broker: BrokerHarness, version: int) -> None:
    broker.ask(create("t"))
    if version < 6:
        request = DeleteTopicsRequest(topic_names=["t", "u"])
    else:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("t", "u")]
        )
    results = broker.ask(request, version).responses
    assert [r.error_code for r in results] == [0, UnknownTopicOrPartitionError.errno]
    assert broker.log_manager.topic_states == {}


def test_delete_topics_removes_by_id(broker: BrokerHarness) -> None:
    broker.ask(create("t"))
    topic_id = broker.log_manager.topic_states["t"].topic_id
    state = DeleteTopicsRequest.DeleteTopicState
    asked = [state(topic_id=topic_id), state(topic_id=NOBODY), state(name="t", topic_id=topic_id), state()]
    results = broker.ask(DeleteTopicsRequest(topics=asked)).responses
    wrong = InvalidRequestError.errno
    assert [r.error_code for r in results] == [0, UnknownTopicIdError.errno, wrong, wrong]
    assert results[0].name == "t"


def test_delete_topics_can_be_forbidden(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, delete_topic_enable=False)
    broker.ask(create("t"))
    (result,) = broker.ask(
        DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")])
    ).responses
    assert result.error_code == TopicDeletionDisabledError.errno
    (result,) = broker.ask(DeleteTopicsRequest(topic_names=["t"]), 2).responses
    assert result.error_code == InvalidRequestError.errno
    assert list(broker.log_manager.topic_states) == ["t"]


def test_topic_made_anew_under_the_old_name_has_another_id(broker: BrokerHarness) -> None:
    broker.ask(create("t"))
    first = broker.log_manager.topic_states["t"].topic_id
    broker.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]))
    broker.ask(create("t"))
    assert broker.log_manager.topic_states["t"].topic_id != first
    assert broker.topics.name_of(first) is None


def test_deleted_partitions_may_be_made_again_within_the_limit(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, max_partitions=3)
    for _ in range(3):
        assert broker.ask(create("t", 3)).topics[0].error_code == 0
        assert broker.ask(create("u", 1)).topics[0].error_code == InvalidPartitionsError.errno
        broker.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]))


def grow(name: str, count: int, **more: Any) -> Any:
    return CreatePartitionsRequest.CreatePartitionsTopic(
        name=name, count=count, **({"assignments": None} | more)
    )


@pytest.mark.parametrize("version", range(4))
def test_create_partitions_adds_to_a_topic(broker: BrokerHarness, version: int) -> None:
    broker.ask(create("t", 2))
    (result,) = broker.ask(CreatePartitionsRequest(topics=[grow("t", 5)]), version).results
    assert result.error_code == 0
    assert len(broker.ask(metadata("t")).topics[0].partitions) == 5


@pytest.mark.parametrize(
    ("topic", "count", "message"),
    [
        ("t", 2, "Topic already has 2 partition(s)."),
        ("t", 1, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        ("u", 3, "This server does not host this topic-partition."),
    ],
)
def test_refused_number_of_partitions_has_kafkas_message(
    broker: BrokerHarness, topic: str, count: int, message: str
) -> None:
    broker.ask(create("t", 2))
    (result,) = broker.ask(CreatePartitionsRequest(topics=[grow(topic, count)])).results
    assert result.error_message == message


def test_create_partitions_refuses_what_is_no_increase(broker: BrokerHarness) -> None:
    broker.ask(create("t", 2))
    assignment = CreatePartitionsRequest.CreatePartitionsAssignment
    for asked, error in (
        (grow("t", 2), InvalidPartitionsError),
        (grow("t", 0), InvalidPartitionsError),
        (grow("t", 2**31 - 1), InvalidPartitionsError),
        (grow("u", 2), UnknownTopicOrPartitionError),
        (grow("t", 3, assignments=[assignment(broker_ids=[2])]), InvalidReplicationAssignmentError),
        (grow("t", 3, assignments=[]), InvalidReplicationAssignmentError),
    ):
        (result,) = broker.ask(CreatePartitionsRequest(topics=[asked])).results
        assert (result.error_code, bool(result.error_message)) == (error.errno, True)
    twice = broker.ask(CreatePartitionsRequest(topics=[grow("t", 3), grow("t", 4)])).results
    assert [r.error_code for r in twice] == [InvalidRequestError.errno]
    checked = broker.ask(CreatePartitionsRequest(topics=[grow("t", 3)], validate_only=True)).results
    assert [r.error_code for r in checked] == [0]
    assert broker.log_manager.topic_states["t"].partition_count == 2


# ---- DescribeConfigs -----------------------------------------------------------------------------------


def described(broker: BrokerHarness, kind: int, name: str, version: int = 4, **more: Any) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, **({"configuration_keys": None} | more)
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = broker.ask(request, version).results
    return result


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs_says_where_each_value_of_a_topic_comes_from(tmp_path: Path, version: int) -> None:
    broker = BrokerHarness(tmp_path, log_retention_ms=5000)
    config = CreateTopicsRequest.CreatableTopicConfig(name="segment.bytes", value="4096")
    broker.ask(create("t", configs=[config]))
    entries = {c.name: c for c in described(broker, 2, "t", version).configs}
    found = {name: (entries[name].value, entries[name].config_source) for name in entries}
    assert found["segment.bytes"] == ("4096", 1)
    assert found["retention.ms"] == ("5000", 4)
    assert found["cleanup.policy"] == ("delete", 5)
    synonyms = [(s.name, s.value, s.source) for s in entries["segment.bytes"].synonyms]
    assert synonyms == [("segment.bytes", "4096", 1), ("log.segment.bytes", "1073741824", 5)]


def test_describe_configs_gives_only_the_keys_asked_for(broker: BrokerHarness) -> None:
    broker.ask(create("t"))
    result = described(broker, 2, "t", configuration_keys=["retention.ms", "unknown"])
    assert [c.name for c in result.configs] == ["retention.ms"]


def test_describe_configs_of_the_broker_has_its_real_values(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, num_partitions=7)
    values = {c.name: c.value for c in described(broker, 4, "1").configs}
    assert (values["num.partitions"], values["node.id"]) == ("7", "1")
    assert values["log.dirs"] == str(tmp_path)
    assert values["auto.create.topics.enable"] == "true"
    assert values["listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert values["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    names = [c.name for c in described(broker, 4, "").configs]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [(2, "no", UnknownTopicOrPartitionError), (4, "2", InvalidRequestError), (64, "1", InvalidRequestError)],
)
def test_describe_configs_of_something_else_is_refused(
    broker: BrokerHarness, kind: int, name: str, error: type[BrokerResponseError]
) -> None:
    assert described(broker, kind, name).error_code == error.errno
