"""Both authenticators frame by frame: with each other, with malicious peers, and on reauthentication."""

from __future__ import annotations

import math
import pickle
from functools import partial

import pytest
from security.credentials import Users

from kafkacore.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafkacore.protocol import (
    ApiKey,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacore.security import ANONYMOUS, Authenticator, KafkaPrincipal, Secret
from kafkacore.security.client_authenticator import CORRELATION_IDS, SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig, SaslMechanism, register_sasl_mechanism
from kafkacore.security.sasl.plain import PlainServer
from kafkacore.security.sasl.scram import ScramServer
from kafkacore.security.sasl.scram_keys import HASH_NAMES
from kafkacore.security.server_authenticator import SaslServerAuthenticator, ServerSaslSettings
from kafkacore.testing import VirtualClock

MECHANISMS = ["PLAIN", *sorted(HASH_NAMES)]
USERS = Users({"alice": "pencil", "bob": "brush"})
FACTORIES = {"PLAIN": partial(PlainServer, USERS)} | {
    name: partial(ScramServer, name, USERS) for name in sorted(HASH_NAMES)
}
SPOKEN = {ApiKey.API_VERSIONS: (0, 4), ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}


def api_versions(payload: memoryview, spoken=SPOKEN) -> list:
    header, _ = decode_request_header(payload)
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in spoken.items()
    ]
    return encode_response(
        ApiVersionsResponse(api_keys=keys), header.request_api_version, header.correlation_id
    )


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def config_of(mechanism: str, user: str = "alice", password: str = "pencil") -> SaslConfig:
    return SaslConfig(mechanism=mechanism, username=user, password=Secret(password))


def client_of(config: SaslConfig, clock: VirtualClock) -> SaslClientAuthenticator:
    return SaslClientAuthenticator(config, "broker.example", "a client", clock)


def server_of(clock: VirtualClock, answer=api_versions, **settings) -> SaslServerAuthenticator:
    return SaslServerAuthenticator(ServerSaslSettings(mechanisms=FACTORIES, **settings), answer, clock)


def joined(pieces) -> memoryview:
    return memoryview(b"".join(pieces))


def run(client: Authenticator, server: Authenticator, frame) -> list[memoryview]:
    """Exchange frames, beginning with the client's ``frame``, and return all frames."""
    carried = []
    while frame is not None:
        carried.append(joined(frame))
        answer = server.receive(carried[-1])
        if answer is None:
            break
        carried.append(joined(answer))
        assert client.expects(carried[-1])
        frame = client.receive(carried[-1])
    return carried


def request(message, version: int, correlation_id: int = 7) -> memoryview:
    return joined(encode_request(message, version, correlation_id, "a client"))


def handshake(mechanism: str, version: int = 1) -> memoryview:
    return request(SaslHandshakeRequest(mechanism=mechanism), version)


def token(data: bytes, version: int = 2) -> memoryview:
    return request(SaslAuthenticateRequest(auth_bytes=data), version)


# ---- Client and server together ----------------------------------------------------------------------------


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testSaslUnsupportedClientVersions",
    "SaslAuthenticatorTest.testCorrelationId",
)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_client_and_server_agree_on_who_it_is(clock: VirtualClock, mechanism: str) -> None:
    client, server = client_of(config_of(mechanism), clock), server_of(clock)
    assert (client.is_complete, server.is_complete) == (False, False)
    assert server.begin() is None
    carried = run(client, server, client.begin())
    assert (client.is_complete, server.is_complete) == (True, True)
    assert server.principal == KafkaPrincipal("User", "alice")
    assert client.reauthenticate_at_ms == server.expires_at_ms == math.inf
    headers = [decode_request_header(frame)[0] for frame in carried[::2]]
    assert [header.request_api_key for header in headers][:2] == [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE]
    assert {header.request_api_key for header in headers[2:]} == {ApiKey.SASL_AUTHENTICATE}
    assert [header.correlation_id for header in headers] == list(CORRELATION_IDS[: len(headers)])
    assert {header.client_id for header in headers} == {"a client"}


@pytest.mark.kafka("SaslAuthenticatorTest.testSaslUnsupportedClientVersions")
def test_servers_that_speak_less_are_spoken_to_in_their_versions(clock: VirtualClock) -> None:
    old = SPOKEN | {ApiKey.SASL_AUTHENTICATE: (0, 0)}
    client = client_of(config_of("SCRAM-SHA-256"), clock)
    server = server_of(clock, partial(api_versions, spoken=old), max_reauth_ms={"SCRAM-SHA-256": 1000})
    carried = run(client, server, client.begin())
    assert decode_request_header(carried[-2])[0].request_api_version == 0
    assert client.is_complete
    assert client.reauthenticate_at_ms == math.inf, "version 0 has no session lifetime"
    assert server.expires_at_ms == clock.monotonic_ms() + 1000


@pytest.mark.kafka("SaslAuthenticatorTest.testClientExceptionDoesNotContainSensitiveData")
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "pencil")])
def test_wrong_credentials_are_refused_in_words_that_tell_nothing(
    clock: VirtualClock, mechanism: str, user: str, password: str
) -> None:
    client, server = client_of(config_of(mechanism, user, password), clock), server_of(clock)
    with pytest.raises(SaslAuthenticationFailedError, match="unknown user") as refused:
        run(client, server, client.begin())
    assert server.principal == ANONYMOUS
    assert not server.is_complete
    answer = joined(refused.value.answer)
    _, said = decode_response(answer, SaslAuthenticateRequest, 2)
    assert said.error_code == 58
    assert said.error_message == f"{mechanism} authentication failed: the credentials are not valid"
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        client.receive(answer)
    assert f"the broker rejected the {mechanism} authentication of user '{user}': " in str(caught.value)
    assert password not in str(caught.value)
    assert not client.is_complete
    assert pickle.loads(pickle.dumps(refused.value)).answer == refused.value.answer


def test_failures_wait_as_long_as_the_settings_say(clock: VirtualClock) -> None:
    assert server_of(clock).failure_delay_ms == 100
    assert server_of(clock, failure_delay_ms=2).failure_delay_ms == 2
    assert server_of(clock).max_receive_size == 524_288
    assert client_of(config_of("PLAIN"), clock).failure_delay_ms == 0


@pytest.mark.kafka("SaslAuthenticatorTest.testDisabledMechanism")
def test_mechanism_that_the_server_does_not_have_is_an_error_that_lists_what_it_has(
    clock: VirtualClock,
) -> None:
    server = SaslServerAuthenticator(
        ServerSaslSettings(mechanisms={name: FACTORIES[name] for name in MECHANISMS[:2]}), api_versions, clock
    )
    client = client_of(config_of("SCRAM-SHA-512"), clock)
    with pytest.raises(
        UnsupportedSaslMechanismError, match="requested SASL mechanism 'SCRAM-SHA-512'"
    ) as refused:
        run(client, server, client.begin())
    with pytest.raises(UnsupportedSaslMechanismError, match="it supports 'PLAIN', 'SCRAM-SHA-256'"):
        client.receive(joined(refused.value.answer))
    assert not client.is_complete


@pytest.mark.kafka(
    "SaslAuthenticatorTest.oldSaslPlainPlaintextClientWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslScramPlaintextClientWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslPlainSslClientWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslScramSslClientWithoutSaslAuthenticateHeader",
)
def test_tokens_without_requests_around_them_are_taken_from_old_clients(clock: VirtualClock) -> None:
    server = server_of(clock)
    _, answer = decode_response(joined(server.receive(handshake("PLAIN", 0))), SaslHandshakeRequest, 0)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISMS)
    assert joined(server.receive(memoryview(b"\0alice\0pencil"))) == b""
    assert server.is_complete
    assert server.principal.name == "alice"


@pytest.mark.kafka(
    "SaslAuthenticatorTest.oldSaslPlainPlaintextClientWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslScramPlaintextClientWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslPlainSslClientWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslScramSslClientWithoutSaslAuthenticateHeaderFailure",
)
def test_old_clients_that_fail_are_told_nothing(clock: VirtualClock) -> None:
    server = server_of(clock)
    server.receive(handshake("PLAIN", 0))
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        server.receive(memoryview(b"\0alice\0brush"))
    assert caught.value.answer is None


# ---- Malicious peers ---------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testSaslHandshakeRequestWithUnsupportedVersion",
    "SaslAuthenticatorTest.testDisallowedKafkaRequestsBeforeAuthentication",
)
@pytest.mark.parametrize(
    "frame",
    [
        request(MetadataRequest(), 9),
        token(b"\0alice\0pencil"),
        request(SaslHandshakeRequest(mechanism="PLAIN"), 1)[:-1],
        memoryview(b""),
        memoryview(b"\x00\x11"),
        memoryview(b"GET / HTTP/1.1\r\n"),
        memoryview(b"\x60\x82\x02\x5a\x06\x09\x2a\x86\x48"),
        memoryview(b"\x00\x11\x00\x09" + bytes(20)),
    ],
    ids=["metadata", "token", "cut", "empty", "short", "http", "kerberos", "unknown version"],
)
def test_server_closes_on_whatever_is_not_the_beginning_of_sasl(
    clock: VirtualClock, frame: memoryview
) -> None:
    server = server_of(clock)
    with pytest.raises(IllegalSaslStateError) as caught:
        server.receive(frame)
    assert caught.value.answer is None
    with pytest.raises(IllegalSaslStateError, match="after authentication had ended"):
        server.receive(handshake("PLAIN"))


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidApiVersionsRequestSequence")
@pytest.mark.parametrize(
    "frame", [request(MetadataRequest(), 9), handshake("PLAIN"), request(ApiVersionsRequest(), 0)]
)
def test_server_takes_nothing_but_tokens_after_the_handshake(clock: VirtualClock, frame: memoryview) -> None:
    server = server_of(clock)
    server.receive(handshake("SCRAM-SHA-256"))
    with pytest.raises(IllegalSaslStateError, match="instead of SaslAuthenticate"):
        server.receive(frame)


def test_server_says_only_a_few_times_what_it_speaks(clock: VirtualClock) -> None:
    server = server_of(clock)
    for _ in range(4):
        assert server.receive(request(ApiVersionsRequest(), 0)) is not None
    with pytest.raises(IllegalSaslStateError, match="API_VERSIONS before it had authenticated"):
        server.receive(request(ApiVersionsRequest(), 0))


def test_name_of_a_mechanism_cannot_forge_a_log_line(clock: VirtualClock) -> None:
    with pytest.raises(UnsupportedSaslMechanismError) as caught:
        server_of(clock).receive(handshake("A\nINFO all is well \x1b[2J" + "x" * 10_000))
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


def answers(client: SaslClientAuthenticator, *messages) -> list:
    """Give the client each message as the response to its last request, and return its last frame."""
    frame = client.begin()
    for message in messages:
        header, _ = decode_request(joined(frame))
        frame = client.receive(
            joined(encode_response(message, header.request_api_version, header.correlation_id))
        )
    return frame


def speaks(**versions: int) -> ApiVersionsResponse:
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=ApiKey[name], min_version=0, max_version=highest)
        for name, highest in versions.items()
    ]
    return ApiVersionsResponse(api_keys=keys)


KNOWS_SASL = speaks(SASL_HANDSHAKE=1, SASL_AUTHENTICATE=2)


@pytest.mark.kafka(
    "SaslAuthenticatorTest.oldSaslPlainPlaintextServerWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslScramPlaintextServerWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslPlainSslServerWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslScramSslServerWithoutSaslAuthenticateHeader",
    "SaslAuthenticatorTest.oldSaslPlainPlaintextServerWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslScramPlaintextServerWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslPlainSslServerWithoutSaslAuthenticateHeaderFailure",
    "SaslAuthenticatorTest.oldSaslScramSslServerWithoutSaslAuthenticateHeaderFailure",
)
@pytest.mark.parametrize(
    ("messages", "error", "text"),
    [
        ([ApiVersionsResponse(error_code=35)], IllegalSaslStateError, "UNSUPPORTED_VERSION"),
        ([speaks(METADATA=12)], IllegalSaslStateError, "does not support SASL on this port: use a port"),
        ([speaks(SASL_HANDSHAKE=0)], UnsupportedSaslMechanismError, "older than 1.0"),
        ([speaks(SASL_HANDSHAKE=1)], UnsupportedSaslMechanismError, "older than 1.0"),
        (
            [speaks(SASL_HANDSHAKE=1, SASL_AUTHENTICATE=-1)],
            UnsupportedSaslMechanismError,
            "older than 1.0",
        ),
        (
            [KNOWS_SASL, SaslHandshakeResponse(error_code=34)],
            IllegalSaslStateError,
            "not expect SASL on this port",
        ),
        ([KNOWS_SASL, SaslHandshakeResponse(error_code=33)], UnsupportedSaslMechanismError, "supports none"),
        ([KNOWS_SASL, SaslHandshakeResponse(error_code=-1)], IllegalSaslStateError, "UNKNOWN_SERVER_ERROR"),
        (
            [KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse(error_code=58)],
            SaslAuthenticationFailedError,
            ": 'SASL_AUTHENTICATION_FAILED'",
        ),
        (
            [
                KNOWS_SASL,
                SaslHandshakeResponse(),
                SaslAuthenticateResponse(error_code=34, error_message="a\nb"),
            ],
            IllegalSaslStateError,
            r": 'a\\nb'",
        ),
        (
            [KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse(error_code=7)],
            SaslAuthenticationFailedError,
            "REQUEST_TIMED_OUT",
        ),
        (
            [KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"r=x,s=c2FsdA==,i=1")],
            SaslAuthenticationFailedError,
            "does not extend",
        ),
    ],
)
def test_client_fails_with_a_sentence(clock: VirtualClock, messages, error, text: str) -> None:
    client = client_of(config_of("SCRAM-SHA-256"), clock)
    with pytest.raises(error, match=text) as caught:
        answers(client, *messages)
    assert isinstance(caught.value, AuthenticationFailedError)
    assert not client.is_complete
    assert "pencil" not in str(caught.value)


def test_client_that_has_failed_does_not_go_on(clock: VirtualClock) -> None:
    client = client_of(config_of("PLAIN"), clock)
    with pytest.raises(SaslAuthenticationFailedError):
        answers(client, KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse(error_code=58))
    late = joined(encode_response(SaslAuthenticateResponse(), 2, CORRELATION_IDS[2]))
    with pytest.raises(IllegalSaslStateError, match="unexpected frame"):
        client.receive(late)
    assert not client.is_complete


def test_answer_to_another_question_is_none(clock: VirtualClock) -> None:
    client = client_of(config_of("PLAIN"), clock)
    client.begin()
    with pytest.raises(
        IllegalSaslStateError, match="ApiVersionsRequest has correlation id 5, expected 214748364"
    ):
        client.receive(joined(encode_response(KNOWS_SASL, 0, 5)))


def test_no_mechanism_but_the_configured_one_is_ever_asked_for(clock: VirtualClock) -> None:
    client = client_of(config_of("SCRAM-SHA-512"), clock)
    frame = answers(client, KNOWS_SASL, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    _, sent = decode_request(joined(frame))
    assert sent.auth_bytes.startswith(b"n,,n=alice,r=")


def test_server_that_is_satisfied_before_the_client_is_does_not_get_by(clock: VirtualClock) -> None:
    client = client_of(config_of("SCRAM-SHA-256"), clock)
    with pytest.raises(SaslAuthenticationFailedError):
        answers(client, KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b""))
    assert not client.is_complete


@pytest.mark.parametrize(
    "frame", [b"", b"\x7f", b"\x7f\xff\xff\xf8", b"HTTP/1.1 400 Bad Request", bytes(100)]
)
def test_client_refuses_a_frame_that_is_no_answer(clock: VirtualClock, frame: bytes) -> None:
    client = client_of(config_of("PLAIN"), clock)
    client.begin()
    assert client.expects(memoryview(frame))
    with pytest.raises(IllegalSaslStateError):
        client.receive(memoryview(frame))


def test_client_that_was_answered_takes_nothing_more(clock: VirtualClock) -> None:
    client, server = client_of(config_of("PLAIN"), clock), server_of(clock)
    carried = run(client, server, client.begin())
    assert not client.expects(carried[-1])
    with pytest.raises(IllegalSaslStateError, match="unexpected frame"):
        client.receive(carried[-1])
    with pytest.raises(IllegalSaslStateError, match="after authentication had ended"):
        server.receive(carried[0])


def test_error_of_a_mechanism_of_the_users_own_is_an_error_of_authentication(clock: VirtualClock) -> None:
    class Broken(SaslMechanism):
        name = "BROKEN"

        def step(self, challenge: bytes | None) -> bytes | None:
            raise OSError("the token server is asleep")

    register_sasl_mechanism("BROKEN", lambda config, host: Broken(), overwrite=True)
    client = client_of(config_of("BROKEN"), clock)
    with pytest.raises(SaslAuthenticationFailedError, match="OSError: the token server is asleep"):
        answers(client, KNOWS_SASL, SaslHandshakeResponse())


def test_mechanism_of_the_users_own_that_comes_to_no_end_is_an_error(clock: VirtualClock) -> None:
    class Mute(SaslMechanism):
        name = "MUTE"

        def step(self, challenge: bytes | None) -> bytes | None:
            return None

    register_sasl_mechanism("MUTE", lambda config, host: Mute(), overwrite=True)
    client = client_of(config_of("MUTE"), clock)
    with pytest.raises(SaslAuthenticationFailedError, match="ended before authentication was complete"):
        answers(client, KNOWS_SASL, SaslHandshakeResponse(), SaslAuthenticateResponse())


@pytest.mark.kafka("SaslAuthenticatorTest.testMechanismPluggability")
def test_mechanism_of_the_users_own_is_spoken(clock: VirtualClock) -> None:
    class Own(SaslMechanism):
        name = "OWN"

        def __init__(self, config: SaslConfig, host: str) -> None:
            self.words = [f"I am {config.username}".encode(), f"yes, {host}".encode(), None]

        def step(self, challenge: bytes | None) -> bytes | None:
            said = self.words.pop(0)
            self.is_complete = not self.words
            return said

    register_sasl_mechanism("OWN", Own, overwrite=True)
    with pytest.raises(ValueError, match="overwrite=True"):
        register_sasl_mechanism("OWN", Own)
    client = client_of(config_of("OWN"), clock)
    challenge = SaslAuthenticateResponse(auth_bytes=b"really?")
    frame = answers(client, KNOWS_SASL, SaslHandshakeResponse(), challenge)
    assert decode_request(joined(frame))[1].auth_bytes == b"yes, broker.example"
    client = client_of(config_of("OWN"), clock)
    assert answers(client, KNOWS_SASL, SaslHandshakeResponse(), challenge, challenge) is None
    assert client.is_complete


# ---- Reauthentication --------------------------------------------------------------------------------------


@pytest.fixture
def session(clock: VirtualClock) -> tuple[SaslClientAuthenticator, SaslServerAuthenticator]:
    """Return a client and a server that are authenticated by SCRAM-SHA-256 for ten seconds."""
    client = client_of(config_of("SCRAM-SHA-256"), clock)
    server = server_of(clock, max_reauth_ms=dict.fromkeys(MECHANISMS, 10_000))
    run(client, server, client.begin())
    return client, server


def again(client: SaslClientAuthenticator, server: SaslServerAuthenticator) -> None:
    """Reauthenticate as a channel does."""
    asked = joined(client.begin_reauthentication(None))
    answer = joined(server.begin_reauthentication(asked))
    run(client, server, client.receive(answer))


def test_client_authenticates_again_before_its_session_is_over(clock: VirtualClock, session) -> None:
    client, server = session
    for _ in range(20):
        now = clock.monotonic_ms()
        assert server.expires_at_ms == now + 10_000
        assert now + 8_500 <= client.reauthenticate_at_ms <= now + 9_500
        clock.advance(9_000)
        again(client, server)
        assert (client.is_complete, server.is_complete) == (True, True)
        assert server.principal.name == "alice"


def test_clients_do_not_authenticate_again_all_at_once(clock: VirtualClock) -> None:
    times = set()
    for _ in range(50):
        client, server = (
            client_of(config_of("PLAIN"), clock),
            server_of(clock, max_reauth_ms={"PLAIN": 10_000}),
        )
        run(client, server, client.begin())
        times.add(client.reauthenticate_at_ms)
    assert len(times) > 40


@pytest.mark.kafka("SaslAuthenticatorTest.testConvertListOffsetResponseToSaslHandshakeResponse")
def test_answers_to_earlier_requests_are_told_apart_while_a_client_authenticates_again(session) -> None:
    client, server = session
    asked = joined(client.begin_reauthentication(None))
    assert (client.is_complete, client.reauthenticate_at_ms) == (False, math.inf)
    earlier = memoryview((5).to_bytes(4) + b"an answer")
    assert not client.expects(earlier)
    answer = joined(server.begin_reauthentication(asked))
    assert client.expects(answer)
    following = client.receive(answer)
    assert not client.expects(earlier)
    run(client, server, following)
    assert client.is_complete


@pytest.mark.kafka("SaslAuthenticatorTest.testCannotReauthenticateWithDifferentPrincipal")
def test_other_user_may_not_take_the_connection_over(session) -> None:
    client, server = session
    client._config = config_of("SCRAM-SHA-256", "bob", "brush")
    with pytest.raises(
        SaslAuthenticationFailedError, match="as 'User:bob', but the connection belongs to 'User:alice'"
    ) as refused:
        again(client, server)
    assert server.principal.name == "alice"
    assert not server.is_complete
    with pytest.raises(SaslAuthenticationFailedError, match="or belong to another user"):
        client.receive(joined(refused.value.answer))


@pytest.mark.kafka("SaslAuthenticatorTest.testCannotReauthenticateWithDifferentMechanism")
def test_other_mechanism_may_not_take_the_connection_over(session) -> None:
    client, server = session
    client._config = config_of("PLAIN")
    with pytest.raises(
        UnsupportedSaslMechanismError, match="re-authenticate with 'PLAIN' instead of SCRAM-SHA-256"
    ) as refused:
        again(client, server)
    assert not server.is_complete
    with pytest.raises(UnsupportedSaslMechanismError, match="it supports 'SCRAM-SHA-256'"):
        client.receive(joined(refused.value.answer))


@pytest.mark.kafka("SaslAuthenticatorTest.testCannotReauthenticateAgainFasterThanOneSecond")
def test_nobody_authenticates_again_twice_in_a_second(clock: VirtualClock, session) -> None:
    client, server = session
    again(client, server)
    clock.advance(1_000)
    again(client, server)
    clock.advance(999)
    with pytest.raises(IllegalSaslStateError, match="less than a second") as refused:
        again(client, server)
    assert not server.is_complete
    with pytest.raises(IllegalSaslStateError, match="rejected the re-authentication"):
        client.receive(joined(refused.value.answer))


def test_nobody_authenticates_again_without_need(clock: VirtualClock) -> None:
    client, server = client_of(config_of("PLAIN"), clock), server_of(clock)
    run(client, server, client.begin())
    with pytest.raises(IllegalSaslStateError, match="its session does not expire") as refused:
        again(client, server)
    assert decode_response(joined(refused.value.answer), SaslHandshakeRequest, 1)[1].error_code == 34


def test_password_that_has_changed_ends_the_connection_when_it_authenticates_again(
    clock: VirtualClock,
) -> None:
    users = Users({"alice": "pencil"})
    settings = ServerSaslSettings(
        mechanisms={"PLAIN": partial(PlainServer, users)}, max_reauth_ms={"PLAIN": 5_000}
    )
    client, server = (
        client_of(config_of("PLAIN"), clock),
        SaslServerAuthenticator(settings, api_versions, clock),
    )
    run(client, server, client.begin())
    users.passwords["alice"] = Secret("crayon")
    clock.advance(4_900)
    with pytest.raises(SaslAuthenticationFailedError):
        again(client, server)
    assert not server.is_complete


def test_session_ends_with_what_the_client_showed_if_that_is_earlier(clock: VirtualClock) -> None:
    class Token(PlainServer):
        name = "PLAIN"
        expires_at_ms = clock.wall_ms() + 3_000

    def authenticated(max_reauth_ms: float) -> tuple:
        client = client_of(config_of("PLAIN"), clock)
        settings = ServerSaslSettings(
            mechanisms={"PLAIN": partial(Token, USERS)}, max_reauth_ms={"PLAIN": max_reauth_ms}
        )
        server = SaslServerAuthenticator(settings, api_versions, clock)
        run(client, server, client.begin())
        now = clock.monotonic_ms()
        return server.expires_at_ms - now, 0.85 <= (client.reauthenticate_at_ms - now) / (
            server.expires_at_ms - now
        ) <= 0.95

    assert authenticated(0) == (3_000, True)
    assert authenticated(2_000) == (2_000, True)
    assert authenticated(5_000) == (3_000, True)
