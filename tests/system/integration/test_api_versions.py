"""The ApiVersions response of our broker, compared with that of Apache Kafka."""

from __future__ import annotations

import struct

import pytest
from model.authorisation_requests import made
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka

from kafkacore.broker.config.features import FEATURES
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.unregister_broker import UnregisterBrokerRequest
from kafkacore.protocol.generated.update_features import UpdateFeaturesRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35
INVALID_UPDATE_VERSION, BROKER_ID_NOT_REGISTERED = 95, 102


def exchange(servers: str, request: bytes) -> bytes:
    """Send one request to the broker on a new connection, and return the response."""
    with Line(servers) as line:
        line.say_bytes(request)
        return line.hear_bytes()


def request_of_unknown_version() -> bytes:
    # Request header v2 (key, version, correlation id, client id, tagged fields), then a body of a future
    # version.
    return struct.pack(">hhih", API_VERSIONS, 127, 4711, 4) + b"test" + b"\x00" + b"\xde\xad\xbe\xef"


def v0_answer(payload: bytes) -> tuple[int, int, dict[int, tuple[int, int]]]:
    """Return correlation id, error code and version ranges of a v0 response, after a check of its length."""
    correlation_id, error, count = struct.unpack_from(">ihi", payload)
    ranges = list(struct.iter_unpack(">hhh", payload[10:]))
    assert len(ranges) == count
    return correlation_id, error, {key: (low, high) for key, low, high in ranges}


def test_unknown_version_is_answered_in_version_0_with_the_range(
    our_broker: EmbeddedBroker,
) -> None:
    payload = exchange(our_broker.bootstrap_servers, request_of_unknown_version())
    correlation_id, error, ranges = v0_answer(payload)
    assert (correlation_id, error) == (4711, UNSUPPORTED_VERSION)
    assert ranges[API_VERSIONS] == (0, 4)


def test_answer_to_an_unknown_version_has_apache_kafkas_bytes(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka
) -> None:
    theirs = exchange(apache_kafka.bootstrap_servers, request_of_unknown_version())
    ours = exchange(our_broker.bootstrap_servers, request_of_unknown_version())
    (_, their_error, their_ranges), (_, our_error, our_ranges) = v0_answer(theirs), v0_answer(ours)
    assert our_error == their_error
    assert our_ranges[API_VERSIONS] == their_ranges[API_VERSIONS]


def test_connection_is_usable_after_an_unknown_version(our_broker: EmbeddedBroker) -> None:
    again = struct.pack(">hhih", API_VERSIONS, 0, 4712, -1)
    with Line(our_broker.bootstrap_servers) as line:
        for request in (request_of_unknown_version(), again):
            line.say_bytes(request)
        answers = [v0_answer(line.hear_bytes()) for _ in range(2)]
    assert [(correlation_id, error) for correlation_id, error, _ in answers] == [(4711, 35), (4712, 0)]


# ---- Announced versions ------------------------------------------------------------------------------------

Range = tuple[int, int]

_QUORUM = "the broker runs without a controller quorum"
_SHARE_AND_STREAMS = "share groups and streams groups are not served"
_TOKENS = "delegation tokens are not served"
_OLD_CLIENTS = "clients of Kafka 0.8 to 0.10 can read (docs/guides/operating.md)"

#: API → version range of Apache Kafka, our range (``None``: not announced), and why they differ.
DIFFERENCES: dict[ApiKey, tuple[Range, Range | None, str]] = {
    ApiKey.FETCH: ((4, 18), (0, 18), _OLD_CLIENTS),
    ApiKey.LIST_OFFSETS: ((1, 11), (0, 11), _OLD_CLIENTS),
    ApiKey.CREATE_DELEGATION_TOKEN: ((1, 3), None, _TOKENS),
    ApiKey.RENEW_DELEGATION_TOKEN: ((1, 2), None, _TOKENS),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ((1, 2), None, _TOKENS),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ((1, 3), None, _TOKENS),
    ApiKey.ADD_RAFT_VOTER: ((0, 1), None, _QUORUM),
    ApiKey.REMOVE_RAFT_VOTER: ((0, 0), None, _QUORUM),
    **{
        key: (theirs, None, _SHARE_AND_STREAMS)
        for key, theirs in (
            (ApiKey.SHARE_GROUP_HEARTBEAT, (1, 1)),
            (ApiKey.SHARE_GROUP_DESCRIBE, (1, 1)),
            (ApiKey.SHARE_FETCH, (1, 2)),
            (ApiKey.SHARE_ACKNOWLEDGE, (1, 2)),
            (ApiKey.INITIALIZE_SHARE_GROUP_STATE, (0, 0)),
            (ApiKey.READ_SHARE_GROUP_STATE, (0, 0)),
            (ApiKey.WRITE_SHARE_GROUP_STATE, (0, 1)),
            (ApiKey.DELETE_SHARE_GROUP_STATE, (0, 0)),
            (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1)),
            (ApiKey.STREAMS_GROUP_HEARTBEAT, (0, 0)),
            (ApiKey.STREAMS_GROUP_DESCRIBE, (0, 0)),
            (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1)),
            (ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0, 0)),
            (ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0, 0)),
        )
    },
}


def announced(servers: str) -> ApiVersionsResponse:
    client = {"client_software_name": "kafkacore", "client_software_version": "1"}
    with Line(servers) as line:
        answer: ApiVersionsResponse = line.ask(ApiVersionsRequest(**client), 4)
    return answer


def test_announced_ranges_are_apache_kafkas_but_for_known_reasons(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka
) -> None:
    theirs, ours = (
        {each.api_key: (each.min_version, each.max_version) for each in announced(servers).api_keys}
        for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers)
    )
    found = {
        ApiKey(key).name: (theirs.get(key), ours.get(key))
        for key in sorted({*theirs, *ours})
        if theirs.get(key) != ours.get(key)
    }
    assert found == {key.name: DIFFERENCES[key][:2] for key in sorted(DIFFERENCES)}


#: Features of Apache Kafka that our broker does not announce, which means level 0, and why.
FEATURES_NOT_HERE = {
    "eligible.leader.replicas.version": "nothing is replicated",
    "kraft.version": _QUORUM,
    "share.version": _SHARE_AND_STREAMS,
    "streams.version": _SHARE_AND_STREAMS,
}


def test_announced_features_are_apache_kafkas_but_for_known_reasons(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka
) -> None:
    theirs, ours = announced(apache_kafka.bootstrap_servers), announced(our_broker.bootstrap_servers)
    supported = {each.name for each in theirs.supported_features}
    assert supported - {each.name for each in ours.supported_features} == set(FEATURES_NOT_HERE)
    assert supported == set(FEATURES)
    our_names = {each.name for each in ours.supported_features}
    highest, levels = [], []
    for answer in (theirs, ours):
        supports = {each.name: each.max_version for each in answer.supported_features}
        highest.append({name: supports[name] for name in our_names})
        levels.append(
            {
                each.name: each.max_version_level
                for each in answer.finalized_features
                if each.name in our_names
            }
        )
    assert highest[0] == highest[1]
    assert levels[0] == levels[1]
    for name in ("group.version", "transaction.version"):
        (supported_levels,) = (each for each in ours.supported_features if each.name == name)
        assert supported_levels in theirs.supported_features


#: Updates of features: level, kind, and the error code of both brokers.
UPDATES = [
    ("metadata.version", 30, 1, 0),
    ("metadata.version", 30, 2, 0),
    ("metadata.version", 31, 1, INVALID_UPDATE_VERSION),
    ("metadata.version", 29, 1, INVALID_UPDATE_VERSION),
    ("metadata.version", 29, 3, INVALID_UPDATE_VERSION),
    ("metadata.version", -1, 1, INVALID_UPDATE_VERSION),
    ("metadata.version", 30, 9, INVALID_UPDATE_VERSION),
    ("kraft.version", 0, 1, 0),
    ("transaction.version", 2, 1, 0),
    ("transaction.version", 1, 2, 0),
    ("transaction.version", 0, 3, 0),
    ("transaction.version", 1, 1, INVALID_UPDATE_VERSION),
    ("transaction.version", 3, 1, INVALID_UPDATE_VERSION),
    ("group.version", 1, 1, 0),
    ("group.version", 0, 2, 0),
    ("group.version", 0, 3, 0),
    ("group.version", 0, 1, INVALID_UPDATE_VERSION),
    ("group.version", 2, 1, INVALID_UPDATE_VERSION),
    ("unknown.version", 0, 1, INVALID_UPDATE_VERSION),
    ("unknown.version", 1, 1, INVALID_UPDATE_VERSION),
]


@pytest.mark.parametrize("version", [1, 2])
def test_updates_of_features_are_answered_alike(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka, version: int
) -> None:
    found = []
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        with Line(servers) as line:
            answers = [
                line.ask(
                    made(
                        UpdateFeaturesRequest,
                        feature_updates=[
                            {"feature": feature, "max_version_level": level, "upgrade_type": kind}
                        ],
                        validate_only=True,
                    ),
                    version,
                )
                for feature, level, kind, _ in UPDATES
            ]
        found.append([(each.error_code, [one.feature for one in each.results]) for each in answers])
    theirs, ours = found
    assert ours == theirs
    assert [code for code, _ in ours] == [code for *_, code in UPDATES]


def test_unregistration_of_an_unknown_broker_is_answered_alike(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka
) -> None:
    found = []
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        with Line(servers) as line:
            answer = line.ask(UnregisterBrokerRequest(broker_id=77), 0)
        found.append((answer.error_code, answer.error_message))
    theirs, ours = found
    assert ours == theirs == (BROKER_ID_NOT_REGISTERED, "Broker ID 77 is not currently registered")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_announced_produce_below_version_3_ends_the_connection(
    our_broker: EmbeddedBroker, apache_kafka: ApacheKafka, version: int
) -> None:
    # acks=1, a timeout of a second, no topics.
    request = struct.pack(">hhihhii", ApiKey.PRODUCE, version, 1, -1, 1, 1000, 0)
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        with pytest.raises(AssertionError, match="closed the connection"):
            exchange(servers, request)
