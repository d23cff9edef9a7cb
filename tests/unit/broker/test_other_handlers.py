"""ApiVersions, FindCoordinator, InitProducerId and DescribeCluster; requests rejected before any handler."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interleaving import at_each_step
from model.broker_harness import BrokerHarness

from kafkacore.broker.handlers import api_versions
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import CloseConnectionError, RequestContext
from kafkacore.errors import (
    BrokerIdNotRegisteredError,
    BrokerResponseError,
    IllegalSaslStateError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    MalformedMessageError,
    UnsupportedVersionError,
)
from kafkacore.protocol import decode_response, encode_request
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest
from kafkacore.protocol.generated.unregister_broker import UnregisterBrokerRequest
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest
from kafkacore.security import ANONYMOUS, KafkaPrincipal

CLIENT = {"client_software_name": "kafkacore", "client_software_version": "1.0"}


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served(broker: BrokerHarness, version: int) -> None:
    request = ApiVersionsRequest(**CLIENT) if version >= 3 else ApiVersionsRequest()
    response = broker.ask(request, version)
    assert response.error_code == 0
    served = {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}
    produce = served.pop(0)
    expected = {h.request_class.API_KEY: (h.min_version, h.max_version) for h in HANDLERS}
    assert expected.pop(0) == (3, 13)
    assert served == expected
    # Apache Kafka 4 announces version 0, too (KAFKA-18659), but closes the connection below version 3.
    assert produce == (0, 13)
    assert served[18] == (0, 4)
    assert served[1] == (0, 18)


def test_apis_are_announced_while_another_broker_starts() -> None:
    handlers = [handler for handler in HANDLERS if handler.request_class is ApiVersionsRequest]
    found: list[int] = []

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        return partial(api_versions.serve, handlers), lambda: found.append(
            len(api_versions.unsupported_version().api_keys)
        )

    try:
        api_versions.serve(handlers)
        assert set(at_each_step(api_versions.serve, prepare)) == {None}
    finally:
        api_versions.serve(HANDLERS)
    assert set(found) == {1}


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda h: h.request_class.NAME)
def test_every_advertised_version_is_one_that_the_protocol_has(handler: Any) -> None:
    # A handler with its own decoder also supports versions that Kafka has removed.
    least = handler.request_class.MIN_VERSION if handler.decode is None else 0
    assert handler.min_version >= least
    assert handler.max_version <= handler.request_class.MAX_VERSION


@pytest.mark.parametrize("version", [5, 9, 32767, -1])
def test_api_versions_of_the_future_is_answered_as_version_0_with_our_range(
    broker: BrokerHarness, version: int
) -> None:
    payload = struct.pack(">hhi", 18, version, 4711) + b"\xff\xfe anything the future may bring"
    answers: list[bytes] = []
    broker.apis.handle(
        broker.context,
        memoryview(payload),
        lambda _, pieces: answers.append(b"".join(bytes(p) for p in pieces or [])),
    )
    correlation_id, response = decode_response(answers[0], ApiVersionsRequest, 0)
    assert correlation_id == 4711
    assert response.error_code == UnsupportedVersionError.errno
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize("name", ["", "-kafka", "kafka core", "kafka\n"])
def test_api_versions_refuses_a_client_software_name_that_is_none(broker: BrokerHarness, name: str) -> None:
    response = broker.ask(ApiVersionsRequest(client_software_name=name, client_software_version="1"))
    assert response.error_code == InvalidRequestError.errno


@pytest.mark.parametrize(
    ("api_key", "version"), [(38, 0), (0, 0), (0, 1), (0, 2), (0, 14), (1, 19), (32767, 0), (-1, 0)]
)
def test_request_that_is_not_served_hangs_up(broker: BrokerHarness, api_key: int, version: int) -> None:
    payload = struct.pack(">hhih", api_key, version, 1, -1) + bytes(64)
    with pytest.raises(CloseConnectionError):
        broker.apis.handle(RequestContext("c", 1), memoryview(payload), lambda *_: None)


@pytest.mark.parametrize("size", range(12))
def test_request_cut_in_its_header_is_malformed(broker: BrokerHarness, size: int) -> None:
    payload = (struct.pack(">hhih", 3, 9, 1, 4) + b"test")[:size]
    with pytest.raises(MalformedMessageError):
        broker.apis.handle(RequestContext("c", 1), memoryview(payload), lambda *_: None)


@pytest.mark.parametrize("version", range(7))
def test_this_node_coordinates_every_group(broker: BrokerHarness, version: int) -> None:
    if version < 4:
        response = broker.ask(FindCoordinatorRequest(key="g"), version)
        assert (response.error_code, response.node_id, response.port) == (0, 1, 9092)
        return
    found = broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"]), version).coordinators
    assert [(c.key, c.error_code, c.node_id, c.host, c.port) for c in found] == [
        ("g", 0, 1, "127.0.0.1", 9092),
        ("h", 0, 1, "127.0.0.1", 9092),
    ]


@pytest.mark.parametrize("version", range(1, 7))
def test_this_node_coordinates_every_transactional_id(broker: BrokerHarness, version: int) -> None:
    if version < 4:
        found: Any = broker.ask(FindCoordinatorRequest(key_type=1, key="x"), version)
    else:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
        (found,) = broker.ask(request, version).coordinators
    assert (found.error_code, found.node_id, found.port) == (0, 1, 9092)


def test_coordinator_of_an_unknown_type_is_an_invalid_request(broker: BrokerHarness) -> None:
    (found,) = broker.ask(FindCoordinatorRequest(key_type=7, coordinator_keys=["x"])).coordinators
    assert found.error_code == InvalidRequestError.errno


@pytest.mark.parametrize("version", range(2))
def test_protocol_of_consumer_groups_is_unsupported_without_its_feature_or_its_setting(
    tmp_path: Path, broker: BrokerHarness, version: int
) -> None:
    assert updated(broker, "group.version", 0, upgrade_type=2).error_code == 0
    other = BrokerHarness(tmp_path / "other", group_coordinator_rebalance_protocols="classic")
    for one in (broker, other):
        heartbeat = one.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), version)
        assert (heartbeat.error_code, heartbeat.error_message) == (UnsupportedVersionError.errno, None)
        described = one.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), version)
        assert [group.error_code for group in described.groups] == [UnsupportedVersionError.errno]


@pytest.mark.kafka("TransactionCoordinatorTest.shouldAcceptInitPidAndReturnNextPidWhenTransactionalIdIsNull")
@pytest.mark.parametrize("version", range(6))
def test_each_idempotent_producer_gets_an_id_of_its_own(broker: BrokerHarness, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    first, second = broker.ask(request, version), broker.ask(request, version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert first.producer_id >= 0
    assert second.producer_id != first.producer_id


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_describes_this_node(broker: BrokerHarness, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = broker.ask(request, version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (
        0,
        "test-cluster-id-000001",
        1,
    )
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(1, "127.0.0.1", 9092)]
    assert response.cluster_authorized_operations == 8096


def test_describe_cluster_of_controllers_is_refused(broker: BrokerHarness) -> None:
    assert broker.ask(DescribeClusterRequest(endpoint_type=2)).error_code == 114
    assert broker.ask(DescribeClusterRequest(endpoint_type=3)).error_code == 115


def test_connection_is_anonymous_and_plaintext_unless_its_listener_says_otherwise() -> None:
    context = RequestContext("c", 1)
    assert (context.principal, context.listener_name) == (ANONYMOUS, "PLAINTEXT")
    alice = KafkaPrincipal.user("alice")
    named = RequestContext("c", 1, "h", "OUTSIDE", "SASL_SSL", alice)
    assert (named.principal, named.listener_name, named.security_protocol) == (alice, "OUTSIDE", "SASL_SSL")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_SSL"])
def test_sasl_where_no_authentication_goes_on_is_an_illegal_state(
    broker: BrokerHarness, protocol: str
) -> None:
    broker.context = RequestContext("c", 1, "h", protocol, protocol)
    handshake = broker.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    assert (handshake.error_code, handshake.mechanisms) == (IllegalSaslStateError.errno, [])
    answer = broker.ask(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"))
    assert answer.error_code == IllegalSaslStateError.errno
    assert answer.error_message == (
        "The client is already authenticated."
        if protocol == "SASL_SSL"
        else f"SASL is not enabled on this listener: its security protocol is {protocol}."
    )


def test_api_versions_is_all_that_is_answered_before_authentication(broker: BrokerHarness) -> None:
    payload = b"".join(encode_request(ApiVersionsRequest(**CLIENT), 3, 7, "me"))
    pieces = broker.apis.answer_before_authentication(broker.context, memoryview(payload))
    correlation_id, response = decode_response(b"".join(pieces), ApiVersionsRequest, 3)
    assert (correlation_id, response.error_code) == (7, 0)
    assert broker.context.software_name == "kafkacore"
    too_many = payload[:8] + b"\xff" * 40
    with pytest.raises((MalformedMessageError, IllegalSaslStateError)):
        broker.apis.answer_before_authentication(broker.context, memoryview(too_many))


def updated(broker: BrokerHarness, feature: str, level: int, version: int = 2, **fields: Any) -> Any:
    """Return the response to the update of one feature; ``fields`` are those of its update."""
    only_validates = fields.pop("validate_only", False)
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, **fields)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=only_validates)
    return broker.ask(request, version)


def finalized(broker: BrokerHarness, version: int = 4) -> tuple[int, dict[str, int]]:
    """Return the epoch and the levels that ApiVersions announces."""
    response = broker.ask(ApiVersionsRequest(**CLIENT), version)
    assert all(each.min_version_level == each.max_version_level for each in response.finalized_features)
    return response.finalized_features_epoch, {
        each.name: each.max_version_level for each in response.finalized_features
    }


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "feature", ["metadata.version", "transaction.version", "group.version", "kraft.version"]
)
def test_feature_can_be_updated_to_the_level_that_it_has(
    broker: BrokerHarness, version: int, feature: str
) -> None:
    answer = updated(broker, feature, broker.services.metadata.features.level(feature), version)
    assert (answer.error_code, answer.error_message) == (0, None)
    results = [feature] if version <= 1 else []
    assert [(each.feature, each.error_code) for each in answer.results] == [(name, 0) for name in results]


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "reason"),
    [
        ("metadata.version", 31, 1, "Local controller 1 only supports versions 30"),
        ("metadata.version", 29, 3, "Local controller 1 only supports versions 30"),
        ("transaction.version", 3, 1, "Local controller 1 only supports versions 0-2"),
        ("transaction.version", -1, 2, "A feature version cannot be less than 0."),
        ("transaction.version", 1, 1, "Can't downgrade the version of this feature without setting the "),
        ("transaction.version", 2, 9, "The controller does not support the given upgrade type."),
        ("group.version", 2, 1, "Local controller 1 only supports versions 0-1"),
        ("group.version", 0, 1, "Can't downgrade the version of this feature without setting the "),
        ("share.version", 1, 1, "Local controller 1 does not support this feature."),
        ("nobodys.version", 1, 1, "Local controller 1 does not support this feature."),
        ("nobodys.version", 0, 1, "Feature nobodys.version not found."),
    ],
)
def test_other_levels_of_features_are_refused_in_kafkas_words(
    broker: BrokerHarness, feature: str, level: int, upgrade_type: int, reason: str
) -> None:
    before = finalized(broker)
    answer = updated(broker, feature, level, upgrade_type=upgrade_type)
    assert answer.error_code == InvalidUpdateVersionError.errno
    assert f"Invalid update version {level} for feature {feature}. {reason}" in answer.error_message
    assert finalized(broker) == before


def test_transaction_version_can_be_lowered_and_raised(broker: BrokerHarness) -> None:
    others = {"metadata.version": 30, "group.version": 1}
    assert finalized(broker) == (0, {**others, "transaction.version": 2})
    assert updated(broker, "transaction.version", 1, 1, upgrade_type=2, validate_only=True).error_code == 0
    assert finalized(broker)[0] == 0
    assert updated(broker, "transaction.version", 1, 0, allow_downgrade=True).error_code == 0
    # Clients ignore levels unless the epoch has grown.
    assert finalized(broker) == (1, {**others, "transaction.version": 1})
    assert updated(broker, "transaction.version", 2, upgrade_type=2).error_code != 0
    assert updated(broker, "transaction.version", 0, upgrade_type=3).error_code == 0
    assert finalized(broker) == (2, others)
    assert updated(broker, "transaction.version", 2).error_code == 0
    assert finalized(broker) == (3, {**others, "transaction.version": 2})


def test_group_version_can_be_lowered_and_raised(broker: BrokerHarness) -> None:
    levels = broker.services.metadata.features
    assert levels.group_version == 1
    assert updated(broker, "group.version", 0, upgrade_type=2).error_code == 0
    assert "group.version" not in finalized(broker)[1]
    assert levels.group_version == 0
    assert updated(broker, "group.version", 1).error_code == 0
    assert finalized(broker)[1]["group.version"] == levels.group_version == 1


@pytest.mark.parametrize(("version", "lowest"), [(3, 1), (4, 0)])
def test_supported_levels_of_features_are_announced(broker: BrokerHarness, version: int, lowest: int) -> None:
    response = broker.ask(ApiVersionsRequest(**CLIENT), version)
    assert [(each.name, each.min_version, each.max_version) for each in response.supported_features] == [
        ("metadata.version", 30, 30),
        ("group.version", lowest, 1),
        ("transaction.version", lowest, 2),
    ]


@pytest.mark.parametrize(("broker_id", "error"), [(1, InvalidRequestError), (77, BrokerIdNotRegisteredError)])
def test_no_broker_is_unregistered(
    broker: BrokerHarness, broker_id: int, error: type[BrokerResponseError]
) -> None:
    answer = broker.ask(UnregisterBrokerRequest(broker_id=broker_id), 0)
    assert answer.error_code == error.errno
    assert str(broker_id) in answer.error_message
