"""EmbeddedBroker and the pytest plugin, as a test of somebody's program uses them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kafkacore import KafkaProducer
from kafkacore.errors import KafkaConfigurationError
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


def test_folder_that_was_given_is_kept(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        assert broker.is_running
    assert (tmp_path / "data" / "broker.log").exists()


def test_wrong_configuration_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KafkaConfigurationError):
        EmbeddedBroker(flush="never")
    assert list(tmp_path.iterdir()) == []


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
                producer.send("through", b"v", partition=0).get(20.0)
            # Asked directly where its brokers are, it has led the client to the proxy.
            assert Counter(seen.api_key for seen in proxy.requests)[0] == life
            assert broker.port != proxy.port
            # Started again, it listens where it did.
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
                assert producer.send("t", b"v").get(20).offset == 0
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
