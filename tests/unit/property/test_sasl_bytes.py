"""Bytes of an unauthenticated attacker raise only authentication errors and never authenticate."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from security.credentials import Users

from kafkacore.errors import AuthenticationFailedError, SaslAuthenticationFailedError
from kafkacore.protocol import decode_request_header, encode_request, encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig
from kafkacore.security.sasl.plain import PlainServer
from kafkacore.security.sasl.scram import ScramClient, ScramServer
from kafkacore.security.sasl.scram_keys import HASH_NAMES, as_text, credential, xor
from kafkacore.security.sasl.scram_messages import (
    client_first,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)
from kafkacore.security.server_authenticator import SaslServerAuthenticator, ServerSaslSettings
from kafkacore.testing import VirtualClock

USERS = Users({"alice": "pencil"})
FACTORIES = {
    "PLAIN": partial(PlainServer, USERS),
    "SCRAM-SHA-256": partial(ScramServer, "SCRAM-SHA-256", USERS),
}
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
#: Parts of valid messages and foreign bytes, in any order.
SCRAM_BYTES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                b"n,,",
                b"y,,",
                b"p=x,,",
                b"n=",
                b"r=",
                b"s=",
                b"i=",
                b"c=",
                b"p=",
                b"v=",
                b"e=",
                b"m=",
                b"a=",
                b",",
                b"=",
            ]
        ),
        st.sampled_from(
            [b"alice", b"4096", b"biws", b"c2FsdA==", b"nonce", b"=2C", b"=3D", b"-1", b"1" * 5000]
        ),
        st.binary(max_size=12),
    ),
    max_size=14,
).map(b"".join)


def failed(call: Callable[[Any], object], data: bytes | memoryview) -> bool:
    """Return whether the bytes were refused with an error message that is safe to log."""
    try:
        call(data)
    except AuthenticationFailedError as error:
        text = str(error)
    else:
        return False
    assert text.isprintable()
    assert len(text) < 1_000
    assert "pencil" not in text
    return True


@pytest.mark.parametrize(
    "parse", [parse_client_first, parse_server_first, parse_client_final, parse_server_final]
)
@given(data=SCRAM_BYTES)
def test_scram_messages_raise_nothing_else(parse: Callable[[bytes], object], data: bytes) -> None:
    failed(parse, data)


@given(NAMES)
def test_every_name_comes_back_out_of_its_message(name: str) -> None:
    message = client_first(name, "nonce")
    parsed = parse_client_first(f"{message.gs2_header}{message.bare}".encode())
    assert parsed == message


@given(NAMES, NAMES, st.sampled_from(sorted(HASH_NAMES)))
def test_right_password_opens_and_another_does_not(right: str, tried: str, mechanism: str) -> None:
    users = Users({})
    users.credentials[mechanism, "alice"] = credential(mechanism, Secret(right))
    client, server = ScramClient(mechanism, "alice", Secret(tried)), ScramServer(mechanism, users)
    final = client.step(server.step(client.step(None)))
    if tried == right:
        assert client.step(server.step(final)) is None
    else:
        with pytest.raises(SaslAuthenticationFailedError):
            server.step(final)
    assert server.is_complete == client.is_complete == (tried == right)


@given(st.binary(min_size=1, max_size=64), st.data())
def test_xor_is_its_own_inverse(left: bytes, data: st.DataObject) -> None:
    right = data.draw(st.binary(min_size=len(left), max_size=len(left)))
    assert xor(xor(left, right), right) == left
    assert xor(left, left) == bytes(len(left))


@given(st.integers(0, (1 << 130) - 1))
def test_random_bits_lose_nothing_as_text(number: int) -> None:
    assert int(as_text(number), 36) == number
    assert len(as_text(number)) == 26


# ---- The server --------------------------------------------------------------------------------------------


def no_versions(payload: memoryview) -> list[bytes]:
    return [b"what is spoken here"]


def request(message, version: int) -> bytes:
    return b"".join(encode_request(message, version, 1, "x"))


#: Valid and invalid frames of every kind that a client may send.
CLIENT_FRAMES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda mechanism, version: request(SaslHandshakeRequest(mechanism=mechanism), version),
        st.one_of(st.sampled_from(["PLAIN", "SCRAM-SHA-256"]), NAMES),
        st.sampled_from([0, 1]),
    ),
    st.builds(
        lambda token, version: request(SaslAuthenticateRequest(auth_bytes=token), version),
        st.one_of(SCRAM_BYTES, st.sampled_from([b"\0alice\0pencil2", b"\0alice", b"n,,n=alice,r=abc"])),
        st.sampled_from([0, 1, 2]),
    ),
    st.builds(
        lambda frame, at: frame[:at],
        st.just(request(SaslHandshakeRequest(mechanism="PLAIN"), 1)),
        st.integers(0, 30),
    ),
)


@given(st.lists(CLIENT_FRAMES, max_size=5))
def test_server_lets_nobody_in_and_raises_nothing_else(frames: list[bytes]) -> None:
    server = SaslServerAuthenticator(ServerSaslSettings(mechanisms=FACTORIES), no_versions, VirtualClock())
    for frame in frames:
        if failed(server.receive, memoryview(frame)):
            break
    assert not server.is_complete


# ---- The client --------------------------------------------------------------------------------------------

#: Valid and invalid responses of a broker.
BROKER_MESSAGES = st.one_of(
    st.builds(
        ApiVersionsResponse,
        error_code=st.sampled_from([0, 0, 0, 35, -1]),
        api_keys=st.lists(
            st.builds(
                ApiVersionsResponse.ApiVersion,
                api_key=st.sampled_from([17, 36, 18, 3]),
                min_version=st.integers(-1, 2),
                max_version=st.integers(-1, 3),
            ),
            max_size=4,
        ),
    ),
    st.builds(
        SaslHandshakeResponse,
        error_code=st.sampled_from([0, 0, 0, 33, 34, 999]),
        mechanisms=st.lists(NAMES, max_size=3),
    ),
    st.builds(
        SaslAuthenticateResponse,
        error_code=st.sampled_from([0, 0, 0, 58, -1]),
        error_message=st.one_of(st.none(), NAMES),
        auth_bytes=SCRAM_BYTES,
        session_lifetime_ms=st.integers(-(1 << 63), (1 << 63) - 1),
    ),
)
KNOWS_SASL = ApiVersionsResponse(
    api_keys=[ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=2) for key in (17, 36)]
)


@given(st.booleans(), st.lists(st.one_of(BROKER_MESSAGES, st.binary(max_size=60)), max_size=5))
def test_client_believes_no_broker_and_raises_nothing_else(well_begun: bool, answers: list) -> None:
    config = SaslConfig(mechanism="SCRAM-SHA-256", username="alice", password=Secret("pencil"))
    client = SaslClientAuthenticator(config, "broker", None, VirtualClock())
    frames = [client.begin()]
    for answer in [KNOWS_SASL, SaslHandshakeResponse(), *answers] if well_begun else answers:
        header, _ = decode_request_header(b"".join(frames[-1]))
        if not isinstance(answer, bytes):
            version = min(header.request_api_version, answer.MAX_VERSION)
            answer = b"".join(encode_response(answer, version, header.correlation_id))
        if failed(lambda payload: frames.append(client.receive(payload)), memoryview(answer)):
            break
    assert not client.is_complete
    assert None not in frames


@given(st.binary(max_size=40))
def test_salt_is_what_the_server_meant(salt: bytes) -> None:
    client = ScramClient("SCRAM-SHA-256", "alice", Secret("pencil"), "n")
    client.step(None)
    challenge = f"r=nx,s={base64.b64encode(salt).decode()},i=4096".encode()
    if salt:
        assert client.step(challenge).startswith(b"c=biws,r=nx,p=")
    else:
        with pytest.raises(SaslAuthenticationFailedError, match="s= is missing or empty"):
            client.step(challenge)
