"""Authorization checks of the handlers: decisions, errors for clients, and the bits of allowed operations."""

from __future__ import annotations

from typing import Any

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import Request, RequestContext
from kafkacore.broker.requests.authorization import (
    CLUSTER_NAME,
    allowed,
    allowed_names,
    allowed_on_any,
    allowed_on_cluster,
    authorized_operations,
    cluster_operations,
    require,
    require_configs,
    require_idempotent_write,
)
from kafkacore.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)
from kafkacore.security.principal import KafkaPrincipal

ALICE = RequestContext("1", 0, "127.0.0.1", principal=KafkaPrincipal.user("alice"))
REQUEST = Request(ALICE, 3, 9, 1, "client", None, None, None)
READ, WRITE, DESCRIBE = ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


class Granted:
    """An authorizer that allows what it was given, and records the context of each call."""

    def __init__(self, *grants: tuple[ACLOperation, ResourceType, str]) -> None:
        self.grants = set(grants)
        self.askers: list[RequestContext] = []

    def authorize(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool:
        self.askers.append(context)
        return (operation, resource_type, name) in self.grants

    def why_denied(self, *_: Any) -> str:
        return "no grant allows it"

    def authorize_by_resource_type(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType
    ) -> bool:
        return any(grant[:2] == (operation, resource_type) for grant in self.grants)


def services(broker: BrokerHarness, *grants: tuple[ACLOperation, ResourceType, str]) -> Any:
    broker.services.authorizer = Granted(*grants)
    return broker.services


def test_without_an_authorizer_everything_is_allowed(broker: BrokerHarness) -> None:
    assert allowed(REQUEST, broker.services, READ, TOPIC, "t")
    assert allowed_on_any(REQUEST, broker.services, WRITE, TOPIC)
    assert allowed_on_cluster(REQUEST, broker.services, ACLOperation.ALTER)
    assert allowed_names(REQUEST, broker.services, WRITE, TOPIC, ["t", "u", "t"]) == {"t", "u"}
    require(REQUEST, broker.services, WRITE, TOPIC, "t")
    require_idempotent_write(REQUEST, broker.services)
    # Kafka's broker without an authorizer returns the same values.
    assert authorized_operations(REQUEST, broker.services, TOPIC, "t") == 3576
    assert authorized_operations(REQUEST, broker.services, GROUP, "g") == 3400
    assert cluster_operations(REQUEST, broker.services) == 8096


def test_the_authorizer_is_asked_for_the_connection_s_principal(broker: BrokerHarness) -> None:
    found = services(broker, (READ, TOPIC, "t"))
    assert allowed(REQUEST, found, READ, TOPIC, "t")
    assert not allowed(REQUEST, found, READ, TOPIC, "u")
    assert found.authorizer.askers == [ALICE, ALICE]
    assert allowed_names(REQUEST, found, READ, TOPIC, ["t", "u"]) == {"t"}
    assert allowed_on_any(REQUEST, found, READ, TOPIC)
    assert not allowed_on_any(REQUEST, found, WRITE, TOPIC)
    assert not allowed_on_cluster(REQUEST, found, ACLOperation.ALTER)


@pytest.mark.parametrize(
    ("kind", "name", "error", "words"),
    [
        (TOPIC, "t", TopicAuthorizationFailedError, "READ on topic 't'"),
        (GROUP, "g", GroupAuthorizationFailedError, "READ on group 'g'"),
        (CLUSTER, CLUSTER_NAME, ClusterAuthorizationFailedError, "READ on the cluster"),
        (
            ResourceType.TRANSACTIONAL_ID,
            "i\n",
            TransactionalIdAuthorizationFailedError,
            r"READ on transactional id 'i\n'",
        ),
    ],
)
def test_a_refusal_says_who_needs_what(
    broker: BrokerHarness, kind: ResourceType, name: str, error: type[AuthorizationError], words: str
) -> None:
    with pytest.raises(error) as refused:
        require(REQUEST, services(broker), READ, kind, name)
    assert refused.value.args == (f"User:alice needs an ACL that allows {words}",)


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        (2, (ACLOperation.ALTER_CONFIGS, TOPIC, "n")),
        (4, (ACLOperation.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME)),
        (8, (ACLOperation.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME)),
        (16, (ACLOperation.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME)),
        (32, (ACLOperation.ALTER_CONFIGS, GROUP, "n")),
    ],
)
def test_configuration_belongs_to_a_topic_a_group_or_the_cluster(
    broker: BrokerHarness, kind: int, needed: tuple[ACLOperation, ResourceType, str]
) -> None:
    require_configs(REQUEST, services(broker, needed), ACLOperation.ALTER_CONFIGS, kind, "n")
    with pytest.raises(AuthorizationError):
        require_configs(REQUEST, services(broker), ACLOperation.ALTER_CONFIGS, kind, "n")


def test_an_idempotent_producer_needs_one_topic_to_write_to(broker: BrokerHarness) -> None:
    require_idempotent_write(REQUEST, services(broker, (WRITE, TOPIC, "t")))
    require_idempotent_write(
        REQUEST, services(broker, (ACLOperation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME))
    )
    with pytest.raises(ClusterAuthorizationFailedError, match="allows WRITE on a topic"):
        require_idempotent_write(REQUEST, services(broker, (READ, TOPIC, "t")))


def test_authorized_operations_are_the_bits_of_what_is_allowed(broker: BrokerHarness) -> None:
    found = services(broker, (READ, TOPIC, "t"), (WRITE, TOPIC, "t"), (DESCRIBE, TOPIC, "u"))
    assert authorized_operations(REQUEST, found, TOPIC, "t") == 1 << READ | 1 << WRITE
    assert authorized_operations(REQUEST, found, GROUP, "t") == 0


def test_whoever_may_not_describe_the_cluster_is_not_told_what_it_may(broker: BrokerHarness) -> None:
    create = (ACLOperation.CREATE, CLUSTER, CLUSTER_NAME)
    assert cluster_operations(REQUEST, services(broker, create)) == 0
    describe = (DESCRIBE, CLUSTER, CLUSTER_NAME)
    assert cluster_operations(REQUEST, services(broker, create, describe)) == 1 << 5 | 1 << 8
