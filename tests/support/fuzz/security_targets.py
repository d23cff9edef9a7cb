"""Fuzz targets for input before authentication: SASL frames of both sides, SCRAM messages, tokens, JAAS."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import cache, partial

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from fuzz.harness import Target
from jwt.algorithms import ECAlgorithm
from model.certificates import der
from security.credentials import Users

from kafkacore.broker.listeners.certificate_names import distinguished_name
from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.protocol import (
    ApiKey,
    Message,
    RequestMessage,
    decode_request_header,
    encode_request,
    encode_response,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import CORRELATION_IDS, SaslClientAuthenticator
from kafkacore.security.jaas import parse_jaas
from kafkacore.security.principal import KafkaPrincipal
from kafkacore.security.sasl import SaslConfig
from kafkacore.security.sasl.jwks import KeySet, KeySource, VerificationKey
from kafkacore.security.sasl.jwt_validation import JwtRules, JwtValidator
from kafkacore.security.sasl.oauth_messages import build_initial_response
from kafkacore.security.sasl.plain import PlainServer
from kafkacore.security.sasl.scram import ScramClient, ScramServer
from kafkacore.security.sasl.scram_messages import parse_server_final, parse_server_first
from kafkacore.security.sasl.server_oauthbearer import OAuthBearerServerMechanism
from kafkacore.security.sasl.token_rules import TokenRefusedError
from kafkacore.security.sasl.unsecured_tokens import UnsecuredTokenProvider, UnsecuredValidator
from kafkacore.security.server_authenticator import SaslServerAuthenticator, ServerSaslSettings
from kafkacore.testing import VirtualClock

_NOW_MS = 1_000_000_000_000.0
_SCRAM = "SCRAM-SHA-256"
_SIZE = struct.Struct(">H")


@cache
def users() -> Users:
    return Users({"alice": "pencil"})


def mechanisms() -> dict[str, object]:
    return {"PLAIN": partial(PlainServer, users()), _SCRAM: partial(ScramServer, _SCRAM, users(), "nonce")}


# ---- One mechanism's messages ------------------------------------------------------------------------------
def read_plain(data: bytes) -> None:
    server = PlainServer(users())
    server.step(data)
    assert data.endswith(b"\0pencil"), "authenticated without the password"


def read_client_first(data: bytes) -> None:
    server = ScramServer(_SCRAM, users(), "nonce")
    server.step(data)
    assert not server.is_complete, "authenticated without a proof"


@cache
def scram_exchange() -> tuple[bytes, bytes, bytes, bytes]:
    """Return the four messages of an exchange with fixed nonces."""
    client, server = ScramClient(_SCRAM, "alice", Secret("pencil"), "mine"), mechanisms()[_SCRAM]()
    first = client.step(None)
    challenge = server.step(first)
    final = client.step(challenge)
    return first, challenge, final, server.step(final)


def read_client_final(data: bytes) -> None:
    first, _, final, _ = scram_exchange()
    server = ScramServer(_SCRAM, users(), "nonce")
    server.step(first)
    server.step(data)
    # Base64 has several spellings of the same bytes.
    assert data[:40] == final[:40], "authenticated without the proof"


def read_server_first(data: bytes) -> None:
    """Read the first server message. The iteration count must be bounded before it is used."""
    found = parse_server_first(data)
    assert isinstance(found.iterations, int)
    if found.iterations > 4096:
        return
    client = ScramClient(_SCRAM, "alice", Secret("pencil"), "mine")
    client.step(None)
    client.step(data)
    assert found.nonce.startswith("mine"), "continues with a foreign nonce"


def read_server_final(data: bytes) -> None:
    parse_server_final(data)


def read_token(data: bytes) -> None:
    OAuthBearerServerMechanism(UnsecuredValidator({}, VirtualClock(_NOW_MS))).step(data)


class _Keys(KeySource):
    def __init__(self, document: bytes) -> None:
        self._set = KeySet.parse(document, "test")

    def key(self, key_id: str | None) -> VerificationKey | None:
        return self._set.key(key_id)


@cache
def signing() -> tuple[JwtValidator, bytes, bytes]:
    """Return the validator, its keys, and a valid token."""
    key = ec.generate_private_key(ec.SECP256R1())
    document = (
        b'{"keys": [%s]}'
        % ECAlgorithm.to_jwk(key.public_key()).replace('"kty"', '"kid": "1", "kty"').encode()
    )
    rules = JwtRules(issuer="issuer", audience=frozenset({"kafka"}))
    claims = {
        "iss": "issuer",
        "aud": "kafka",
        "sub": "alice",
        "iat": _NOW_MS // 1000,
        "exp": _NOW_MS // 1000 + 60,
    }
    token = jwt.encode(claims, key, algorithm="ES256", headers={"kid": "1"})
    return JwtValidator(rules, _Keys(document), VirtualClock(_NOW_MS)), document, token.encode()


def read_signed_token(data: bytes) -> None:
    """Read a token. A token whose signed part differs from the valid one must be rejected."""
    validator, _, token = signing()
    try:
        validator.validate(data.decode("latin-1"))
    except TokenRefusedError as error:
        # Raise the mechanism's error.
        raise SaslAuthenticationFailedError(str(error)) from None
    assert data.split(b".")[:2] == token.split(b".")[:2], "accepted without a valid signature"


def read_key_set(data: bytes) -> None:
    KeySet.parse(data, "the test")


def read_jaas(data: bytes) -> None:
    parse_jaas("sasl.jaas.config", data.decode("utf-8", "replace"))


def read_principal(data: bytes) -> None:
    KafkaPrincipal.parse(data.decode("utf-8", "replace"))


# ---- Whole conversations -----------------------------------------------------------------------------------
def frames_of(data: bytes) -> Iterator[memoryview]:
    """Return the frames, each preceded by its size in two bytes. The last one may be cut."""
    at = 0
    while len(data) - at >= _SIZE.size:
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        yield memoryview(data)[at : at + size]
        at += size


def said(frames: Iterable[bytes]) -> bytes:
    return b"".join(_SIZE.pack(len(frame)) + frame for frame in frames)


def api_versions(payload: memoryview) -> list[bytes | memoryview]:
    header, _ = decode_request_header(payload)
    version = header.request_api_version if header.request_api_version <= 4 else 0
    return encode_response(spoken(), version, header.correlation_id)


def spoken() -> ApiVersionsResponse:
    ranges = {ApiKey.API_VERSIONS: 4, ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}
    made = ApiVersionsResponse.ApiVersion
    keys = [made(api_key=key, min_version=0, max_version=most) for key, most in ranges.items()]
    return ApiVersionsResponse(api_keys=keys)


def hear_client(data: bytes) -> None:
    """Feed a broker's server side. None of its answers may authenticate a client without a password."""
    server = SaslServerAuthenticator(
        ServerSaslSettings(mechanisms=mechanisms()), api_versions, VirtualClock(_NOW_MS)
    )
    for frame in frames_of(data):
        server.receive(frame)
        if server.is_complete:
            assert b"pencil" in data or b"p=" in data, "authenticated without a password"
            return


def hear_server(data: bytes) -> None:
    """Feed a client. The first byte chooses its mechanism."""
    if not data:
        return
    config = SaslConfig(mechanism=(_SCRAM, "PLAIN")[data[0] & 1], username="alice", password=Secret("pencil"))
    client = SaslClientAuthenticator(config, "broker.example", "a client", VirtualClock(_NOW_MS))
    client.begin()
    for frame in frames_of(data[1:]):
        client.receive(frame)
        if client.is_complete:
            assert data[0] & 1, "SCRAM accepts a broker that has not proved that it knows the user"
            return


def request(message: RequestMessage[Message], version: int) -> bytes:
    return b"".join(bytes(piece) for piece in encode_request(message, version, 7, "client"))


def client_talks() -> list[bytes]:
    made = []
    for name, tokens in (
        ("PLAIN", [b"\0alice\0pencil"]),
        (_SCRAM, [scram_exchange()[0], scram_exchange()[2]]),
    ):
        for version in range(3):
            frames = [request(ApiVersionsRequest(), 3), request(SaslHandshakeRequest(mechanism=name), 1)]
            frames += [request(SaslAuthenticateRequest(auth_bytes=token), version) for token in tokens]
            made.append(said(frames))
        made.append(said([request(SaslHandshakeRequest(mechanism=name), 0), *tokens]))
    return made


def server_talks() -> list[bytes]:
    """Return what a broker that does not know the client's nonce sends. Only PLAIN may accept it."""
    answers = [
        (spoken(), 0),
        (SaslHandshakeResponse(mechanisms=["PLAIN", _SCRAM]), 1),
        (SaslAuthenticateResponse(session_lifetime_ms=1000), 2),
    ]
    numbered = zip(CORRELATION_IDS, answers, strict=False)
    frames = [b"".join(map(bytes, encode_response(one, version, at))) for at, (one, version) in numbered]
    return [b"\x01" + said(frames), b"\x00" + said(frames[:2])]


# ---- Certificates ------------------------------------------------------------------------------------------
def read_subject(data: bytes) -> None:
    """Read the subject of a client's certificate. An authority may sign it as the client wrote it."""
    assert isinstance(distinguished_name(data), str)


def certificates() -> list[bytes]:
    """Return certificates up to the key, with every string type in the subject and an unknown attribute."""
    parts = [
        (b"\x55\4\3", 0x0C, "zoë"),
        (b"\x55\4\x0a", 0x1E, "Ex"),
        (b"\x55\4\x0b", 0x1C, "o"),
        (b"\x2a\3", 0x16, "x"),
    ]
    encodings = {0x0C: "utf-8", 0x1E: "utf-16-be", 0x1C: "utf-32-be", 0x16: "ascii"}
    names = [der(0x30, der(0x06, kind) + der(tag, text.encode(encodings[tag]))) for kind, tag, text in parts]
    subjects = [b"".join(der(0x31, name) for name in names), der(0x31, b"".join(names))]
    number, nothing = der(0x02, b"\7"), der(0x30, b"")
    before = [der(0xA0, der(0x02, b"\2")) + number + nothing * 3, number + nothing * 3]
    return [der(0x30, der(0x30, some + der(0x30, subject))) for some in before for subject in subjects]


def targets() -> list[Target]:
    first, challenge, final, verdict = scram_exchange()
    _, document, token = signing()
    unsecured = UnsecuredTokenProvider("alice", 60, "", VirtualClock(_NOW_MS)).token()
    initial = build_initial_response(Secret(unsecured), {"traceId": "7"})
    jaas = b'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b\\"c";'
    return [
        Target("plain", read_plain, [b"\0alice\0pencil", b"alice\0alice\0pencil"]),
        Target("scram-client-first", read_client_first, [first, b"n,a=alice,n=a=2Cb=3D,r=x,e=1"]),
        Target("scram-client-final", read_client_final, [final]),
        Target("scram-server-first", read_server_first, [challenge], takes_memory=True),
        Target("scram-server-final", read_server_final, [verdict]),
        Target("oauthbearer", read_token, [initial]),
        Target("jwt", read_signed_token, [token], takes_memory=True),
        Target("key-set", read_key_set, [document], takes_memory=True),
        # The text is the operator's own, and each character is a token, so memory is not limited.
        Target("jaas", read_jaas, [jaas], takes_memory=True),
        Target("certificate", read_subject, certificates()),
        Target("principal", read_principal, [b"User:alice", b"Group:a:b"]),
        Target("sasl-client", hear_client, client_talks(), takes_memory=True),
        Target("sasl-server", hear_server, server_talks(), takes_memory=True),
    ]
