"""Our broker rejects invalid ACL entries, users and quotas as Apache Kafka does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from eventually import eventually
from peers.authorised_sides import asked_until
from peers.secure_kafka import SecureKafka

from kafkacore.admin.requester import Requester
from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.client import bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import ThrottlingQuotaExceededError
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

Ask = Callable[[Any], Any]
SCRAM = AlterUserScramCredentialsRequest
QUOTAS = AlterClientQuotasRequest
FILTER = DescribeClientQuotasRequest


@contextlib.contextmanager
def asking(servers: str, client_id: str = "asking") -> Iterator[Ask]:
    config = resolve({}, {"bootstrap_servers": servers, "client_id": client_id})
    client, metadata = bootstrap_client(config, SYSTEM_CLOCK)
    with contextlib.closing(client):
        requester = Requester(client, metadata, SYSTEM_CLOCK, servers, 30_000)
        yield lambda message: requester.send(message, 30_000.0)


@pytest.fixture(scope="module")
def servers(secure_kafka: SecureKafka) -> Iterator[tuple[str, str]]:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with EmbeddedBroker(**settings) as ours:
        yield secure_kafka.bootstrap_servers, ours.bootstrap_servers


@pytest.fixture(scope="module")
def both(servers: tuple[str, str]) -> Iterator[tuple[Ask, Ask]]:
    with asking(servers[0]) as ask_theirs, asking(servers[1]) as ask_ours:
        yield ask_theirs, ask_ours


def same(both: tuple[Ask, Ask], message: Any, field: Callable[[Any], Any]) -> Any:
    theirs, ours = (field(ask(message)) for ask in both)
    assert ours == theirs
    return ours


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
    return SCRAM.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=b"p" * 32
    )


def test_users_are_refused_alike(both: tuple[Ask, Ask]) -> None:
    wanted = [("good", 1, 4096), ("few", 1, 4095), ("many", 2, 16385), ("odd", 3, 4096), ("", 1, 4096)]
    wanted += [("twice", 1, 4096), ("twice", 2, 4096)]
    message = SCRAM(
        deletions=[SCRAM.ScramCredentialDeletion(name="same-ghost", mechanism=1)],
        upsertions=[upsertion(f"same-{name}" if name else "", *rest) for name, *rest in wanted],
    )
    codes = same(both, message, lambda answer: {each.user: each.error_code for each in answer.results})
    assert sorted(codes.values()) == [0, 33, 91, 92, 93, 93, 93]
    names = ("same-ghost", "same-ghost", "same-few")
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    found = same(
        both,
        DescribeUserScramCredentialsRequest(users=users),
        lambda answer: {each.user: (each.error_code, each.error_message) for each in answer.results},
    )
    assert {name: code for name, (code, _) in found.items()} == {"same-ghost": 92, "same-few": 91}


@pytest.mark.parametrize(
    ("parts", "key", "value"),
    [
        ({}, "producer_byte_rate", 1.0),
        ({"user": ""}, "producer_byte_rate", 1.0),
        ({"group": "g"}, "producer_byte_rate", 1.0),
        ({"user": "same"}, "bytes", 1.0),
        ({"user": "same"}, "producer_byte_rate", 0.0),
        ({"user": "same"}, "producer_byte_rate", 1.5),
        ({"user": "same"}, "producer_byte_rate", 1e19),
        ({"user": "same"}, "consumer_byte_rate", -1.0),
        ({"user": "same"}, "controller_mutation_rate", 0.0),
        ({"ip": "10.0.0.1"}, "controller_mutation_rate", 1.0),
    ],
)
def test_quotas_are_refused_alike(both: tuple[Ask, Ask], parts: Any, key: str, value: float) -> None:
    entity = [QUOTAS.EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()]
    ops = [QUOTAS.OpData(key=key, value=value, remove=False)]
    message = QUOTAS(entries=[QUOTAS.EntryData(entity=entity, ops=ops)], validate_only=True)
    assert same(both, message, lambda answer: [each.error_code for each in answer.entries]) == [42]


@pytest.mark.parametrize("third", ["request_percentage", "controller_mutation_rate"])
def test_entities_and_keys_of_quotas_come_in_the_same_order(both: tuple[Ask, Ask], third: str) -> None:
    keys, name = ("producer_byte_rate", "consumer_byte_rate", third), f"ordered-{third}"
    parts = [QUOTAS.EntityData(entity_type=kind, entity_name=name) for kind in ("user", "client-id")]
    ops = [QUOTAS.OpData(key=key, value=1.0, remove=False) for key in keys]
    altered = QUOTAS(entries=[QUOTAS.EntryData(entity=parts, ops=ops)], validate_only=False)
    exact = [FILTER.ComponentData(entity_type="user", match_type=0, match=name)]
    message = FILTER(components=exact, strict=False)
    found = []
    for ask in both:
        assert [each.error_code for each in ask(altered).entries] == [0]
        # Apache Kafka's controller responds before its broker has applied the change.
        (entry,) = asked_until(partial(ask, message), lambda answer: bool(answer.entries)).entries
        found.append(([part.entity_type for part in entry.entity], [value.key for value in entry.values]))
    theirs, ours = found
    assert ours == theirs
    assert sorted(ours[1]) == sorted(keys)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", 0, None)], 42),
        ([("user", 1, "u")], 42),
        ([("user", 3, None)], 42),
        ([("", 2, None)], 42),
        ([("user", 2, None), ("user", 1, None)], 42),
        ([("user", 2, None), ("ip", 2, None)], 42),
        ([("group", 2, None)], 35),
        ([("user", 0, "unknown")], 0),
    ],
)
def test_filters_of_quotas_are_refused_alike(both: tuple[Ask, Ask], components: Any, code: int) -> None:
    parts = [
        FILTER.ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components
    ]
    found = same(both, FILTER(components=parts, strict=False), lambda a: (a.error_code, a.entries or None))
    assert found == (code, None)


def creation(change: dict[str, Any]) -> Any:
    entry = {"resource_type": 2, "resource_name": "same-topic", "principal": "User:same", "host": "*"}
    entry |= {"resource_pattern_type": 3, "operation": 3, "permission_type": 3} | change
    return CreateAclsRequest(creations=[CreateAclsRequest.AclCreation(**entry)])


@pytest.mark.parametrize(
    ("change", "code"), [({}, 0), ({"resource_type": 4}, 42), ({"resource_name": ""}, 42)]
)
def test_entries_are_refused_alike(both: tuple[Ask, Ask], change: Any, code: int) -> None:
    codes = same(both, creation(change), lambda answer: [each.error_code for each in answer.results])
    assert codes == [code]


@pytest.mark.parametrize("field", ["resource_type", "operation", "permission_type"])
def test_entry_of_anything_is_a_wrong_request_where_kafka_does_not_know_what_is_wrong(
    both: tuple[Ask, Ask], field: str
) -> None:
    codes = [ask(creation({field: 1})).results[0].error_code for ask in both]
    assert codes == [-1, 42]


def test_changes_of_partitions_over_the_quota_are_rejected_alike(
    both: tuple[Ask, Ask], servers: tuple[str, str]
) -> None:
    """Set a quota that allows a single change, so that the machine's speed does not matter."""
    client = "same-mutations"
    entity = [QUOTAS.EntityData(entity_type="client-id", entity_name=client)]
    key = "controller_mutation_rate"
    limit = QUOTAS.EntryData(entity=entity, ops=[QUOTAS.OpData(key=key, value=0.001, remove=False)])
    unlimited = QUOTAS.EntryData(entity=entity, ops=[QUOTAS.OpData(key=key, value=0.0, remove=True)])
    found = []
    for ask, where in zip(both, servers, strict=True):
        assert ask(QUOTAS(entries=[limit])).entries[0].error_code == 0

        def exceeded(message: Any, results: str, where: str = where) -> tuple[int, bool]:
            # Both sides stop reading from a throttled connection.
            with asking(where, client) as ask_limited:
                response = ask_limited(message)
            (result,) = getattr(response, results)
            return result.error_code, response.throttle_time_ms > 900_000

        # Apache Kafka's controller responds before the quota is in effect.
        numbers = count()
        codes: list[tuple[int, bool]] = []
        eventually(
            lambda codes=codes: codes[-1:] and codes[-1][0] != 0,
            step=lambda codes=codes, numbers=numbers: codes.append(
                exceeded(new_topic(f"same-mutations-{next(numbers)}"), "topics")
            ),
        )
        assert {code for code, _ in codes[:-1]} == {0}
        name = "same-mutations-0"
        grown = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=2, assignments=None)
        by_name = DeleteTopicsRequest.DeleteTopicState(name=name)
        found.append(
            [
                codes[-1],
                exceeded(CreatePartitionsRequest(topics=[grown], timeout_ms=30_000), "results"),
                exceeded(DeleteTopicsRequest(topics=[by_name], timeout_ms=30_000), "responses"),
            ]
        )
        assert ask(QUOTAS(entries=[unlimited])).entries[0].error_code == 0
    theirs, ours = found
    assert ours == theirs
    assert ours == [(ThrottlingQuotaExceededError.errno, True)] * 3


def new_topic(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
