"""Our broker's SASL listeners, with hand-written clients that have not authenticated yet."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
from collections.abc import Iterator

import pytest
from eventually import BUDGET_S
from model.raw_line import Line
from peers.secure_broker import SecureBroker, started_secure_broker
from peers.secure_listeners import PASSWORDS

from kafkacore.protocol import encode_request
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest

UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
NOISE = random.Random(9).randbytes(1024)
TOKEN = f"\0alice\0{PASSWORDS['alice']}".encode()


@pytest.fixture(scope="module")
def broker() -> Iterator[SecureBroker]:
    limits = {"listener.name.only_scram.sasl.server.max.receive.size": "1024"}
    with started_secure_broker(**limits) as broker:
        yield broker


def line_to(broker: SecureBroker, listener: str) -> Line:
    settings = broker.settings(listener)
    cafile = settings.get("ssl_cafile")
    tls = ssl.create_default_context(cafile=cafile) if cafile else None
    return Line(settings["bootstrap_servers"], "stranger", tls)


def authenticate(line: Line, handshake_version: int = 1) -> None:
    """Authenticate by PLAIN. With handshake version 0 the token is sent without a request around it."""
    assert line.ask(SaslHandshakeRequest(mechanism="PLAIN"), handshake_version).error_code == 0
    if handshake_version == 0:
        line.say_bytes(TOKEN)
        assert line.hear_bytes() == b""
    else:
        assert line.ask(SaslAuthenticateRequest(auth_bytes=TOKEN), 2).error_code == 0


def named(software: str, version: str) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version=version)


def is_served(line: Line) -> bool:
    return bool(line.ask(MetadataRequest(topics=[]), 9).brokers)


def works(broker: SecureBroker) -> bool:
    """Return whether a valid client is still served."""
    with line_to(broker, "SASL_PLAINTEXT") as line:
        authenticate(line)
        return is_served(line)


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testUnauthenticatedApiVersionsRequestOverPlaintextHandshakeVersion0",
    "SaslAuthenticatorTest.testUnauthenticatedApiVersionsRequestOverPlaintextHandshakeVersion1",
    "SaslAuthenticatorTest.testUnauthenticatedApiVersionsRequestOverSslHandshakeVersion0",
    "SaslAuthenticatorTest.testUnauthenticatedApiVersionsRequestOverSslHandshakeVersion1",
    "SaslAuthenticatorTest.testValidApiVersionsRequest",
)
@pytest.mark.parametrize("handshake_version", [0, 1])
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_client_may_ask_what_is_spoken_before_it_authenticates(
    broker: SecureBroker, listener: str, handshake_version: int
) -> None:
    with line_to(broker, listener) as line:
        for version in (0, 4):
            spoken = line.ask(named("me", "1"), version)
            assert spoken.error_code == 0
            assert {17, 18, 36} <= {each.api_key for each in spoken.api_keys}
        authenticate(line, handshake_version)
        assert is_served(line)


@pytest.mark.kafka("SaslAuthenticatorTest.testApiVersionsRequestWithServerUnsupportedVersion")
def test_versions_that_are_not_there_are_told_in_version_0_and_authentication_goes_on(
    broker: SecureBroker,
) -> None:
    with line_to(broker, "SASL_PLAINTEXT") as line:
        frame = bytearray(b"".join(map(bytes, encode_request(ApiVersionsRequest(), 0, 1, "stranger"))))
        frame[2:4] = b"\x7f\xff"
        # The zero byte is the empty tag section that headers of later versions have.
        line.say_bytes(bytes(frame) + b"\0")
        answer = line.hear_bytes()
        assert answer[:6] == b"\0\0\0\x01" + UNSUPPORTED_VERSION.to_bytes(2)
        authenticate(line)
        assert is_served(line)


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidApiVersionsRequest")
def test_bad_name_of_a_clients_software_is_told_and_authentication_goes_on(broker: SecureBroker) -> None:
    with line_to(broker, "SASL_PLAINTEXT") as line:
        assert line.ask(named("  ", "   "), 4).error_code == INVALID_REQUEST
        authenticate(line)
        assert is_served(line)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


def request_bytes(message: object, version: int) -> bytes:
    return framed(b"".join(map(bytes, encode_request(message, version, 7, "stranger"))))


def with_version(frame: bytes, version: int) -> bytes:
    return frame[:6] + version.to_bytes(2) + frame[8:]


HANDSHAKE = request_bytes(SaslHandshakeRequest(mechanism="PLAIN"), 1)


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testSaslHandshakeRequestWithUnsupportedVersion",
    "SaslAuthenticatorTest.testInvalidSaslPacket",
    "SaslAuthenticatorTest.testInvalidApiVersionsRequestSequence",
    "SaslAuthenticatorTest.testPacketSizeTooBig",
    "SaslAuthenticatorTest.testDisallowedKafkaRequestsBeforeAuthentication",
)
@pytest.mark.parametrize(
    "sent",
    [
        framed(NOISE),
        request_bytes(MetadataRequest(topics=[]), 9),
        request_bytes(SaslAuthenticateRequest(auth_bytes=TOKEN), 2),
        with_version(HANDSHAKE, 0x7FFF),
        b"\x7f\xff\xff\xff" + bytes(1020),
        HANDSHAKE + framed(NOISE),
        HANDSHAKE + request_bytes(ApiVersionsRequest(), 0),
        HANDSHAKE + request_bytes(MetadataRequest(topics=[]), 9),
        HANDSHAKE + b"\x7f\xff\xff\xff" + bytes(1020),
    ],
    ids=[
        "noise", "metadata", "token without a handshake", "handshake of no version", "2 GiB",
        "noise after", "versions after", "metadata after", "2 GiB after",
    ],
)  # fmt: skip
def test_what_is_not_to_be_said_before_authentication_ends_the_connection_alone(
    broker: SecureBroker, sent: bytes
) -> None:
    assert is_closed_after(broker, "SASL_PLAINTEXT", sent)
    assert works(broker)


def is_closed_after(broker: SecureBroker, listener: str, sent: bytes) -> bool:
    """Return whether the broker closes the connection after at most a handshake response."""
    host, port = broker.settings(listener)["bootstrap_servers"].split(":")
    received = b""
    with (
        socket.create_connection((host, int(port)), BUDGET_S) as sock,
        contextlib.suppress(ConnectionResetError),
    ):
        sock.sendall(sent)
        while piece := sock.recv(65_536):
            received += piece
    return len(received) < 200


@pytest.mark.kafka("SaslAuthenticatorTest.testSaslAuthenticationMaxReceiveSize")
def test_larger_request_than_is_taken_before_authentication_ends_the_connection(broker: SecureBroker) -> None:
    with line_to(broker, "ONLY_SCRAM") as line:
        assert line.ask(named("x" * 900, "1"), 4).error_code == 0
    with line_to(broker, "ONLY_SCRAM") as line, pytest.raises((AssertionError, OSError, EOFError)):
        line.ask(named("x" * 1_100, "1"), 4)
    with line_to(broker, "SASL_SSL") as line:
        assert line.ask(named("x" * 1_100, "1"), 4).error_code == 0
