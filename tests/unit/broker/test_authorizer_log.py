"""Log messages about denials: one line for each resource that a client names, up to a limit."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from model.broker_in_hand import BrokerInHand, broker_in_hand
from model.granted import Granted

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.broker.handlers.services import Request, RequestContext
from kafkacore.broker.requests.authorizer_log import MAX_LINES, WINDOW_MS, AuthorizerLog
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.security.principal import KafkaPrincipal
from kafkacore.testing import VirtualClock

LOGGER = "kafkacore.broker.authorizer"
READ, TOPIC = ACLOperation.READ, ResourceType.TOPIC


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    caplog.clear()
    return lines


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER)
    return caplog


def ask_for(broker: BrokerInHand, *names: str) -> list[int]:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return [topic.error_code for topic in broker.ask(MetadataRequest(topics=topics)).topics]


def test_what_a_client_asks_for_and_may_not_is_said_and_what_it_is_not_shown_is_not(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    guarded = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}
    with broker_in_hand(tmp_path, **guarded) as broker:
        broker.services.topics.create("t", 1, {})
        logged(log)
        assert ask_for(broker, "t", "t\nERROR x") == [29, 29]
        assert logged(log) == [
            f"denied: 'User:ANONYMOUS' at 127.0.0.1: Metadata requires DESCRIBE on topic {name}: "
            "no ACL allows it"
            for name in ("'t'", "'t\\nERROR x'")
        ]
        # Do not log resources that a listing omits, or rights that only decide what a response shows.
        assert broker.ask(MetadataRequest(topics=None)).topics == []
        assert broker.ask(ListGroupsRequest()).groups == []
        wanted = CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
        broker.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000))
        assert logged(log) == [
            "denied: 'User:ANONYMOUS' at 127.0.0.1: CreateTopics requires CREATE on topic 'new': no ACL "
            "allows it"
        ]
        broker.context = RequestContext("1", 1, "127.0.0.1", principal=KafkaPrincipal.user("admin"))
        assert ask_for(broker, "t") == [0]
        broker.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
        assert logged(log) == []


def request_of(user: str) -> Any:
    context = RequestContext("1", 0, "192.0.2.7", principal=KafkaPrincipal.user(user))
    return Request(context, 1, 12, 1, "client", None, None, None)


def test_denials_have_few_lines_however_many_they_are(log: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    denials = AuthorizerLog(clock)
    for _ in range(3):
        for number in range(100):
            denials.add(request_of("eve"), Granted(), READ, TOPIC, f"t{number}" * 10_000)
        lines = logged(log)
        assert len(lines) == MAX_LINES
        assert max(map(len, lines)) < 400
        clock.advance(WINDOW_MS)
        denials.add(request_of("eve\r\nINFO"), Granted(), READ, TOPIC, "t")
        assert logged(log) == [
            "suppressed 80 further authorization denials in 10 s",
            "denied: 'User:eve\\r\\nINFO' at 192.0.2.7: API 1 requires READ on topic 't': "
            + Granted().why_denied(),
        ]
        clock.advance(WINDOW_MS)


def test_same_denial_is_said_once_in_a_while(log: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    denials = AuthorizerLog(clock)
    for _ in range(5):
        denials.add(request_of("eve"), Granted(), READ, TOPIC, "t")
    assert len(logged(log)) == 1
    clock.advance(WINDOW_MS)
    denials.add(request_of("eve"), Granted(), READ, TOPIC, "t")
    assert logged(log)[0].startswith("suppressed 4 further")


def test_entry_that_denies_is_named_and_makes_no_line_of_its_own(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    guarded = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}
    with broker_in_hand(tmp_path, **guarded) as broker:
        broker.services.topics.create("t1", 1, {})
        denials = [
            ("User:ANONYMOUS", ACLOperation.ALL, ACLResourcePatternType.PREFIXED, "t"),
            ("User:*", ACLOperation.DESCRIBE, ACLResourcePatternType.LITERAL, "u\nERROR " + "u" * 30_000),
        ]
        broker.context = RequestContext("1", 1, "127.0.0.1", principal=KafkaPrincipal.user("admin"))
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=TOPIC,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=principal,
                host="*",
                operation=operation,
                permission_type=ACLPermissionType.DENY,
            )
            for principal, operation, pattern, name in denials
        ]
        created = broker.ask(CreateAclsRequest(creations=creations))
        assert [result.error_code for result in created.results] == [0, 0]
        broker.context = RequestContext("2", 1, "127.0.0.1")
        logged(log)
        assert ask_for(broker, "t1", denials[1][3]) == [29, 29]
        first, second = logged(log)
        assert first.endswith(
            "on topic 't1': an ACL denies ALL to 'User:ANONYMOUS' at '*' on prefixed resource 't'"
        )
        assert ": an ACL denies DESCRIBE to 'User:*' at '*' on literal resource 'u\\nERROR uuu" in second
        assert len(second) < 700
        assert "\n" not in second
