"""ApiVersions requests of a version that nobody knows, a known stumbling block, answered as Kafka does."""

from __future__ import annotations

import struct

from integration.apache_kafka import ApacheKafka
from model.raw_line import Line

from kafkacore.testing.embedded_broker import EmbeddedBroker

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35


def exchange(servers: str, request: bytes) -> bytes:
    """One request to the broker, one answer back, on a connection of their own."""
    with Line(servers) as line:
        line.say_bytes(request)
        return line.hear_bytes()


def request_of_unknown_version() -> bytes:
    # Request header v2: key, version, correlation id, client id, tagged fields; then a body of a later time.
    return struct.pack(">hhih", API_VERSIONS, 127, 4711, 4) + b"test" + b"\x00" + b"\xde\xad\xbe\xef"


def v0_answer(payload: bytes) -> tuple[int, int, dict[int, tuple[int, int]]]:
    """Correlation id, error code and version ranges of a v0-shaped answer that ends where it should."""
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
