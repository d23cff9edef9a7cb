"""docs/troubleshooting.md quotes the messages that users get."""

from __future__ import annotations

import logging
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.testing import EmbeddedBroker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
ORDERS = TopicPartition("orders", 0)
#: No broker listens at this address.
CLOSED = "127.0.0.1:1"

Provoke = Callable[[str], object]


def quoted() -> str:
    """Return the quotations of the page, each on a line of its own."""
    blocks = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return "\n".join(" ".join(block.split()) for block in blocks)


def assert_quoted(error: BaseException, servers: str = "") -> None:
    text = f"{type(error).__name__}: {error}"
    for shown, real in (("localhost:9092", servers), ("localhost:9092", CLOSED)):
        text = text.replace(real, shown) if real else text
    assert " ".join(text.split()) in quoted()


@pytest.fixture(scope="module")
def secure_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(security_protocol="SASL_SSL", users={"alice": "secret"}, flush="os") as broker:
        yield broker


def send(servers: str, value: object, **settings: object) -> object:
    with KafkaProducer(bootstrap_servers=servers, **settings) as producer:
        return producer.send("orders", value).get(timeout=30)


def read(servers: str, offset: int | None = None, **settings: object) -> None:
    send(servers, b"abc")
    with KafkaConsumer(bootstrap_servers=servers, **settings) as consumer:
        consumer.assign([ORDERS])
        if offset is not None:
            consumer.seek(ORDERS, offset)
        # poll() raises when the broker has answered.
        for _ in range(30):
            consumer.poll(timeout_ms=1000)


def commit_without_group(servers: str) -> None:
    with KafkaConsumer("orders", bootstrap_servers=servers) as consumer:
        consumer.commit()


def commit_before_joining(servers: str) -> None:
    with KafkaConsumer(
        "orders", bootstrap_servers=servers, group_id="troubled", enable_auto_commit=False
    ) as consumer:
        consumer.commit({ORDERS: (0, "")})


def pickle_a_producer(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        pickle.dumps(producer)


def join_by_kip_848() -> None:
    with (
        EmbeddedBroker(group_coordinator_rebalance_protocols="classic") as broker,
        KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="billing",
            group_protocol="consumer",
        ) as consumer,
    ):
        # poll() raises when the broker has answered.
        for _ in range(30):
            consumer.poll(timeout_ms=1000)


PLAINTEXT_CASES: dict[str, Provoke] = {
    "no TLS": lambda servers: KafkaProducer(bootstrap_servers=servers, security_protocol="SSL"),
    "no SASL": lambda servers: KafkaProducer(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="alice",
        sasl_plain_password="secret",
    ),
    "text": lambda servers: send(servers, "text"),
    "too large for the producer": lambda servers: send(servers, b"x" * 2_000_000),
    "too large for the broker": lambda servers: send(servers, b"x" * 2_000_000, max_request_size=5_000_000),
    "no group": commit_without_group,
    "no member": commit_before_joining,
    "no offset": lambda servers: read(servers, auto_offset_reset="none"),
    "offset out of range": lambda servers: read(servers, 999, auto_offset_reset="none"),
    "deserializer": lambda servers: read(
        servers, auto_offset_reset="earliest", value_deserializer=lambda value: int(value)
    ),
    "pickled": pickle_a_producer,
}

SETTINGS_CASES: dict[str, Callable[[], object]] = {
    "unknown": lambda: KafkaConsumer(value_deserialiser=str),
    "with dots": lambda: KafkaProducer(**{"bootstrap.servers": CLOSED}),
    "as a dictionary": lambda: KafkaProducer({"bootstrap.servers": CLOSED}),
    "no KIP-848": join_by_kip_848,
    "session in KIP-848": lambda: KafkaConsumer(
        group_id="billing", group_protocol="consumer", session_timeout_ms=10_000
    ),
    "remote assignor": lambda: KafkaConsumer(group_id="billing", group_remote_assignor="uniform"),
    "PLAIN in the clear": lambda: KafkaConsumer(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password="secret",
    ),
}

SECURE_CASES: dict[str, dict[str, object]] = {
    "TLS unexpected": {"security_protocol": "PLAINTEXT", "sasl_mechanism": None},
    "unknown authority": {"ssl_cafile": None},
    "wrong password": {"sasl_plain_password": "wrong"},
    "mechanism": {
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": type("Tokens", (), {"token": lambda self: "token"})(),
    },
}


@pytest.mark.parametrize("case", PLAINTEXT_CASES)
def test_client_messages_are_quoted(kafka_broker: EmbeddedBroker, case: str) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page quotes the class
        PLAINTEXT_CASES[case](kafka_broker.bootstrap_servers)
    assert_quoted(raised.value, kafka_broker.bootstrap_servers)


@pytest.mark.parametrize("case", SETTINGS_CASES)
def test_messages_about_settings_are_quoted(case: str) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page quotes the class
        SETTINGS_CASES[case]()
    assert_quoted(raised.value)


@pytest.mark.parametrize("case", SECURE_CASES)
def test_messages_of_secure_connections_are_quoted(secure_broker: EmbeddedBroker, case: str) -> None:
    settings = {**secure_broker.client_settings(), **SECURE_CASES[case]}
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page quotes the class
        KafkaProducer(**settings)
    assert_quoted(raised.value, secure_broker.bootstrap_servers)


def test_unreachable_broker_is_quoted() -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page quotes the class
        KafkaProducer(bootstrap_servers=CLOSED, bootstrap_timeout_ms=1000)
    text = str(raised.value).replace(CLOSED, "localhost:9092").replace("_ms=1000", "_ms=30000")
    assert f"{type(raised.value).__name__}: {text}" in quoted()


def test_missing_login_is_quoted(secure_broker: EmbeddedBroker) -> None:
    settings = secure_broker.client_settings()
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the page quotes the class
        KafkaProducer(
            bootstrap_servers=settings["bootstrap_servers"],
            security_protocol="SSL",
            ssl_cafile=settings["ssl_cafile"],
            bootstrap_timeout_ms=2000,
        )
    cause = str(raised.value).partition(secure_broker.bootstrap_servers + ": ")[2].removesuffix(")")
    assert f"{type(raised.value).__name__}: … {cause}" in quoted()


def test_missing_topic_is_quoted(kafka_broker: EmbeddedBroker) -> None:
    with (
        KafkaProducer(
            bootstrap_servers=kafka_broker.bootstrap_servers,
            allow_auto_create_topics=False,
            # Do not let the constructor wait for max_block_ms, which is short for a busy machine.
            bootstrap_timeout_ms=0,
            max_block_ms=500,
        ) as producer,
        pytest.raises(Exception) as raised,  # noqa: PT011 - the page quotes the class
    ):
        producer.send("absent", b"one")
    text = str(raised.value).replace("absent", "orders").replace("_ms=500", "_ms=60000")
    assert f"{type(raised.value).__name__}: {text}" in quoted()


def test_warning_about_idempotence_is_quoted(
    kafka_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="kafkacore"):
        KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers, acks=1).close()
    assert caplog.messages[0] in quoted()


def test_two_threads_are_quoted(kafka_broker: EmbeddedBroker) -> None:
    errors: list[Exception] = []

    def listen(consumer: KafkaConsumer) -> int:
        try:
            consumer.poll()
        except Exception as error:  # noqa: BLE001 - compared below
            errors.append(error)
        return 0

    with KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        auto_offset_reset="earliest",
        value_deserializer=lambda value: listen_from_elsewhere(),
    ) as consumer:
        # Another thread calls poll() while the owner is inside poll().
        def listen_from_elsewhere() -> int:
            thread = Thread(target=listen, args=(consumer,))
            thread.start()
            thread.join()
            return 0

        send(kafka_broker.bootstrap_servers, b"one")
        assert next(consumer).value == 0
    text = re.sub(
        r"thread \d+ called", "thread 2 called", re.sub(r"thread \d+ is", "thread 1 is", str(errors[0]))
    )
    assert f"{type(errors[0]).__name__}: {text}" in quoted()


def test_forked_producer_is_quoted(kafka_broker: EmbeddedBroker) -> None:
    """Fork in a new interpreter, which has only the producer's threads."""
    program = (
        "import os, sys, warnings; warnings.simplefilter('ignore')\n"
        "from kafkacore import KafkaProducer\n"
        "producer = KafkaProducer(bootstrap_servers=sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try: producer.send('orders', b'one')\n"
        "    except Exception as error: print(f'{type(error).__name__}: {error}', flush=True)\n"
        "    os._exit(0)\n"
        "os.wait(); producer.close()"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, kafka_broker.bootstrap_servers],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() in quoted()


BROKER_CASES: dict[str, list[str]] = {
    "open address": ["--listen", "0.0.0.0:0"],
    "unknown property": ["--override", "nmu.partitions=3"],
    "folder writable by all": [],
}


@pytest.mark.parametrize("case", BROKER_CASES)
def test_messages_of_the_broker_are_quoted(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "kafka"
    if case == "folder writable by all":
        folder.mkdir()
        folder.chmod(0o777)
    assert run_broker(folder, *BROKER_CASES[case]) in quoted()


def test_busy_port_and_folder_are_quoted(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "first", flush="os") as broker:
        text = run_broker(tmp_path / "second", "--listen", broker.bootstrap_servers)
        assert text.replace(broker.bootstrap_servers, "127.0.0.1:9092") in quoted()
        text = run_broker(broker.config.data_dir, "--listen", "127.0.0.1:0")
        assert text in quoted()


def test_refused_command_is_quoted() -> None:
    text = run("topics", "list", "--bootstrap", CLOSED)
    assert text.replace(CLOSED, "localhost:9092") in quoted()


def run(*arguments: str) -> str:
    """Return the last line that a failing command prints, without the prefix of a log line."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkacore.cli.main", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode != 0
    return re.sub(r"^\d{4}-\S+ \S+ ERROR \[MainThread\] ", "", done.stderr.strip().splitlines()[-1])


def run_broker(folder: Path, *arguments: str) -> str:
    """Return the broker's startup error, with the folder replaced by the one on the page."""
    return run("broker", "--data-dir", str(folder), *arguments).replace(str(folder), "/data/kafka")
