"""EmbeddedBroker and the pytest plugin, as the tests of a user's program use them."""

from __future__ import annotations

import itertools
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from interleaving import at_each_step
from model.raw_line import Line

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient
from kafkacore.broker.process.process import BrokerProcess
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, KafkaTimeoutError
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest
from kafkacore.protocol.generated.sasl_handshake import SaslHandshakeRequest
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig
from kafkacore.testing import EmbeddedBroker, FaultProxy

pytest_plugins = ["pytester"]


def test_temporary_folder_goes_with_the_block_and_stays_over_restarts() -> None:
    with EmbeddedBroker(num_partitions=2) as broker:
        folder = broker.data_dir
        (folder / "mine").write_text("kept")
        broker.kill()
        broker.start()
        assert (folder / "mine").read_text() == "kept"
        assert broker.config.num_partitions == 2
        broker.stop()
        assert folder.exists()
    assert not folder.exists()
    broker.close()


def test_is_running_while_another_thread_stops_the_broker(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path)

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        process._process = SimpleNamespace(poll=lambda: None)  # type: ignore[assignment]
        return (lambda: process.is_running), process._take

    assert set(at_each_step(BrokerProcess.is_running.fget, prepare)) == {True, False}


def test_folder_that_was_given_is_kept(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        assert broker.is_running
        assert repr(broker) == f"<EmbeddedBroker running data_dir={str(tmp_path / 'data')!r}>"
    assert repr(broker) == f"<EmbeddedBroker not running data_dir={str(tmp_path / 'data')!r}>"
    assert (tmp_path / "data" / "broker.log").exists()


def test_wrong_configuration_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KafkaConfigurationError):
        EmbeddedBroker(flush="never")
    assert list(tmp_path.iterdir()) == []


def test_broker_ignores_modules_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise ImportError('not the module of the standard library')\n")
    monkeypatch.chdir(tmp_path)
    with EmbeddedBroker() as broker:
        assert broker.is_running


def test_fixture_gives_all_tests_of_a_session_one_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os, socket

        def connects(broker):
            host, port = broker.bootstrap_servers.split(":")
            socket.create_connection((host, int(port)), timeout=10).close()

        def test_first(kafka_broker):
            connects(kafka_broker)
            os.environ["SEEN_PID"] = str(kafka_broker.pid)

        def test_second(kafka_broker):
            connects(kafka_broker)
            assert os.environ["SEEN_PID"] == str(kafka_broker.pid)

        def test_without():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3)


def test_broker_behind_a_proxy_is_reached_through_it_alone() -> None:
    with FaultProxy() as proxy, EmbeddedBroker(advertised_port=proxy.port) as broker:
        proxy.target = broker.bootstrap_servers
        for life in (1, 2):
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                producer.send("through", b"v", partition=0).get(BUDGET_S)
            # The broker's own address, used for the bootstrap, led the client to the proxy.
            assert Counter(seen.api_key for seen in proxy.requests)[0] == life
            assert broker.port != proxy.port
            # After a restart the broker listens on the same port.
            broker.restart()
            assert proxy.target == broker.bootstrap_servers


def test_proxy_fixture_is_whole_again_for_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from kafkacore import KafkaProducer
        from kafkacore.errors import NoBrokersAvailable

        def test_bad(kafka_proxy):
            kafka_proxy.set_refusing()
            with pytest.raises(NoBrokersAvailable):
                KafkaProducer(bootstrap_servers=kafka_proxy.bootstrap_servers, bootstrap_timeout_ms=50)

        def test_good(kafka_proxy):
            with KafkaProducer(bootstrap_servers=kafka_proxy.bootstrap_servers) as producer:
                assert producer.send("t", b"v").get(60).offset == 0
            assert kafka_proxy.counters.connections > 0
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_plugin_loads_nothing_of_the_broker_until_a_test_asks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            assert "kafkacore.testing.plugin" in sys.modules
            assert not [name for name in sys.modules if name.startswith("kafkacore.broker")]
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_secure_broker_says_what_its_clients_need_and_shows_no_password() -> None:
    users = {"alice": "canary = \\ of: alice", "bob": "other"}
    with EmbeddedBroker(security_protocol="SASL_SSL", users=users, flush="os") as broker:
        settings = broker.client_settings("bob")
        assert settings == {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(broker.data_dir / "tls" / "ca.pem"),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "bob",
            "sasl_plain_password": "other",
        }
        command_line = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
        assert b"canary" not in command_line
        with secure_line(broker, "alice") as line:
            assert line.ask(MetadataRequest(topics=[]), 9).brokers
        port = broker.port
        broker.restart()
        assert broker.port == port
        with secure_line(broker, "alice") as line:
            assert line.ask(MetadataRequest(topics=[]), 9).brokers
        assert "canary" not in broker.log_path.read_text() + repr(broker.config)
        with pytest.raises(KafkaConfigurationError, match="no user carol"):
            broker.client_settings("carol")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_client_without_login_is_told_that_one_may_be_wanted(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedBroker(security_protocol=f"SASL_{protocol}", users={"alice": "hers"}, flush="os") as broker:
        settings = {
            name: value for name, value in broker.client_settings().items() if not name.startswith("sasl")
        }
        settings["security_protocol"] = protocol
        # On a slow machine, it takes longer until the broker has closed a connection.
        limits_ms = (500 * 2**doubled for doubled in itertools.count())
        eventually(lambda: has_hint(settings, next(limits_ms)))
        caplog.clear()
        said: list[str] = []
        with KafkaConsumer("anything", **settings, bootstrap_timeout_ms=0) as consumer:
            # Poll until the warning is logged, and then a few more times.
            for _ in range(20):
                assert consumer.poll(timeout_ms=0 if said else 1_000) == {}
                said = [each.levelname for each in caplog.records if "requires a login" in each.message]
        assert said == ["WARNING"]


def has_hint(settings: dict[str, Any], bootstrap_timeout_ms: int) -> bool:
    """Return whether the error of an admin client that does not find the broker suggests a login."""
    with pytest.raises(KafkaTimeoutError) as failed:
        KafkaAdminClient(**settings, bootstrap_timeout_ms=bootstrap_timeout_ms)
    return "if the port requires a login" in str(failed.value)


def secure_line(broker: EmbeddedBroker, user: str) -> Line:
    settings = broker.client_settings(user)
    line = Line(settings["bootstrap_servers"], tls=ssl.create_default_context(cafile=settings["ssl_cafile"]))
    password = Secret(settings["sasl_plain_password"])
    config = SaslConfig(mechanism=settings["sasl_mechanism"], username=user, password=password)
    who = SaslClientAuthenticator(config, "127.0.0.1", "raw", SYSTEM_CLOCK)
    frame = who.begin()
    while frame is not None:
        line.say_bytes(b"".join(frame))
        frame = who.receive(memoryview(line.hear_bytes()))
    return line


def salt_for(broker: EmbeddedBroker, user: str) -> str:
    with Line(broker.bootstrap_servers) as line:
        line.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        answer = line.ask(SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=mine".encode()), 2)
        return bytes(answer.auth_bytes).decode().split(",")[1]


def test_restart_does_not_tell_by_salts_which_users_there_are() -> None:
    with EmbeddedBroker(security_protocol="SASL_PLAINTEXT", users={"alice": "hers"}, flush="os") as broker:
        before = [salt_for(broker, user) for user in ("alice", "mallory")]
        broker.restart()
        assert [salt_for(broker, user) for user in ("alice", "mallory")] == before
        assert before[0] != before[1]


def test_broker_of_several_listeners_comes_back_to_all_its_ports() -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://localhost:0"}
    with EmbeddedBroker(flush="os", **given) as broker:
        before = [broker.client_settings(listener=name) for name in ("PLAINTEXT", "SSL")]
        assert before[1]["security_protocol"] == "SSL"
        broker.restart()
        assert [broker.client_settings(listener=name) for name in ("PLAINTEXT", "SSL")] == before
        with pytest.raises(KafkaConfigurationError, match="no listener OTHER; it has PLAINTEXT, SSL"):
            broker.client_settings(listener="OTHER")
