"""Listeners of a running broker over real sockets: TLS, SASL, principals, session expiry and limits."""

from __future__ import annotations

import math
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S
from model.certificates import Authority, der
from model.raw_line import Line

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers.services import Request
from kafkacore.broker.listeners.own_certificate import authority_path
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import AuthenticationFailedError, IllegalSaslStateError, InvalidRequestError
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest
from kafkacore.security import ANONYMOUS, KafkaPrincipal, Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig
from kafkacore.structs import INT32_MAX
from kafkacore.testing import VirtualClock

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Running:
    """A broker that records the principal of each request, and connections to it."""

    def __init__(self, folder: Path, node_count: int = 1, **config: Any) -> None:
        self.principals: list[KafkaPrincipal] = []
        given = {"data.dir": folder, "flush": "os", "self.made.certificate": "true", **config}
        self.broker = KafkaBroker(
            BrokerConfig.from_properties(given), node_count=node_count, interceptor=self._note
        )

    def _note(self, request: Request, serve: Callable[[Request], None]) -> None:
        if request.api_key != ApiVersionsRequest.API_KEY:
            self.principals.append(request.context.principal)
        serve(request)

    @property
    def server(self) -> Any:
        return self.broker._server

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(authority_path(self.broker.config.data_dir)))

    def line(self, listener: str | None = None, tls: ssl.SSLContext | None = None) -> Line:
        addresses = self.broker.addresses()
        return Line(addresses[listener or next(iter(addresses))], tls=tls)


@contextmanager
def running(folder: Path, **config: Any) -> Iterator[Running]:
    made = Running(folder, **config)
    with made.broker:
        yield made


@pytest.fixture
def sasl(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, security_protocol="SASL_PLAINTEXT", port=0, users=USERS) as made:
        yield made


def client(
    mechanism: str = "SCRAM-SHA-256", user: str = "alice", password: str = ""
) -> SaslClientAuthenticator:
    config = SaslConfig(
        mechanism=mechanism,
        username=user,
        password=Secret(password or USERS[user]),
        allow_plain_over_plaintext=True,
    )
    return SaslClientAuthenticator(config, "127.0.0.1", "raw", SYSTEM_CLOCK)


def talk(line: Line, who: SaslClientAuthenticator, frame: Any) -> SaslClientAuthenticator:
    while frame is not None:
        line.say_bytes(b"".join(frame))
        frame = who.receive(memoryview(line.hear_bytes()))
    assert who.is_complete
    return who


def log_in(line: Line, **settings: str) -> SaslClientAuthenticator:
    who = client(**settings)
    return talk(line, who, who.begin())


def is_hung_up(line: Line) -> bool:
    try:
        return not line._socket.recv(1)
    except ConnectionResetError:
        return True


def nodes_of(line: Line) -> list[tuple[str, int]]:
    return [(node.host, node.port) for node in line.ask(MetadataRequest(topics=[]), 9).brokers]


# ---- Principals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_client_is_who_has_logged_in(tmp_path: Path, protocol: str, mechanism: str) -> None:
    given = {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "users": USERS}
    with running(tmp_path, security_protocol=protocol, port=0, **given) as made:
        with made.line(tls=made.tls() if protocol == "SASL_SSL" else None) as line:
            log_in(line, mechanism=mechanism, user="bob")
            nodes_of(line)
            (context,) = made.broker.call(made.server.contexts)
        assert made.principals == [KafkaPrincipal.user("bob")]
        assert (context.principal, context.security_protocol) == (KafkaPrincipal.user("bob"), protocol)


def test_wrong_password_is_answered_and_ends_the_connection(sasl: Running) -> None:
    with sasl.line() as line:
        with pytest.raises(AuthenticationFailedError, match="credentials"):
            log_in(line, password="wrong")
        assert is_hung_up(line)
    assert sasl.broker.call(lambda: sasl.server.failed_authentication_count) == 1
    assert sasl.principals == []


def test_nothing_is_served_before_authentication(sasl: Running) -> None:
    with sasl.line() as line:
        assert line.ask(ApiVersionsRequest(), 0).error_code == 0
        line.say(MetadataRequest(topics=[]), 1)
        assert is_hung_up(line)
    assert sasl.principals == []


def test_frame_before_authentication_may_not_be_large(sasl: Running) -> None:
    with sasl.line() as line:
        line._socket.sendall(struct.pack(">i", 600_000) + b"\0\x12\0\0")
        assert is_hung_up(line)


def test_jaas_users_are_plains_and_mechanisms_are_those_that_are_enabled(tmp_path: Path) -> None:
    given = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        "listener.name.outside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.outside.plain.sasl.jaas.config": "x.PlainLoginModule required user_carol=pw;",
    }
    with running(tmp_path, **given) as made:
        with made.line("OUTSIDE") as line:
            log_in(line, mechanism="PLAIN", user="carol", password="pw")
        with made.line("OUTSIDE") as line:
            offered = line.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
            assert offered.mechanisms == ["PLAIN"]
        with made.line("INSIDE") as line:
            refused = line.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert refused.error_code == IllegalSaslStateError.errno
            nodes_of(line)
        assert made.principals[-1] == ANONYMOUS


def test_client_with_a_certificate_is_whom_the_rules_make_of_it(tmp_path: Path) -> None:
    authority = Authority()
    given = {
        "ssl.client.auth": "required",
        "ssl.truststore.location": authority.write(tmp_path),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/U,DEFAULT",
    }
    with running(tmp_path / "data", security_protocol="SSL", port=0, **given) as made:
        theirs = made.tls()
        theirs.load_cert_chain(authority.issue("alice", ()).write(tmp_path, "alice").both)
        with made.line(tls=theirs) as line:
            nodes_of(line)
        assert made.principals == [KafkaPrincipal.user("ALICE")]
        with (
            pytest.raises((ssl.SSLError, AssertionError, ConnectionError)),
            made.line(tls=made.tls()) as line,
        ):
            nodes_of(line)
        assert len(made.principals) == 1


def test_certificate_that_no_rule_is_for_is_nobodys(tmp_path: Path) -> None:
    authority = Authority()
    given = {
        "ssl.client.auth": "required",
        "ssl.truststore.location": authority.write(tmp_path),
        "ssl.principal.mapping.rules": "RULE:^UID=(.*?)$/$1/",
    }
    with running(tmp_path / "data", security_protocol="SSL", port=0, **given) as made:
        theirs = made.tls()
        theirs.load_cert_chain(authority.issue("alice", ()).write(tmp_path, "alice").both)
        with made.line(tls=theirs) as line:
            line.say(MetadataRequest(topics=[]), 9)
            assert is_hung_up(line)
        assert made.principals == []


def test_certificate_whose_subject_nobody_can_read_ends_its_own_connection_alone(tmp_path: Path) -> None:
    authority = Authority()
    given = {"ssl.client.auth": "required", "ssl.truststore.location": authority.write(tmp_path)}
    alice = authority.issue("alice", ()).write(tmp_path, "alice").both
    # OpenSSL accepts this subject: a SET of indefinite length, which ends with two zero bytes.
    named = der(0x30, der(0x06, bytes.fromhex("550403")) + der(0x0C, b"mallory"))
    mallory = tmp_path / "mallory.pem"
    mallory.write_bytes(b"".join(authority.sign_subject(der(0x30, b"\x31\x80" + named + b"\0\0"))))
    with running(tmp_path / "data", security_protocol="SSL", port=0, **given) as made:
        for certificate, is_refused in ((str(mallory), True), (alice, False)):
            theirs = made.tls()
            theirs.load_cert_chain(certificate)
            with made.line(tls=theirs) as line:
                line.say(MetadataRequest(topics=[]), 9)
                assert is_hung_up(line) is is_refused
        assert made.principals == [KafkaPrincipal.user("CN=alice")]
        assert made.broker.call(lambda: made.server.failed_authentication_count) == 1


# ---- Advertised addresses ---------------------------------------------------------------------------------


def test_client_is_told_the_addresses_of_its_own_listener(tmp_path: Path) -> None:
    given = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SSL",
        "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        "auto.create.topics.enable": "true",
    }
    with running(tmp_path, node_count=2, **given) as made:
        known = made.broker.call(lambda: made.broker.services.cluster.nodes())  # type: ignore[union-attr]
        for name, host, tls in (("INSIDE", "127.0.0.1", None), ("OUTSIDE", "localhost", made.tls())):
            expected = [
                (n.advertised_host, n.advertised_port)
                for node in known
                for n in node.listeners
                if n.name == name
            ]
            assert [each[0] for each in expected] == [host, host]
            with made.line(name, tls) as line:
                assert nodes_of(line) == expected
                brokers = line.ask(DescribeClusterRequest(), 0).brokers
                assert [(each.host, each.port) for each in brokers] == expected
                found = line.ask(FindCoordinatorRequest(key="g", key_type=0), 1)
                assert (found.host, found.port) in expected


def test_virtual_node_comes_back_to_the_ports_of_all_its_listeners(tmp_path: Path) -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    with running(tmp_path, node_count=2, **given) as made:
        node = made.broker.call(lambda: made.broker.services.cluster.known_node(2))  # type: ignore[union-attr]
        made.broker.call(lambda: made.broker.stop_node(2))
        made.broker.call(lambda: made.broker.start_node(2))
        for listener in node.listeners:
            tls = made.tls() if listener.name == "SSL" else None
            with Line(f"127.0.0.1:{listener.port}", tls=tls) as line:
                assert len(nodes_of(line)) == 2


# ---- Sessions --------------------------------------------------------------------------------------------


def test_session_is_renewed_on_the_same_connection(tmp_path: Path) -> None:
    given = {"connections.max.reauth.ms": "60000", "users": USERS}
    with running(tmp_path, security_protocol="SASL_PLAINTEXT", port=0, **given) as made, made.line() as line:
        who = log_in(line)
        assert who.reauthenticate_at_ms < math.inf
        nodes_of(line)
        talk(line, who, who.begin_reauthentication(None))
        nodes_of(line)
        assert made.principals == [KafkaPrincipal.user("alice")] * 2


def test_session_that_is_over_ends_the_connection_at_its_next_request(tmp_path: Path) -> None:
    given = {"connections.max.reauth.ms": "1", "users": USERS}
    with running(tmp_path, security_protocol="SASL_PLAINTEXT", port=0, **given) as made, made.line() as line:
        log_in(line)
        SYSTEM_CLOCK.sleep_ms(5)
        line.say(MetadataRequest(topics=[]), 9)
        assert is_hung_up(line)
        assert made.broker.call(lambda: made.server.expired_count) == 1
        assert made.principals == []


def test_request_behind_a_handshake_that_is_not_answered_ends_the_connection(tmp_path: Path) -> None:
    given = {"connections.max.reauth.ms": "60000", "users": USERS}
    with running(tmp_path, security_protocol="SASL_PLAINTEXT", port=0, **given) as made, made.line() as line:
        log_in(line)
        nodes_of(line)
        line.say(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        line.say(MetadataRequest(topics=[]), 9)
        # The response to the handshake may arrive. The broker must not answer the Metadata request.
        received = 0
        while not is_hung_up(line):
            received += 1
        assert received < 100
        assert len(made.principals) == 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "no-such-mechanism"])
@pytest.mark.parametrize("before", [0, 1])
def test_request_in_one_piece_with_a_handshake_is_not_handled(
    tmp_path: Path, mechanism: str, before: int
) -> None:
    given = {"connections.max.reauth.ms": "60000", "users": USERS}
    asked = [(MetadataRequest(topics=[]), 9), (SaslHandshakeRequest(mechanism=mechanism), 1)]
    with running(tmp_path, security_protocol="SASL_PLAINTEXT", port=0, **given) as made, made.line() as line:
        log_in(line)
        line.say_at_once([*asked[1 - before :], asked[0]])
        while not is_hung_up(line):
            pass
        assert len(made.principals) == before


# ---- Limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_client_that_does_not_come_to_the_point_is_closed(tmp_path: Path, protocol: str) -> None:
    given = {"connection.setup.timeout.ms": "300"} | ({"users": USERS} if "SASL" in protocol else {})
    with running(tmp_path, security_protocol=protocol, port=0, **given) as made, made.line() as slow:
        # These bytes can begin a TLS handshake or a request, so the broker waits for more. If they arrive
        # late, the broker has not read them when it closes the connection, and the client sees a reset.
        slow._socket.sendall(b"\x16\x03\x01" if "SSL" in protocol else b"\0\0\0")
        assert is_hung_up(slow)


def test_plaintext_to_a_tls_listener_is_told_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, security_protocol="SSL", port=0) as made, made.line() as line:
        line.say(ApiVersionsRequest(), 0)
        # The broker answers with a TLS alert, from which the client sees that the port uses TLS.
        assert line._socket.recv(7) == bytes([21, 3, 3, 0, 2, 2, 10])
        assert is_hung_up(line)
    assert "set the client's security.protocol to SSL" in caplog.text


def test_certificate_that_is_changed_while_the_broker_runs_is_shown_to_the_next_client(
    tmp_path: Path,
) -> None:
    authority, clock = Authority(), VirtualClock()
    path = authority.issue("first").write(tmp_path, "server").both
    given = {"port": 0, "security.protocol": "SSL", "ssl.keystore.location": path}
    # The log's threads advance this clock while they wait.
    given |= {"data.dir": tmp_path / "d", "connection.setup.timeout.ms": INT32_MAX}
    config = BrokerConfig.from_properties(given)
    theirs = ssl.create_default_context(cafile=authority.write(tmp_path))
    with KafkaBroker(config, clock=clock) as broker:
        assert _shown(broker, theirs) == "first"
        authority.issue("second").write(tmp_path, "server")
        clock.advance(1_000)
        assert _shown(broker, theirs) == "second"


def test_key_store_is_changed_by_a_request_or_not_at_all(tmp_path: Path) -> None:
    authority = Authority()
    first = authority.issue("first").write(tmp_path, "first").both
    second = authority.issue("second").write(tmp_path, "second").both
    theirs = ssl.create_default_context(cafile=authority.write(tmp_path))
    shape = IncrementalAlterConfigsRequest

    def alter(path: str) -> int:
        config = shape.AlterableConfig(
            name="listener.name.ssl.ssl.keystore.location", config_operation=0, value=path
        )
        resource = shape.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        with made.line(tls=theirs) as line:
            return int(line.ask(shape(resources=[resource]), 1).responses[0].error_code)

    given = {"security_protocol": "SSL", "port": 0, "ssl.keystore.location": first}
    with running(tmp_path / "d", **given) as made:
        assert alter("/nowhere.pem") == InvalidRequestError.errno
        assert _shown(made.broker, theirs) == "first"
        assert alter(second) == 0
        assert _shown(made.broker, theirs) == "second"
    with running(tmp_path / "d", **given) as made:
        assert _shown(made.broker, theirs) == "second"


def _shown(broker: KafkaBroker, context: ssl.SSLContext) -> str:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with (
        socket.create_connection((host, int(port)), BUDGET_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        certificate = secured.getpeercert()
    assert certificate is not None
    return dict(part[0] for part in certificate["subject"])["commonName"]  # type: ignore[misc, index]
