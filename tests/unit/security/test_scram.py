"""SCRAM: client and server together, the examples of the RFCs, other clients, and malicious peers."""

from __future__ import annotations

import base64
import hmac
import tracemalloc
from collections.abc import Callable

import pytest
from aiokafka.conn import ScramAuthenticator
from kafka.net.sasl.scram import ScramClient as KafkaPythonScram
from security.credentials import Users

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.security import Secret
from kafkacore.security.sasl import scram as client_side
from kafkacore.security.sasl.scram import ScramClient, ScramServer
from kafkacore.security.sasl.scram_keys import HASH_NAMES, credential
from kafkacore.security.sasl.scram_messages import (
    MAX_MESSAGE_BYTES,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)
from kafkacore.security.server_mechanism import SaslServerMechanism

MECHANISMS = sorted(HASH_NAMES)
# RFC 7677, section 3.
RFC_USER, RFC_PASSWORD, RFC_NONCE = "user", Secret("pencil"), "rOprNGfwEbeRWgbNEkqO"
RFC_CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange(client, server: SaslServerMechanism) -> None:
    """Exchange messages until both sides are finished."""
    response = client.step(None)
    while response is not None:
        response = client.step(server.step(response))


def proving_client(mechanism: str = "SCRAM-SHA-256") -> tuple[ScramClient, str]:
    """Return a client that waits for the server's first message, and the client's nonce."""
    client = ScramClient(mechanism, "alice", Secret("pencil"))
    first = client.step(None)
    return client, first.decode().rpartition("r=")[2]


@pytest.fixture(scope="module")
def users() -> Users:
    names = ["alice", "a,b=c", "=2C", "=3D,=", "Zoë", "用户", "\N{PILE OF POO}", "a b", "x" * 300]
    return Users({name: f"pässword of {name}, = and more" for name in names})


# ---- Valid exchanges ---------------------------------------------------------------------------------------


def test_client_says_what_rfc_7677_says() -> None:
    client = ScramClient("SCRAM-SHA-256", RFC_USER, RFC_PASSWORD, RFC_NONCE)
    assert client.step(None) == RFC_CLIENT_FIRST
    assert client.step(RFC_SERVER_FIRST) == RFC_CLIENT_FINAL
    assert not client.is_complete
    assert client.step(RFC_SERVER_FINAL) is None
    assert client.is_complete


def test_server_says_what_rfc_7677_says() -> None:
    users = Users({})
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users.credentials["SCRAM-SHA-256", "user"] = credential("SCRAM-SHA-256", RFC_PASSWORD, 4096, salt)
    server = ScramServer("SCRAM-SHA-256", users, RFC_SERVER_NONCE)
    assert server.step(RFC_CLIENT_FIRST) == RFC_SERVER_FIRST
    assert server.step(RFC_CLIENT_FINAL) == RFC_SERVER_FINAL
    assert server.is_complete
    assert str(server.principal) == "User:user"


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testValidSaslScramSha256",
    "SaslAuthenticatorTest.testScramUsernameWithSpecialCharacters",
)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_both_sides_believe_each_other_whatever_the_name(users: Users, mechanism: str) -> None:
    for name, password in users.passwords.items():
        client, server = ScramClient(mechanism, name, password), ScramServer(mechanism, users)
        exchange(client, server)
        assert client.is_complete
        assert server.is_complete
        assert server.authorization_id == name
        assert server.expires_at_ms is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_pythons_client_is_believed(users: Users, mechanism: str) -> None:
    password = users.passwords["alice"].text()
    theirs = KafkaPythonScram("alice", password, mechanism)
    server = ScramServer(mechanism, users)
    theirs.process_server_first_message(server.step(theirs.first_message()))
    theirs.process_server_final_message(server.step(theirs.final_message()))
    assert server.authorization_id == "alice"


@pytest.mark.parametrize("name", ["alice", "a,b=c", "Zoë"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafkas_client_is_believed(users: Users, mechanism: str, name: str) -> None:
    theirs = ScramAuthenticator(
        loop=None,
        sasl_plain_password=users.passwords[name].text(),
        sasl_plain_username=name,
        sasl_mechanism=mechanism,
    )
    server = ScramServer(mechanism, users)
    theirs.process_server_first_message(server.step(theirs.first_message().encode()).decode())
    theirs.process_server_final_message(server.step(theirs.final_message().encode()).decode())
    assert server.authorization_id == name


def test_server_takes_extensions_that_need_not_be_understood(users: Users) -> None:
    server = ScramServer("SCRAM-SHA-256", users)
    assert server.step(b"n,,n=alice,r=abc,x=y,Why=because=so").startswith(b"r=abc")


@pytest.mark.parametrize("header", [b"n,a=alice,", b"y,,", b"y,a=alice,"])
def test_server_takes_every_header_without_channel_binding(header: bytes) -> None:
    # A client with another header.
    users = Users({"alice": "pencil"})
    client, server = (
        ScramClient("SCRAM-SHA-256", "alice", Secret("pencil")),
        ScramServer("SCRAM-SHA-256", users),
    )
    first = client.step(None).removeprefix(b"n,,")
    client._first = client._first._replace(gs2_header=header.decode())
    client.step(server.step(client.step(server.step(header + first))))
    assert client.is_complete
    assert server.authorization_id == "alice"


# ---- Invalid messages to the client ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "iterations", ["0", "-1", "1", "4095", "100001", "1000000000", "9" * 5000, "4096.0", "٤٠٩٦", ""]
)
def test_cve_2026_10143_number_of_iterations_that_no_broker_wants_is_refused_before_it_is_done(
    iterations: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_) -> bytes:
        raise AssertionError("the salted password must not be computed")

    monkeypatch.setattr(client_side, "salted_password", computed)
    client, nonce = proving_client()
    with pytest.raises(SaslAuthenticationFailedError):
        client.step(f"r={nonce}more,s=c2FsdA==,i={iterations}".encode())


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("r={other},s=c2FsdA==,i=4096", "does not extend"),
        ("r={nonce},s=c2FsdA==,i=4096", "does not extend"),
        ("r=,s=c2FsdA==,i=4096", "r= is missing or empty"),
        ("r={nonce} ,s=c2FsdA==,i=4096", "not printable"),
        ("r={nonce}x,s=,i=4096", "s= is missing or empty"),
        ("r={nonce}x,s=c2Fsd,i=4096", "not Base64"),
        ("r={nonce}x,s=c2 sdA==,i=4096", "not Base64"),
        ("r={nonce}x,s=sält,i=4096", "not Base64"),
        ("r={nonce}x,s=" + base64.b64encode(bytes(1 << 20)).decode() + ",i=4096", "more than 16384"),
        ("r={nonce}x,i=4096,s=c2FsdA==", "s= is missing"),
        ("r={nonce}x,s=c2FsdA==", "too few parts"),
        ("m=x,r={nonce}x,s=c2FsdA==,i=4096", "mandatory"),
        ("r={nonce}x,m=x,s=c2FsdA==,i=4096", "mandatory"),
        ("r={nonce}x,s=c2FsdA==,i=4096,m=x", "mandatory"),
        ("r={nonce}x,s=c2FsdA==,i=4096,x", "extension"),
        ("r={nonce}x,s=c2FsdA==,i=4096,x=1,x=2", "extension"),
        ("r={nonce}x,s=c2FsdA==,i=4096\0", "a null byte"),
        ("e=other-error", "too few parts"),
        ("", "too few parts"),
    ],
)
def test_client_refuses_a_first_message_of_the_server(message: str, text: str) -> None:
    client, nonce = proving_client()
    with pytest.raises(SaslAuthenticationFailedError, match=text):
        client.step(message.format(nonce=nonce, other="a" + nonce).encode())
    assert not client.is_complete


def test_client_refuses_a_message_that_is_no_text() -> None:
    client, _ = proving_client()
    with pytest.raises(SaslAuthenticationFailedError, match="not UTF-8 at byte 2"):
        client.step(b"r=\xff\xfe,s=c2FsdA==,i=4096")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"v=" + base64.b64encode(bytes(32)), "may be an impostor"),
        (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95H4=", "impostor"),
        (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "not Base64"),
        (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==", "impostor"),
        (b"v=", "v= is missing or empty"),
        (b"", "v= is missing or empty"),
        (b"x=y", "v= is missing"),
        (b"v=!!!!", "not Base64"),
        (RFC_SERVER_FINAL + b",m=x", "mandatory"),
        (b"m=x," + RFC_SERVER_FINAL, "mandatory"),
        (b"e=invalid-proof", "rejected the client: 'invalid-proof'"),
        (b"e=\xe2\x80\xae\x1b[31mlook", r"rejected the client: '\\u202e\\x1b\[31mlook'"),
        (b"e=" + b"x" * 10_000, "x{100}"),
    ],
)
def test_client_refuses_a_last_message_of_the_server(message: bytes, text: str) -> None:
    client = ScramClient("SCRAM-SHA-256", RFC_USER, RFC_PASSWORD, RFC_NONCE)
    client.step(None)
    client.step(RFC_SERVER_FIRST)
    with pytest.raises(SaslAuthenticationFailedError, match=text) as caught:
        client.step(message)
    assert not client.is_complete
    assert len(str(caught.value)) < 400


def test_client_ends_when_the_server_goes_on() -> None:
    client = ScramClient("SCRAM-SHA-256", RFC_USER, RFC_PASSWORD, RFC_NONCE)
    client.step(None)
    client.step(RFC_SERVER_FIRST)
    client.step(RFC_SERVER_FINAL)
    with pytest.raises(SaslAuthenticationFailedError, match="was complete"):
        client.step(RFC_SERVER_FINAL)


# ---- Invalid messages to the server ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "too few parts"),
        (b"n,,n=alice", "too few parts"),
        (b"n,,n=,r=abc", "n= is missing or empty"),
        (b"n,,n=alice,r=", "r= is missing or empty"),
        (b"n,,r=abc,n=alice", "n= is missing"),
        (b"p=tls-unique,,n=alice,r=abc", "channel binding"),
        (b"x,,n=alice,r=abc", "channel binding"),
        (b"n,alice,n=alice,r=abc", "a= is missing"),
        (b"n,,m=x,n=alice,r=abc", "mandatory"),
        (b"n,,n=alice,r=abc,m=x", "mandatory"),
        (b"n,,n=a=b,r=abc", "not part of =2C or =3D"),
        (b"n,,n=a=2c,r=abc", "not part of =2C or =3D"),
        (b"n,,n=a=,r=abc", "not part of =2C or =3D"),
        (b"n,,n=alice,r=a b", "not printable"),
        ("n,,n=alice,r=é".encode(), "not printable"),
        (b"n,,n=\xff,r=abc", "not UTF-8"),
        (b"n,,n=ali\0ce,r=abc", "a null byte"),
        (b"n,,n=" + b"a" * 20_000 + b",r=abc", "more than 16384"),
        (b"n,,n=alice,r=abc,tokenauth=true", "delegation token"),
    ],
)
def test_server_refuses_a_first_message_of_the_client(users: Users, message: bytes, text: str) -> None:
    server = ScramServer("SCRAM-SHA-256", users)
    with pytest.raises(SaslAuthenticationFailedError, match=text):
        server.step(message)
    assert not server.is_complete


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidPasswordSaslScram")
@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("p=", "p=AAAA", "bytes, not 32"),
        ("p=", "x=y,q=", "p= is missing"),
        (",p=", ",m=x,p=", "mandatory"),
        ("c=biws", "c=eSws", "headers .* differ"),
        ("c=biws", "c=biw", "not Base64"),
        ("r=", "r=x", "wrong nonce"),
        (",p=", "x,p=", "wrong nonce"),
    ],
)
def test_server_refuses_a_last_message_of_the_client(users: Users, old: str, new: str, text: str) -> None:
    client, server = (
        ScramClient("SCRAM-SHA-256", "alice", users.passwords["alice"]),
        ScramServer("SCRAM-SHA-256", users),
    )
    final = client.step(server.step(client.step(None))).decode()
    with pytest.raises(SaslAuthenticationFailedError, match=text):
        server.step(final.replace(old, new, 1).encode())
    assert not server.is_complete


def test_cve_2024_56128_last_message_must_have_exactly_the_servers_nonce(users: Users) -> None:
    # Kafka compared only the end of the nonce, and in earlier versions nothing.
    for change in (
        lambda nonce: "x" + nonce,
        lambda nonce: nonce[1:],
        lambda nonce: nonce[:-1],
        lambda _: "x",
    ):
        client, server = (
            ScramClient("SCRAM-SHA-256", "alice", users.passwords["alice"]),
            ScramServer("SCRAM-SHA-256", users),
        )
        challenge = server.step(client.step(None)).decode()
        nonce, _, rest = challenge.removeprefix("r=").partition(",")
        # The final message of a client that received a nonce other than the server's.
        client._first = client._first._replace(nonce="")
        final = client.step(f"r={change(nonce)},{rest}".encode())
        with pytest.raises(SaslAuthenticationFailedError, match="wrong nonce"):
            server.step(final)


def test_a_servers_challenge_is_answered_once(users: Users) -> None:
    server = ScramServer("SCRAM-SHA-256", users)
    wrong, right = (
        ScramClient("SCRAM-SHA-256", "alice", secret, "n")
        for secret in (Secret("no"), users.passwords["alice"])
    )
    challenge = server.step(wrong.step(None))
    right.step(None)
    with pytest.raises(SaslAuthenticationFailedError, match="wrong password"):
        server.step(wrong.step(challenge))
    with pytest.raises(SaslAuthenticationFailedError, match="was complete"):
        server.step(right.step(challenge))
    assert not server.is_complete


def test_nobody_acts_for_another(users: Users) -> None:
    client, server = (
        ScramClient("SCRAM-SHA-256", "alice", users.passwords["alice"]),
        ScramServer("SCRAM-SHA-256", users),
    )
    first = client.step(None).removeprefix(b"n,,")
    client._first = client._first._replace(gs2_header="n,a=bob,")
    final = client.step(server.step(b"n,a=bob," + first))
    with pytest.raises(SaslAuthenticationFailedError, match="identity of another user"):
        server.step(final)
    assert not server.is_complete


@pytest.mark.kafka("SaslAuthenticatorTest.testUnknownUserSaslScram")
def test_user_that_there_is_not_looks_like_one_with_another_password(users: Users) -> None:
    def refused(name: str) -> tuple[str, str, str]:
        client, server = (
            ScramClient("SCRAM-SHA-512", name, Secret("a guess")),
            ScramServer("SCRAM-SHA-512", users),
        )
        challenge = server.step(client.step(None))
        with pytest.raises(SaslAuthenticationFailedError) as caught:
            server.step(client.step(challenge))
        _, salt, iterations = challenge.decode().split(",")
        return salt, iterations, str(caught.value).replace(name, "")

    known, unknown = refused("alice"), refused("mallory")
    assert known[1:] == unknown[1:]
    assert len(known[0]) == len(unknown[0])
    assert refused("mallory") == unknown, "the salt of an unknown user must not change"
    assert refused("mallory2")[0] != unknown[0]


@pytest.mark.parametrize("verdict", [True, False])
def test_cve_2021_38153_proof_and_signature_are_judged_by_the_comparison_in_constant_time_alone(
    users: Users, monkeypatch: pytest.MonkeyPatch, verdict: bool
) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda left, right: verdict)
    password = Secret("a guess") if verdict else users.passwords["alice"]
    client, server = ScramClient("SCRAM-SHA-256", "alice", password), ScramServer("SCRAM-SHA-256", users)
    final = client.step(server.step(client.step(None)))
    if verdict:
        assert client.step(server.step(final)) is None
        return
    with pytest.raises(SaslAuthenticationFailedError, match="wrong password"):
        server.step(final)
    with pytest.raises(SaslAuthenticationFailedError, match="impostor"):
        client.step(RFC_SERVER_FINAL)


@pytest.mark.parametrize(
    ("parse", "begin"),
    [
        (parse_client_first, b"n,,n=alice,r=x"),
        (parse_server_first, b"r=x,s=AAAA,i=4096"),
        (parse_client_final, b"c=biws,r=x"),
        (parse_server_final, b"v=AAAA"),
    ],
)
def test_message_of_thousands_of_parts_is_refused_before_they_are_there(
    parse: Callable[[bytes], object], begin: bytes
) -> None:
    """Found by the fuzzer in 1.9 million inputs: splitting took 25 times the message's size."""
    message = begin + b",a=b" * ((MAX_MESSAGE_BYTES - len(begin)) // 4)
    tracemalloc.start()
    try:
        with pytest.raises(SaslAuthenticationFailedError, match="more than 100 parts"):
            parse(message)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(message)
    finally:
        tracemalloc.stop()
