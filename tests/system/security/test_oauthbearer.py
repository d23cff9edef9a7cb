"""OAUTHBEARER in memory: messages, client and server, the cached token, and its source."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from hypothesis import given
from hypothesis import strategies as st
from security.identity_provider import (
    AUDIENCE,
    ISSUER,
    RSA_KEY,
    IdentityProvider,
    claims,
    identity_provider,
    key_set,
    public_jwk,
    signed,
)

from kafkacore.client.bootstrap import bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import (
    KafkaConfigurationError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafkacore.protocol import decode_request_header, encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.https import ALLOWED_URLS, HttpsError, HttpsUnavailableError
from kafkacore.security.sasl import SaslConfig, make_mechanism
from kafkacore.security.sasl.jwks import FILE_LOOK_MS, FileKeys, HttpsKeys, RefreshTimes
from kafkacore.security.sasl.oauth_messages import build_initial_response, parse_initial_response
from kafkacore.security.sasl.oauthbearer import AbstractTokenProvider
from kafkacore.security.sasl.oidc import ClientCredentials
from kafkacore.security.sasl.server_oauthbearer import OAuthBearerServer
from kafkacore.security.sasl.unsecured_tokens import UNSECURED_VALIDATOR, UnsecuredTokenProvider
from kafkacore.security.secret import Secret
from kafkacore.security.server_authenticator import SaslServerAuthenticator, ServerSaslSettings
from kafkacore.testing import VirtualClock

UNSECURED = {"sasl.server.callback.handler.class": UNSECURED_VALIDATOR}
HOUR_MS = 3_600_000.0


class Fixed(AbstractTokenProvider):
    def __init__(self, token: str, **extensions: str) -> None:
        self._token = token
        self._extensions = extensions

    def token(self) -> str:
        return self._token

    def extensions(self) -> Mapping[str, str]:
        return self._extensions


def settings(**given: Any) -> dict[str, Any]:
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"} | given


def prepared(provider: Any) -> SaslConfig:
    return SaslConfig.from_client_config(settings(sasl_oauth_token_provider=provider))


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityProvider]:
    with identity_provider(tmp_path) as one:
        monkeypatch.setenv(ALLOWED_URLS, f"{one.address}/token,{one.address}/keys")
        yield one


def oidc(provider: IdentityProvider, **more: Any) -> dict[str, Any]:
    return {
        "oauthbearer_token_endpoint_url": provider.address + "/token",
        "oauthbearer_client_credentials_client_id": "me",
        "oauthbearer_client_credentials_client_secret": Secret("s:cret+"),
        "oauthbearer_https_cafile": provider.cafile,
    } | more


def test_token_that_goes_in_clear_text_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    given = settings(sasl_oauth_token_provider=Fixed("secret-token"))
    SaslConfig.from_client_config(given | {"security_protocol": "SASL_SSL"})
    assert caplog.records == []
    SaslConfig.from_client_config(given)
    (warned,) = caplog.records
    assert "sends the token unencrypted" in warned.message
    assert "use SASL_SSL" in warned.message
    assert "secret-token" not in caplog.text


# ---- Messages ----------------------------------------------------------------------------------------------
def test_first_message_is_that_of_rfc_7628() -> None:
    message = build_initial_response(Secret("a.b-c_d~=="), {"logicalCluster": "lkc 1", "pool": "x"})
    assert message == b"n,,\x01auth=Bearer a.b-c_d~==\x01logicalCluster=lkc 1\x01pool=x\x01\x01"
    parsed = parse_initial_response(message)
    assert (parsed.token.text(), parsed.authorization_id) == ("a.b-c_d~==", "")
    assert parsed.extensions == {"logicalCluster": "lkc 1", "pool": "x"}


def test_first_message_of_other_clients_is_understood() -> None:
    assert parse_initial_response(b"n,a=al=2Cice=3D,\x01auth=bEARER  t\x01\x01").authorization_id == "al,ice="
    assert parse_initial_response(b"n,,\x01port=9092\x01auth=Bearer t\x01\x01").token.text() == "t"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,\x01auth=Bearer t\x01\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer t\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,a=x=,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01auth=Bearer t",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer t u\x01\x01",
        b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
        b"n,,\x01auth=Bearer t\x01a1=x\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x01\x01",
        b"n,,\x01auth=Bearer t\x01a\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x7f\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"\x01",
    ],
)
def test_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailedError):
        parse_initial_response(message)


@given(st.binary(max_size=100) | st.text(alphabet="n,a=\x01 authBearer.t", max_size=60).map(str.encode))
def test_whatever_the_client_says_the_only_error_is_a_failed_authentication(message: bytes) -> None:
    mechanism = OAuthBearerServer(UNSECURED)()
    try:
        while not mechanism.is_complete:
            mechanism.step(message)
    except SaslAuthenticationFailedError:
        assert not mechanism.is_complete


@pytest.mark.parametrize(
    "extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "x\x01auth=Bearer u"}]
)
def test_extension_that_would_break_the_message_is_not_sent(extensions: dict[str, str]) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="extension"):
        build_initial_response(Secret("t"), extensions)


def test_token_that_would_break_the_message_is_not_sent_nor_shown() -> None:
    with pytest.raises(SaslAuthenticationFailedError) as caught:
        build_initial_response(Secret("canary\x01\x01"), {})
    assert "canary" not in str(caught.value)


# ---- Client and server -------------------------------------------------------------------------------------
@pytest.mark.kafka("SaslAuthenticatorTest.testValidSaslOauthBearerMechanism")
def test_client_and_broker_agree_on_who_it_is_and_until_when() -> None:
    begun_ms = SYSTEM_CLOCK.wall_ms()
    client = make_mechanism(prepared(UnsecuredTokenProvider("alice", lifetime_seconds=600)), "localhost")
    server = OAuthBearerServer(UNSECURED)()
    first = client.step(None)
    assert first is not None
    assert server.step(first) == b""
    assert (server.is_complete, server.authorization_id) == (True, "alice")
    assert server.expires_at_ms is not None
    # The token has its times in whole seconds.
    assert begun_ms - 1_000 < server.expires_at_ms - 600_000 <= SYSTEM_CLOCK.wall_ms()
    assert client.step(b"") is None
    assert client.is_complete


@pytest.mark.kafka("SaslAuthenticatorTest.testInsufficientScopeSaslOauthBearerMechanism")
def test_refused_token_ends_with_the_brokers_word_on_both_sides() -> None:
    client = make_mechanism(prepared(Fixed(signed(claims(1)))), "localhost")
    server = OAuthBearerServer(UNSECURED)()
    first = client.step(None)
    assert first is not None
    error = server.step(first)
    assert json.loads(error) == {"status": "invalid_token"}
    assert client.step(error) == b"\x01"
    with pytest.raises(SaslAuthenticationFailedError, match="the token was rejected: the token is signed"):
        server.step(b"\x01")
    with pytest.raises(
        SaslAuthenticationFailedError, match=r"the broker rejected the token: .*invalid_token"
    ):
        client.step(b"")
    assert not server.is_complete
    assert not client.is_complete


def test_refused_client_gets_no_second_try_on_the_same_exchange() -> None:
    server = OAuthBearerServer(UNSECURED)()
    server.step(b"n,,\x01auth=Bearer bad\x01\x01")
    good = build_initial_response(Secret(UnsecuredTokenProvider("alice").token()), {})
    with pytest.raises(SaslAuthenticationFailedError):
        server.step(good)


def test_authorization_id_must_be_whom_the_token_names() -> None:
    token = UnsecuredTokenProvider("alice").token().encode()
    good = OAuthBearerServer(UNSECURED)()
    good.step(b"n,a=alice,\x01auth=Bearer " + token + b"\x01\x01")
    assert good.is_complete
    with pytest.raises(SaslAuthenticationFailedError, match="not the principal of the token"):
        OAuthBearerServer(UNSECURED)().step(b"n,a=admin,\x01auth=Bearer " + token + b"\x01\x01")


def test_unsecured_tokens_are_believed_only_when_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"OAUTHBEARER needs sasl\.oauthbearer\.jwks"):
        OAuthBearerServer({})
    for name in ("unsecured", "com.example.Handler", UNSECURED_VALIDATOR.rpartition(".")[2]):
        with pytest.raises(KafkaConfigurationError, match="because kafkacore loads no Java class"):
            OAuthBearerServer({"sasl.server.callback.handler.class": name})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": 1}, "expired"),
        ({"iat": 9e9}, "issued in the future"),
        ({"iat": 9e9, "exp": 8e9}, "issued in the future"),
        ({"sub": ""}, "not a valid name"),
        ({"exp": None}, "exp is missing"),
        ({"scope": "a"}, "lacks the scope kafka"),
    ],
)
def test_unsecured_token_must_be_right_in_all_else(changed: dict[str, Any], why: str) -> None:
    body = {"sub": "alice", "exp": SYSTEM_CLOCK.wall_ms() / 1000 + 60, "scope": "kafka"} | changed
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, body)
    ]
    server = OAuthBearerServer(UNSECURED, {"unsecuredValidatorRequiredScope": "kafka"})()
    server.step(b"n,,\x01auth=Bearer " + b".".join([*parts, b""]) + b"\x01\x01")
    with pytest.raises(SaslAuthenticationFailedError, match=why):
        server.step(b"\x01")


@pytest.mark.parametrize(("algorithm", "signature"), [("none", "AAAA"), ("RS256", "")])
def test_unsecured_means_neither_algorithm_nor_signature(algorithm: str, signature: str) -> None:
    body = {"sub": "alice", "exp": SYSTEM_CLOCK.wall_ms() / 1000 + 60}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": algorithm}, body)
    ]
    server = OAuthBearerServer(UNSECURED)()
    server.step(build_initial_response(Secret(".".join([*parts, signature])), {}))
    with pytest.raises(SaslAuthenticationFailedError, match="the token is signed"):
        server.step(b"\x01")


def test_signed_token_is_believed_by_the_keys_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "the keys.json"
    path.write_bytes(key_set(public_jwk(RSA_KEY, "1")))
    monkeypatch.setenv(ALLOWED_URLS, path.as_uri())
    server = OAuthBearerServer(
        {
            "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
    )
    mechanism = server()
    token = signed(claims(SYSTEM_CLOCK.wall_ms() // 1000))
    assert mechanism.step(build_initial_response(Secret(token), {})) == b""
    assert mechanism.authorization_id == "alice"
    server.close()


# ---- A client's settings -----------------------------------------------------------------------------------
@pytest.mark.kafka("SaslAuthenticatorTest.testValidSaslOauthBearerMechanismWithoutServerTokens")
@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({}, "needs sasl_oauth_token_provider or"),
        ({"sasl_oauth_token_provider": "token"}, "must have a method token"),
        ({"sasl_oauth_token_provider": Fixed(b"x")}, r"token\(\) must return a str"),  # type: ignore[arg-type]
        ({"sasl_oauth_token_provider": Fixed("")}, r"token\(\) must return a str"),
        (
            {
                "sasl_oauth_token_provider": Fixed("t"),
                "sasl_oauthbearer_token_endpoint_url": "https://x.example/",
            },
            "leave one of them out",
        ),
        ({"sasl_oauthbearer_token_endpoint_url": "file:///etc/passwd"}, "must begin with https://"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://idp.example/"}, "is not allowed in this process"),
    ],
)
def test_setting_that_cannot_be_says_what_to_change(given_settings: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=message):
        SaslConfig.from_client_config(settings(**given_settings))


@pytest.mark.kafka("SaslAuthenticatorTest.testValidSaslOauthBearerMechanismWithoutServerTokens")
def test_providers_own_error_reaches_who_makes_the_client() -> None:
    class Broken(AbstractTokenProvider):
        def token(self) -> str:
            raise RuntimeError("no vault here")

    with pytest.raises(RuntimeError, match="no vault here"):
        prepared(Broken())


def test_kafka_pythons_provider_is_taken_with_its_extensions() -> None:
    from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythons

    class Theirs(KafkaPythons):  # type: ignore[misc]
        def token(self) -> str:
            return "opaque"

        def extensions(self) -> dict[str, str]:
            return {"pool": "x"}

    first = make_mechanism(prepared(Theirs()), "localhost").step(None)
    assert first == b"n,,\x01auth=Bearer opaque\x01pool=x\x01\x01"


def test_neither_token_nor_secret_is_shown_by_the_settings(provider: IdentityProvider) -> None:
    provider.will_answer({"access_token": "canary-token"})
    config = SaslConfig.from_client_config(
        settings(**{f"sasl_{name}": value for name, value in oidc(provider).items()})
    )
    assert "canary" not in repr(config)
    assert "cret+" not in repr(config)
    assert b"canary-token" in (make_mechanism(config, "localhost").step(None) or b"")


# ---- Client credentials ------------------------------------------------------------------------------------
def credentials(provider: IdentityProvider, **more: Any) -> ClientCredentials:
    return ClientCredentials(SaslConfig(mechanism="OAUTHBEARER", **oidc(provider, **more)), SYSTEM_CLOCK)


def test_client_credentials_are_asked_for_as_java_does(provider: IdentityProvider) -> None:
    provider.will_answer({"access_token": " t.o.k ", "expires_in": 60})
    token = credentials(provider, oauthbearer_scope=" kafka read ").retrieve()
    assert token.value.text() == "t.o.k"
    assert token.expires_at_ms is not None
    assert token.started_at_ms is not None
    assert token.expires_at_ms - token.started_at_ms == 60_000.0
    [asked] = provider.asked
    assert (asked.method, asked.path) == ("POST", "/token")
    assert asked.body == b"grant_type=client_credentials&scope=kafka+read"
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked.headers["Authorization"] == "Basic " + base64.b64encode(b"me:s:cret+").decode()


def test_credentials_are_quoted_when_asked_for(provider: IdentityProvider) -> None:
    provider.will_answer({"access_token": "t"})
    credentials(provider, oauthbearer_header_urlencode=True).retrieve()
    assert base64.b64decode(provider.asked[0].headers["Authorization"][6:]) == b"me:s%3Acret%2B"


def test_trouble_of_the_endpoint_is_waited_out_and_a_refusal_is_not(provider: IdentityProvider) -> None:
    for status in (500, 503, 429):
        provider.will_answer({"error": "later"}, status)
    provider.will_answer({"access_token": "t"})
    assert credentials(provider, login_retry_backoff_ms=1.0).retrieve().value.text() == "t"
    assert len(provider.asked) == 4
    provider.answers.clear()
    provider.will_answer({"error": "invalid_client"}, 401)
    with pytest.raises(HttpsError, match=r"answered 401: .*invalid_client"):
        credentials(provider, login_retry_backoff_ms=1.0).retrieve()
    assert len(provider.asked) == 5


def test_trouble_that_does_not_pass_is_told_after_the_longest_back_off(provider: IdentityProvider) -> None:
    provider.will_answer({}, 503)
    settings = oidc(provider, login_retry_backoff_ms=100.0, login_retry_backoff_max_ms=1_000.0)
    clock = VirtualClock()
    with pytest.raises(HttpsUnavailableError, match="answered 503"):
        ClientCredentials(SaslConfig(mechanism="OAUTHBEARER", **settings), clock).retrieve()
    # The attempts are at 0, 100, 300, 700 and 1000 ms.
    assert len(provider.asked) == 5
    assert clock.monotonic_ms() == VirtualClock().monotonic_ms() + 1_000.0


@pytest.mark.parametrize(
    "answer", [b"", b"token", b"[]", {}, {"access_token": 7}, {"access_token": " "}, b"[" * 20_000, b"\xff"]
)
def test_answer_without_a_token_is_an_error_that_says_so(provider: IdentityProvider, answer: Any) -> None:
    provider.will_answer(answer)
    with pytest.raises(HttpsError, match="the response of https"):
        credentials(provider).retrieve()


@pytest.mark.parametrize("missing", ["client_id", "client_secret"])
def test_missing_credential_is_named(provider: IdentityProvider, missing: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=f"sasl_oauthbearer_client_credentials_{missing}"):
        credentials(provider, **{f"oauthbearer_client_credentials_{missing}": None})
    assert provider.asked == []


# ---- The broker's keys -------------------------------------------------------------------------------------
def test_changed_file_of_keys_is_read_and_a_broken_one_is_not_believed(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(public_jwk(RSA_KEY, "1")))
    keys = FileKeys(path, clock)
    assert keys.key("1") is not None
    path.write_bytes(key_set(public_jwk(RSA_KEY, "22")))
    assert keys.key("22") is None, "the file was read again too soon"
    clock.advance(FILE_LOOK_MS)
    assert keys.key("22") is not None
    assert keys.key("1") is None
    for breaks in (lambda: path.write_bytes(b"{"), path.unlink):
        breaks()
        clock.advance(FILE_LOOK_MS)
        assert keys.key("22") is not None


def test_missing_file_of_keys_stops_the_broker(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"jwks\.endpoint\.url: .*No such file"):
        FileKeys(tmp_path / "none", VirtualClock())


def test_key_that_is_not_there_yet_has_the_set_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacore.security.sasl.jwks.MIN_EXPEDITED_MS", HOUR_MS)
    sets = [key_set(public_jwk(RSA_KEY, "1")), key_set(public_jwk(RSA_KEY, "2"))]
    fetched: list[int] = []

    def get() -> bytes:
        fetched.append(1)
        return sets[min(len(fetched), len(sets)) - 1]

    keys = HttpsKeys(get, "test", RefreshTimes(), SYSTEM_CLOCK)
    assert keys.key("1") is not None
    assert keys.key("2") is None
    assert len(fetched) == 1, "the keys were fetched again too soon"
    monkeypatch.setattr("kafkacore.security.sasl.jwks.MIN_EXPEDITED_MS", 0.0)
    assert keys.key("2") is None
    eventually(lambda: keys.key("2") is not None)
    monkeypatch.setattr("kafkacore.security.sasl.jwks.MIN_EXPEDITED_MS", HOUR_MS)
    for stranger in range(2000):
        keys.key(f"stranger {stranger}")
    assert len(fetched) == 2
    keys.close()


def test_ids_of_strangers_are_neither_asked_for_twice_nor_kept_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkacore.security.sasl.jwks.MIN_EXPEDITED_MS", 0.0)
    fetched: list[int] = []

    def get() -> bytes:
        fetched.append(1)
        return key_set(public_jwk(RSA_KEY, "1"))

    keys = HttpsKeys(get, "test", RefreshTimes(), SYSTEM_CLOCK)
    keys.key("stranger")
    eventually(lambda: len(fetched) == 2)
    for _ in range(100):
        keys.key("stranger")
        keys.key("x" * 5000)
    assert keys._missing.keys() == {"stranger"}
    assert not keys._wanted
    keys.close()
    for stranger in range(2000):
        keys.key(f"stranger {stranger}")
    assert len(keys._missing) == 1000


def test_set_that_cannot_be_fetched_leaves_the_old_one(provider: IdentityProvider) -> None:
    provider.will_answer(key_set(public_jwk(RSA_KEY, "1")))
    config = {
        "sasl.oauthbearer.jwks.endpoint.url": provider.address + "/keys",
        "sasl.oauthbearer.jwks.endpoint.cafile": provider.cafile,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    server = OAuthBearerServer(config)
    keys = server._validator._keys  # type: ignore[attr-defined]
    provider.answers.clear()
    provider.will_answer({}, 500)
    assert [keys.refresh() for _ in range(3)] == [100.0, 200.0, 400.0]
    assert [keys.refresh() for _ in range(50)][-1] == 10_000.0
    mechanism = server()
    token = signed(claims(SYSTEM_CLOCK.wall_ms() // 1000))
    assert mechanism.step(build_initial_response(Secret(token), {})) == b""
    server.close()
    with pytest.raises(KafkaError, match="answered 500"):
        OAuthBearerServer(config)


def test_kafka_pythons_client_is_believed_and_told_why_not() -> None:
    from kafka.net.sasl.oauth import SaslMechanismOAuth
    from model.tokens import TokenOf

    client = SaslMechanismOAuth(sasl_oauth_token_provider=TokenOf("alice"))
    server = OAuthBearerServer(UNSECURED)()
    client.receive(server.step(client.auth_bytes()))
    assert client.is_authenticated()
    assert server.authorization_id == "alice"
    expired = SaslMechanismOAuth(sasl_oauth_token_provider=TokenOf("alice", lifetime_s=-5.0))
    server = OAuthBearerServer(UNSECURED)()
    expired.receive(server.step(expired.auth_bytes()))
    assert not expired.is_authenticated()
    with pytest.raises(SaslAuthenticationFailedError, match="expired"):
        server.step(expired.auth_bytes())


# ---- In a client -------------------------------------------------------------------------------------------
def test_closed_client_refreshes_no_token() -> None:
    """Stop refreshing when the client closes, although its token cache is still referenced."""
    given_settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": UnsecuredTokenProvider("alice"),
    }
    client, _ = bootstrap_client(resolve({}, given_settings), SYSTEM_CLOCK)
    builder = client._builder
    assert builder is not None
    with socket.socket() as sock:
        _, authenticator = builder.build(sock, "localhost")
    tokens = authenticator._config.login
    tokens.token()
    thread = tokens._thread
    assert thread.is_alive()
    client.close()
    thread.join(BUDGET_S)
    assert not thread.is_alive()


def test_client_tells_what_the_broker_said_of_the_token_before_it_said_no_more() -> None:
    clock = VirtualClock(SYSTEM_CLOCK.wall_ms())
    client = SaslClientAuthenticator(prepared(Fixed(signed(claims(1)))), "localhost", "me", clock)
    spoken = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=highest)
        for key, highest in ((17, 1), (36, 2))
    ]
    server = SaslServerAuthenticator(
        ServerSaslSettings(mechanisms={"OAUTHBEARER": OAuthBearerServer(UNSECURED)}),
        lambda payload: encode_response(
            ApiVersionsResponse(api_keys=spoken), 0, decode_request_header(payload)[0].correlation_id
        ),
        clock,
    )

    def talk(frame: Any) -> None:
        while frame is not None:
            try:
                answer = server.receive(memoryview(b"".join(frame)))
            except SaslAuthenticationFailedError as error:
                answer = error.answer
            assert answer is not None
            frame = client.receive(memoryview(b"".join(answer)))

    with pytest.raises(
        SaslAuthenticationFailedError, match=r"not valid.*the broker's last challenge was .*invalid_token"
    ):
        talk(client.begin())
