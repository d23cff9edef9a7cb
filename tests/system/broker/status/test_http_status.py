"""The HTTP server of the status page: which requests it answers, and which it rejects."""

from __future__ import annotations

import http.client
import json
import re
import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S
from prometheus_client.parser import text_string_to_metric_families

from kafkacore import KafkaProducer
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.listeners.startup_errors import BrokerStartError
from kafkacore.broker.process.run import ready_line
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.status.http_status import MAX_CONNECTIONS, REQUEST_MS, StatusServer, listen
from kafkacore.errors import KafkaConfigurationError
from kafkacore.testing.clock import VirtualClock


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(BrokerConfig(data_dir=tmp_path / "data", port=0, status_port=0)) as broker:
        yield broker


def port(broker: KafkaBroker) -> int:
    assert broker.status_url is not None
    return int(broker.status_url.rstrip("/").rpartition(":")[2])


def ask(
    broker: KafkaBroker, path: str, method: str = "GET", host: str | None = None
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port(broker), timeout=BUDGET_S)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def status(broker: KafkaBroker) -> dict[str, Any]:
    return json.loads(ask(broker, "/status.json")[1])


def test_page_is_one_document_that_asks_nobody_else_for_anything(broker: KafkaBroker) -> None:
    answer, text = ask(broker, "/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r'(src|href)\s*=\s*(?!"data:,")', text.partition("<script>")[0])
    assert "innerHTML" not in text
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:9092", "", "10.0.0.1"]
)
@pytest.mark.parametrize("path", ["/", "/status.json", "/metrics", "/healthz"])
def test_name_that_is_not_this_machines_gets_nothing(broker: KafkaBroker, host: str, path: str) -> None:
    answer, text = ask(broker, path, host=host)
    assert answer.status == 403
    assert "only for this machine" in text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:80"])
def test_own_names_with_any_port_are_answered(broker: KafkaBroker, host: str) -> None:
    assert ask(broker, "/healthz", host=host)[1] == "ok\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "NONSENSE"])
def test_nothing_but_reading_is_answered(broker: KafkaBroker, method: str) -> None:
    answer, _ = ask(broker, "/", method)
    assert answer.status == 405
    assert "Content-Security-Policy" in answer.headers


def test_head_is_the_answer_without_its_body(broker: KafkaBroker) -> None:
    answer, text = ask(broker, "/", "HEAD")
    assert (answer.status, text) == (200, "")
    assert int(answer.headers["Content-Length"]) > 1000


@pytest.mark.parametrize("path", ["/nowhere", "/../status.json", "/status.json/", "/page.html"])
def test_other_paths_are_not_there(broker: KafkaBroker, path: str) -> None:
    assert ask(broker, path)[0].status == 404


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"x" * 70_000,
        b"\x00\xff\n",
        b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 200 + b"\r\n",
    ],
    ids=range(6),
)
def test_what_is_no_request_is_refused_and_harms_nobody(broker: KafkaBroker, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port(broker)), timeout=BUDGET_S) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert ask(broker, "/healthz")[0].status == 200


class FakeCollector:
    """A collector that answers immediately and counts the samples taken."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.samples = 0

    def snapshot(self) -> dict[str, Any] | None:
        return {"large": "x" * (8 << 20)}

    def is_alive(self) -> bool:
        return True

    def sample(self) -> float:
        self.samples += 1
        return self.clock.monotonic_ms() + 2_000


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def server(clock: VirtualClock) -> Iterator[StatusServer]:
    """Return a server that the test polls in its own thread."""
    server = StatusServer(listen(0), FakeCollector(clock), clock)
    yield server
    server.close()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: StatusServer) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=BUDGET_S)
    # The kernel completes the handshake first. The server accepts the connection in a later poll.
    while client.getsockname() not in {each.address for each in server._connections}:
        server.poll(100)
    return client


def read_until_closed(server: StatusServer, client: socket.socket) -> bytes:
    """Poll the server and return everything it sends until it closes the connection."""
    client.setblocking(False)
    received = b""
    while True:
        server.poll(1)
        try:
            data = client.recv(1 << 20)
        except BlockingIOError:
            continue
        if not data:
            return received
        received += data


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_health_is_answered_beside_a_thousand_slow_connections(
    server: StatusServer, many_descriptors: None
) -> None:
    """Serve a new client while slow connections occupy every slot.

    Sixteen slow connections used to block all other clients for as long as none of their reads timed out.
    """
    slow = [connect(server) for _ in range(1_000)]
    for each in slow[-MAX_CONNECTIONS:]:
        each.send(b"GET / HTTP/1.1\r\n")
    assert server.connection_count == MAX_CONNECTIONS
    client = connect(server)
    client.sendall(HEALTHZ)
    assert read_until_closed(server, client).endswith(b"ok\n")
    for each in (*slow, client):
        each.close()


def test_request_has_one_deadline_however_often_it_says_something(
    server: StatusServer, clock: VirtualClock
) -> None:
    client = connect(server)
    for _ in range(int(REQUEST_MS) // 1_000):
        assert server.connection_count == 1
        client.send(b"a")
        server.poll(100)
        clock.advance(1_000)
    server.poll(0)
    assert server.connection_count == 0
    assert read_until_closed(server, client) == b""
    client.close()


def test_answer_that_is_not_read_is_given_up_at_the_same_deadline(
    server: StatusServer, clock: VirtualClock
) -> None:
    client = connect(server)
    client.sendall(HEALTHZ.replace(b"healthz", b"status.json"))
    (connection,) = server._connections
    while len(connection.answer) in (0, 8 << 20):
        server.poll(100)
    clock.advance(REQUEST_MS - 1)
    server.poll(0)
    assert server.connection_count == 1
    clock.advance(1)
    server.poll(0)
    assert server.connection_count == 0
    client.close()


def test_client_that_closes_at_once_is_forgotten(server: StatusServer) -> None:
    connect(server).close()
    while server.connection_count:
        server.poll(100)


def test_samples_are_taken_when_they_are_due_and_not_with_every_request(
    server: StatusServer, clock: VirtualClock
) -> None:
    collector = server._collector
    assert isinstance(collector, FakeCollector)
    for _ in range(3):
        client = connect(server)
        client.sendall(HEALTHZ)
        read_until_closed(server, client)
        client.close()
    assert collector.samples == 1
    clock.advance(2_000)
    server.poll(0)
    assert collector.samples == 2


def test_silent_connections_keep_nobody_from_stopping(tmp_path: Path) -> None:
    before = threading.active_count()
    with KafkaBroker(BrokerConfig(data_dir=tmp_path, port=0, status_port=0)) as broker:
        silent = [socket.create_connection(("127.0.0.1", port(broker))) for _ in range(20)]
        assert ask(broker, "/healthz")[1] == "ok\n"
    assert threading.active_count() <= before
    for client in silent:
        client.close()


def test_status_counts_what_has_come_and_not_what_was_there(tmp_path: Path) -> None:
    config = BrokerConfig(data_dir=tmp_path, port=0, status_port=0)
    for sent in (5, 3):
        with KafkaBroker(config) as broker:
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop") as producer:
                for _ in range(sent):
                    producer.send("orders", b"x" * 100)
                producer.flush()
                found = status(broker)
            (topic,) = found["topics"]
            assert topic["messages_in"] == found["totals"]["messages_in"] == sent
            assert topic["bytes_in"] == found["totals"]["bytes_in"] > sent * 100
            (client,) = found["clients"]
            assert client["client_id"] == "shop"
            assert client["software"].startswith("kafkacore ")
    assert topic["records"] == topic["partitions"][0]["end"] == 8


def test_metrics_are_what_prometheus_reads(broker: KafkaBroker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("orders", b"x").get(timeout=BUDGET_S)
    answer, text = ask(broker, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["kafka_server_brokertopicmetrics_topic_messagesin_total", "orders"] == 1
    assert samples["kafka_log_log_logendoffset", "orders", "0"] == 1
    assert samples["kafka_network_requestmetrics_requests_total", "Produce"] == 1
    assert samples["kafka_log_logflushstats_logflushtimems_count",] >= 1
    assert samples["process_resident_memory_bytes",] > 1_000_000


def test_broker_that_does_not_answer_is_unhealthy(broker: KafkaBroker) -> None:
    (network,) = [thread for thread in threading.enumerate() if thread.name == "kafka-broker-network"]
    broker.request_stop()
    network.join(BUDGET_S)
    answer, text = ask(broker, "/healthz")
    assert (answer.status, text) == (503, "the broker does not respond\n")


def test_library_shows_nothing_unless_asked(tmp_path: Path) -> None:
    with KafkaBroker(BrokerConfig(data_dir=tmp_path, port=0)) as broker:
        assert broker.status_url is None
        assert "status_url" not in json.loads(ready_line(broker))
        assert "kafka-status" not in {thread.name for thread in threading.enumerate()}


def test_taken_status_port_is_named(tmp_path: Path, broker: KafkaBroker) -> None:
    config = BrokerConfig(data_dir=tmp_path / "other", port=0, status_port=port(broker))
    with pytest.raises(BrokerStartError, match=r"the status page cannot listen on .* --status-port 0"):
        KafkaBroker(config).start()
    with pytest.raises(KafkaConfigurationError, match="between -1 and 65535"):
        BrokerConfig(data_dir=tmp_path, status_port=70000)
