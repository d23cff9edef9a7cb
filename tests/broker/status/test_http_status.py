"""The status page's server: who is answered with what, and who is not."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkacore import KafkaProducer
from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.run import ready_line
from kafkacore.broker.server import KafkaBroker
from kafkacore.broker.start_errors import BrokerStartError
from kafkacore.broker.status.http_status import MOST_CONNECTIONS
from kafkacore.errors import KafkaConfigurationError

LIMIT_S = 10.0


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
    connection = http.client.HTTPConnection("127.0.0.1", port(broker), timeout=LIMIT_S)
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
    assert "this machine alone" in text


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
    with socket.create_connection(("127.0.0.1", port(broker)), timeout=LIMIT_S) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert ask(broker, "/healthz")[0].status == 200


def test_those_who_say_nothing_are_few_and_keep_nobody_from_stopping(tmp_path: Path) -> None:
    before = threading.active_count()
    with KafkaBroker(BrokerConfig(data_dir=tmp_path, port=0, status_port=0)) as broker:
        silent = [socket.create_connection(("127.0.0.1", port(broker))) for _ in range(MOST_CONNECTIONS)]
        with socket.create_connection(("127.0.0.1", port(broker)), timeout=LIMIT_S) as one_too_many:
            assert one_too_many.recv(1) == b""
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
        producer.send("orders", b"x").get(timeout=LIMIT_S)
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
    broker.request_stop()
    (network,) = [thread for thread in threading.enumerate() if thread.name == "kafka-broker-network"]
    network.join(LIMIT_S)
    answer, text = ask(broker, "/healthz")
    assert (answer.status, text) == (503, "the broker does not answer\n")


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
