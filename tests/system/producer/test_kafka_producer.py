"""The public API of KafkaProducer and AIOKafkaProducer, with our broker in another process.

Tests with the fixture ``producer`` or ``producer_class`` run for both. A comment at each other test, or at
its section, says why it is for the synchronous producer alone.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import inspect
import logging
import os
import selectors
import socket
import subprocess
import sys
import textwrap
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import kafka
import kafka.partitioner
import pyarrow
import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.facades import LoopProducer, engine_of

import kafkacore
from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.client import Metadata
from kafkacore.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NoBrokersAvailable,
)
from kafkacore.partitioner import Partitioner
from kafkacore.producer import FutureRecordMetadata
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.serializer import JsonSerializer
from kafkacore.testing import EmbeddedBroker

NOWHERE = "127.0.0.1:1"
#: ``KafkaProducer``, or the adapter that gives ``AIOKafkaProducer`` its methods.
ProducerClass = Callable[..., Any]


class ByLength(Partitioner):
    def partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        assert topic in cluster.topics()
        return len(value) % len(cluster.partitions_for_topic(topic))


@pytest.fixture(params=[KafkaProducer, LoopProducer], ids=["sync", "aio"])
def producer_class(request: pytest.FixtureRequest) -> ProducerClass:
    made: ProducerClass = request.param
    return made


@pytest.fixture
def producer(our_broker: EmbeddedBroker, producer_class: ProducerClass) -> Iterator[Any]:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers) as made:
        yield made


@pytest.fixture
def sync_producer(our_broker: EmbeddedBroker) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as made:
        yield made


@pytest.fixture
def topic() -> str:
    return f"kp-{uuid.uuid4().hex[:8]}"


def run_python(script: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a new interpreter that runs ``script`` with its output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-c", textwrap.dedent(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def network_threads() -> list[threading.Thread]:
    return [
        thread for thread in threading.enumerate() if thread.name.startswith("kafka-producer-network-thread")
    ]


# ---- Sending ---------------------------------------------------------------------------------------------


def test_sent_record_is_acknowledged_with_its_place(producer: Any, topic: str) -> None:
    metadata = producer.send(topic, b"value", key=b"k", headers=[("h", b"xyz")], timestamp_ms=42).get(
        BUDGET_S
    )
    assert metadata.topic == topic
    assert metadata.offset == 0
    assert metadata.timestamp == 42
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (1, 5)
    assert metadata.serialized_header_size == 4


def test_flush_gives_every_record_its_outcome(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=60_000) as producer:
        futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(100)]
        assert not any(future.is_done for future in futures)
        producer.flush(timeout=BUDGET_S)
        assert [future.get(0).offset for future in futures] == list(range(100))


@pytest.mark.behaviour("Sender", "close waits for incomplete batches, or fails them at its timeout")
def test_leaving_the_with_block_sends_what_there_is(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=60_000) as producer:
        future = producer.send(topic, b"value")
    assert future.succeeded()


# Synchronous only: an asynchronous producer is used in one thread.
def test_threads_share_a_producer_and_lose_nothing(our_broker: EmbeddedBroker) -> None:
    offsets: list[int] = []
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=1) as producer:

        def run() -> None:
            for _ in range(500):
                producer.send("kp-threads", b"v" * 50, partition=0).add_callback(
                    lambda m: offsets.append(m.offset)
                )

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BUDGET_S)
    # If a record is acknowledged before `add_callback`, its callback runs in the sending thread, and later.
    assert sorted(offsets) == list(range(2000))


def test_small_buffer_memory_slows_sending_down_and_loses_nothing(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    config = {"buffer_memory": 50_000, "batch_size": 16_384, "linger_ms": 50}
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        futures = [producer.send(topic, b"v" * 1000, partition=0) for _ in range(1000)]
        producer.flush(BUDGET_S)
        assert [future.get(0).offset for future in futures] == list(range(1000))
        assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 50_000


def test_broker_that_takes_smaller_batches_gets_halves(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    """Split a batch that exceeds the broker's default limit of 1 MiB.

    The values are random, so no compression makes them smaller.
    """
    config: dict[str, Any] = {"max_request_size": 8 << 20, "batch_size": 3 << 20, "linger_ms": 500}
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        futures = [producer.send(topic, os.urandom(300_000), partition=0) for _ in range(9)]
        producer.flush(BUDGET_S)
        assert [future.get(0).offset for future in futures] == list(range(9))
        too_large = producer.send(topic, os.urandom(2_000_000), partition=0)
        with pytest.raises(MessageSizeTooLargeError) as raised:
            too_large.get(BUDGET_S)
    assert not raised.value.possibly_persisted


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks_decide_whether_the_offset_is_known(
    our_broker: EmbeddedBroker, acks: int | str, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, acks=acks) as producer:
        offset = producer.send(topic, b"value").get(BUDGET_S).offset
    assert offset == (-1 if acks == 0 else 0)


def test_partitions_for_knows_the_partitions(producer: Any, topic: str) -> None:
    assert producer.partitions_for(topic) == {0}


# Synchronous only: aiokafka's producer has no bootstrap_connected().
def test_producer_knows_whether_it_is_connected(sync_producer: KafkaProducer) -> None:
    assert sync_producer.bootstrap_connected()
    with KafkaProducer(bootstrap_servers=NOWHERE, max_block_ms=0) as producer:
        assert not producer.bootstrap_connected()


# ---- Columns ---------------------------------------------------------------------------------------------


def test_many_records_go_by_one_call_and_their_offsets_come_back(producer: Any, topic: str) -> None:
    rows = [b"%d" % number for number in range(1000)]
    future = producer.send_batch(topic, rows, [None, *rows[1:]], [[("h", b"x")]] * 1000, range(1000))
    assert future.get(BUDGET_S).tolist() == list(range(1000))
    assert producer.send_batch(topic, rows, partition=0).get(BUDGET_S)[0] == 1000


# Synchronous only: rows of an asynchronous producer have one future.
def test_future_of_many_records_has_those_of_the_rows(our_broker: EmbeddedBroker) -> None:
    servers = our_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers) as producer:
        future = producer.send_batch("kp-batch", [b"v"] * 10, timestamps=range(10))
        assert future[7].get(BUDGET_S).timestamp == 7
    with KafkaProducer(bootstrap_servers=servers, value_serializer=JsonSerializer()) as producer:
        future = producer.send_batch("kp-serialized-rows", [{"a": 1}, [2]])
        assert future[0].get(BUDGET_S).serialized_value_size == 8
    with KafkaProducer(bootstrap_servers=servers, partitioner=ByLength()) as producer:
        future = producer.send_batch("kp-partitioned-rows", [b"four", b"seven"])
        assert [future[row].get(BUDGET_S).partition for row in range(2)] == [0, 0]


def test_table_goes_by_one_call(producer: Any, topic: str) -> None:
    table = pyarrow.table({"k": [b"a", None], "v": ["text", None], "partition": [0, None]})
    with pytest.raises(ValueError, match="'k'"):
        producer.send_arrow(topic, table)
    with pytest.raises(ValueError, match="row 1 has neither"):
        producer.send_arrow(topic, table, key="k", value="v")
    future = producer.send_arrow(topic, table[:1], key="k", value="v")
    assert future.get(BUDGET_S).tolist() == [0]
    values = table.select(["v"])[:1]
    assert producer.send_arrow(topic, values, value="v", partition=0).get(BUDGET_S).tolist() == [1]


def test_what_poll_arrow_gives_goes_out_as_it_is(
    our_broker: EmbeddedBroker, producer: Any, topic: str
) -> None:
    producer.send_batch(
        topic, [b"v", None, b""], [None, b"k", b""], [[("a", b"1"), ("a", None)], [], []], [5, 6, 7]
    ).get(BUDGET_S)
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        read = []
        for each in (topic, f"{topic}-again"):
            consumer.assign([TopicPartition(each, 0)])
            (columns,) = consumer.poll_arrow(BUDGET_MS).values()
            read.append(pyarrow.record_batch(columns).to_pylist())
            if each == topic:
                producer.send_arrow(f"{topic}-again", columns).get(BUDGET_S)
    assert read[0] == read[1]
    assert [row["timestamp"] for row in read[1]] == [
        datetime.datetime(1970, 1, 1, 0, 0, 0, number * 1000) for number in (5, 6, 7)
    ]


def test_rows_are_serialized_as_single_records_are(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(
        bootstrap_servers=our_broker.bootstrap_servers,
        key_serializer=str.encode,
        value_serializer=JsonSerializer(),
    ) as producer:
        future = producer.send_batch(topic, [{"a": 1}, [2]], ["key", "k"])
        assert future.get(BUDGET_S).tolist() == [0, 1]
        with pytest.raises(TypeError, match="serializer"):
            producer.send_arrow(topic, pyarrow.table({"value": [b"v"]}))
        with pytest.raises(TypeError, match="serializer"):
            producer.send_batch(topic, pyarrow.array([b"v"]))


def test_partitioner_of_the_users_is_asked_row_by_row(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, partitioner=ByLength()) as producer:
        assert producer.send_batch(topic, [b"four", b"seven"]).get(BUDGET_S).tolist() == [0, 1]
        table = pyarrow.table({"value": [b"v"]})
        with pytest.raises(TypeError, match="partitioner"):
            producer.send_arrow(topic, table)
        assert producer.send_arrow(topic, table, partition=0).get(BUDGET_S)[0] == 2


def test_rows_for_a_partition_that_there_is_not_are_refused(producer: Any, topic: str) -> None:
    with pytest.raises(ValueError, match=r"no partition 5: it has 1 partition.* No row was sent"):
        producer.send_batch(topic, [b"v"], partition=5)
    table = pyarrow.table({"value": [b"v", b"w"], "partition": [0, 3]})
    with pytest.raises(ValueError, match="no partition 3"):
        producer.send_arrow(topic, table)


def test_rows_of_a_batch_that_is_too_large_for_the_broker_go_in_halves(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    config: dict[str, Any] = {"max_request_size": 8 << 20, "batch_size": 3 << 20, "linger_ms": 500}
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        future = producer.send_batch(topic, [os.urandom(300_000) for _ in range(9)], partition=0)
        assert future.get(BUDGET_S).tolist() == list(range(9))
        rows = [b"small", os.urandom(2_000_000)]
        with pytest.raises(MessageSizeTooLargeError) as raised:
            producer.send_batch(topic, rows, partition=0).get(BUDGET_S)
    assert raised.value.row == 1  # type: ignore[attr-defined]


# Synchronous only: send() of the asynchronous producer is a coroutine function of the class.
def test_producer_that_was_never_initialised_says_so() -> None:
    producer = KafkaProducer.__new__(KafkaProducer)
    with pytest.raises(IllegalStateError, match="has not been called"):
        producer.send("kp-never-made", b"v")


def test_rows_do_not_go_into_a_closed_producer(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    producer = producer_class(bootstrap_servers=our_broker.bootstrap_servers)
    producer.close()
    with pytest.raises(IllegalStateError):
        producer.send_batch(topic, [b"v"])


# ---- Serializers and partitioners ------------------------------------------------------------------------


def test_functions_and_objects_serialize(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(
        bootstrap_servers=our_broker.bootstrap_servers,
        key_serializer=str.encode,
        value_serializer=JsonSerializer(),
    ) as producer:
        metadata = producer.send(topic, {"a": 1}, key="key").get(BUDGET_S)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 8)


def test_partitioner_of_the_users_is_asked(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, partitioner=ByLength()) as producer:
        assert producer.send(topic, b"four").get(BUDGET_S).partition == 0


def test_partitioner_of_kafka_python_works_here(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    partitioner = kafka.partitioner.StickyPartitioner()
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, partitioner=partitioner) as producer:
        assert producer.send(topic, b"value").get(BUDGET_S).partition == 0


# ---- Settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"liner_ms": 5}, "linger_ms"),
        ({"acks": 2}, "acks"),
        ({"acks": True}, "acks"),
        ({"compression_type": "rar"}, "zstd"),
        ({"batch_size": -1}, "batch_size"),
        ({"linger_ms": -1}, "linger_ms"),
        ({"retries": -1}, "retries"),
        ({"max_block_ms": float("inf")}, "max_block_ms"),
        ({"buffer_memory": 0}, "buffer_memory"),
        ({"key_serializer": 5}, "key_serializer"),
        ({"partitioner": 5}, "partitioner"),
        ({"partitioner": ByLength}, "partitioner"),
        ({"buffer_memry": 5}, "buffer_memory"),
        ({"max_in_flight": 1}, "max_in_flight_requests_per_connection"),
        ({"sock_chunk_byte": 1}, "unknown setting 'sock_chunk_byte'"),
        ({"security_protocol": "TLS"}, "security_protocol='TLS': it must be one of PLAINTEXT, SSL"),
        ({"sasl_mechanism": 5}, "sasl_mechanism"),
        ({"proxy_url": "socks5://p"}, "proxy_url"),
        ({"compression_level": "high"}, "compression_level"),
        ({"compression_type": "gzip", "compression_level": 42}, "between 1 and 9 for gzip"),
        ({"compression_type": "zstd", "compression_level": 23}, "between -131072 and 22 for zstd"),
        ({"partitioner_adaptive_partitioning_enable": "yes"}, "partitioner_adaptive_partitioning_enable"),
        ({"partitioner_availability_timeout_ms": -1}, "partitioner_availability_timeout_ms"),
        ({"partitioner_ignore_keys": None}, "partitioner_ignore_keys"),
        ({"enable_idempotence": "yes"}, "enable_idempotence"),
        ({"enable_idempotence": True, "acks": 1}, "acks=1"),
        ({"enable_idempotence": True, "retries": 0}, "retries=0"),
        (
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
            "max_in_flight_requests_per_connection=6",
        ),
        ({"transactional_id": ""}, "transactional_id"),
        ({"transactional_id": "t", "acks": 1}, "transactional_id needs acks='all'.*acks=1"),
        ({"transactional_id": "t", "enable_idempotence": False}, "needs idempotence"),
        ({"transaction_timeout_ms": 2**31}, "transaction_timeout_ms"),
    ],
)
def test_setting_that_cannot_be_is_refused_by_a_sentence(
    config: dict[str, Any], named: str, producer_class: ProducerClass
) -> None:
    with pytest.raises(KafkaConfigurationError, match=named) as raised:
        producer_class(**config)
    assert isinstance(raised.value, ValueError)
    assert network_threads() == []


#: Settings whose default has another value with the same meaning.
EQUIVALENT_DEFAULTS = {
    "compression_type", "kafka_client", "partitioner", "receive_buffer_bytes", "selector", "send_buffer_bytes"
}  # fmt: skip


# Synchronous only: defaults of the asynchronous producer are aiokafka's.
def test_every_setting_of_kafka_python_is_known_with_its_default() -> None:
    theirs, ours = kafka.KafkaProducer.DEFAULT_CONFIG, KafkaProducer.DEFAULT_CONFIG
    assert set(theirs) <= set(ours)
    differing = {name for name in theirs if theirs[name] != ours[name]}
    # This default is Java's. With kafka-python's, a client waits up to 30 s for a broker that is back.
    assert differing == EQUIVALENT_DEFAULTS | {"reconnect_backoff_max_ms"}


#: All settings of the producer in kafka-python 2.0.2, with their defaults in that version.
OF_KAFKA_PYTHON_2: dict[str, Any] = {
    "client_id": None, "key_serializer": None, "value_serializer": None, "acks": 1,
    "bootstrap_topics_filter": set(), "compression_type": None, "retries": 0, "batch_size": 16384,
    "linger_ms": 0, "buffer_memory": 33554432, "connections_max_idle_ms": 540000, "max_block_ms": 60000,
    "max_request_size": 1048576, "metadata_max_age_ms": 300000, "retry_backoff_ms": 100,
    "request_timeout_ms": 30000, "receive_buffer_bytes": None, "send_buffer_bytes": None,
    "socket_options": [(6, 1, 1)], "sock_chunk_bytes": 4096, "sock_chunk_buffer_count": 1000,
    "reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 1000,
    "max_in_flight_requests_per_connection": 5, "security_protocol": "PLAINTEXT", "ssl_context": None,
    "ssl_check_hostname": True, "ssl_cafile": None, "ssl_certfile": None, "ssl_keyfile": None,
    "ssl_crlfile": None, "ssl_password": None, "ssl_ciphers": None, "api_version": None,
    "api_version_auto_timeout_ms": 2000, "metric_reporters": [], "metrics_num_samples": 2,
    "metrics_sample_window_ms": 30000, "selector": selectors.DefaultSelector, "sasl_mechanism": None,
    "sasl_plain_username": None, "sasl_plain_password": None, "sasl_kerberos_service_name": "kafka",
    "sasl_kerberos_domain_name": None, "sasl_oauth_token_provider": None,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*kafka-python removed this setting in 3.0:DeprecationWarning")
def test_every_setting_of_kafka_python_2_is_taken(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    asked: list[tuple[bytes | None, list[int], list[int]]] = []

    def last(key: bytes | None, every: list[int], available: list[int]) -> int:
        asked.append((key, every, available))
        return available[-1]

    config = OF_KAFKA_PYTHON_2 | {"partitioner": last}
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        assert producer.send(topic, b"v", key=b"k").get(BUDGET_S).partition == 0
        assert producer.config["bootstrap_timeout_ms"] == 2000
    assert asked == [(b"k", [0], [0])]


def test_socket_options_are_set_on_the_connection(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)]
    before = set(os.listdir("/proc/self/fd"))
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers, socket_options=options) as producer:
        producer.send(topic, b"v").get(BUDGET_S)
        found = []
        for fd in set(os.listdir("/proc/self/fd")) - before:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(fd))) as sock:
                if sock.family == socket.AF_INET and sock.getpeername()[1] == our_broker.port:
                    found.append([sock.getsockopt(level, name) for level, name, _ in options])
        assert found
        assert all(values == [0, 0] for values in found)


# Synchronous only: methods of the asynchronous producer are aiokafka's.
def test_every_method_of_kafka_pythons_producer_is_there_with_its_arguments() -> None:
    assert inspect.getdoc(KafkaProducer.send).startswith("Send a record")  # type: ignore[union-attr]
    methods = {
        name: method
        for name, method in inspect.getmembers(kafka.KafkaProducer, callable)
        if not name.startswith("_")
    }
    assert len(methods) >= 12
    for name, method in methods.items():
        theirs = inspect.signature(method).parameters
        ours = inspect.signature(getattr(KafkaProducer, name)).parameters
        assert list(theirs) == list(ours), name
        assert [each.default for each in theirs.values()] == [each.default for each in ours.values()], name


# Synchronous only: max_usable_produce_magic() is kafka-python's.
@pytest.mark.parametrize("version", [(0, 8), (0, 9, 1), (0, 10), (0, 10, 2), (0, 11), (2, 8), (4, 3)])
def test_newest_format_for_a_broker_is_kafka_pythons(version: tuple[int, ...]) -> None:
    theirs = kafka.KafkaProducer.max_usable_produce_magic(version)
    assert KafkaProducer.max_usable_produce_magic(version) == theirs


def test_nobody_at_the_bootstrap_address_is_an_error_in_time(producer_class: ProducerClass) -> None:
    with pytest.raises(NoBrokersAvailable, match=NOWHERE):
        producer_class(bootstrap_servers=NOWHERE, bootstrap_timeout_ms=200)
    assert network_threads() == []


def test_constructor_waits_no_longer_than_max_block_ms(producer_class: ProducerClass) -> None:
    with pytest.raises(NoBrokersAvailable, match="answered within max_block_ms=200"):
        producer_class(bootstrap_servers=NOWHERE, max_block_ms=200)
    with pytest.raises(NoBrokersAvailable, match="answered within bootstrap_timeout_ms=100"):
        producer_class(bootstrap_servers=NOWHERE, bootstrap_timeout_ms=100, max_block_ms=200)
    assert network_threads() == []


@pytest.mark.parametrize("limits", [{"max_block_ms": 0}, {"bootstrap_timeout_ms": 0, "max_block_ms": 200}])
def test_constructor_that_must_not_block_asks_nobody(
    producer_class: ProducerClass, topic: str, limits: dict[str, Any]
) -> None:
    producer = producer_class(bootstrap_servers=NOWHERE, **limits)
    with producer, pytest.raises(KafkaTimeoutError, match=topic):
        producer.send(topic, b"v")


def test_hostile_partition_number_costs_max_block_ms_and_no_memory(
    our_broker: EmbeddedBroker,
    monkeypatch: pytest.MonkeyPatch,
    producer_class: ProducerClass,
    topic: str,
) -> None:
    update = Metadata.update

    def with_a_far_partition(metadata: Metadata, version: int, response: Any, *more: Any) -> None:
        for topic in response.topics:
            far = MetadataResponse.MetadataResponsePartition(partition_index=2_000_000, leader_id=1)
            topic.partitions.append(far)
        update(metadata, version, response, *more)

    with producer_class(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send(topic, b"before").get(BUDGET_S)
        engine = engine_of(producer)
        engine._topics.max_block_ms = 300
        monkeypatch.setattr(Metadata, "update", with_a_far_partition)
        for call in (
            lambda: producer.send(f"{topic}-2", b"v"),
            lambda: producer.send(f"{topic}-2", b"v", partition=2_000_000),
            lambda: producer.send_batch(f"{topic}-2", [b"v"], [b"key"]),
            lambda: producer.partitions_for(topic),
        ):

            def error(call: Callable[[], object] = call) -> str:
                with pytest.raises(KafkaTimeoutError) as raised:
                    call()
                return str(raised.value)

            # Until metadata of a new topic have arrived, the error names only the topic.
            eventually(lambda error=error: f"a complete list of the partitions of topic {topic}" in error())
        assert len(engine._accumulator._queues) == 1
        monkeypatch.undo()
        engine._topics.max_block_ms = BUDGET_MS
        producer.send(topic, b"after").get(BUDGET_S)


# Synchronous only: the program is written for it.
def test_program_without_logging_has_nothing_on_standard_error(our_broker: EmbeddedBroker) -> None:
    program = """
        import sys
        from kafkacore import KafkaProducer
        with KafkaProducer(bootstrap_servers=sys.argv[1], allow_auto_create_topics=False) as producer:
            producer._topics.max_block_ms = 1000
            try:
                producer.send("kp-quiet", b"v")
            except Exception as error:
                print(type(error).__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), our_broker.bootstrap_servers],
        capture_output=True, text=True, timeout=BUDGET_S, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("KafkaTimeoutError\n", "")


def test_topic_that_does_not_come_to_be_is_a_time_out(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    with producer_class(
        bootstrap_servers=our_broker.bootstrap_servers, allow_auto_create_topics=False
    ) as producer:
        engine_of(producer)._topics.max_block_ms = 300
        with pytest.raises(KafkaTimeoutError, match=topic):
            producer.send(topic, b"value")
        with pytest.raises(KafkaTimeoutError, match=topic):
            producer.partitions_for(topic)


# ---- Callbacks -------------------------------------------------------------------------------------------
# Synchronous only: futures of asyncio have other callbacks, which the event loop calls.


def in_callback(producer: KafkaProducer, act: Callable[[], object]) -> list[object]:
    """Call ``act`` in a callback on the network thread, and return its result or error."""
    seen: list[object] = []
    done = threading.Event()
    sender = threading.get_ident()

    def callback(metadata: object) -> None:
        try:
            # If the record was acknowledged before `add_callback`, the callback runs in the sending thread.
            if threading.get_ident() != sender:
                seen.append(act())
        except KafkaError as error:
            seen.append(error)
        finally:
            done.set()

    while not seen:
        done.clear()
        producer.send("kp-callbacks", b"value").add_callback(callback)
        assert done.wait(BUDGET_S)
    return seen


def test_callback_may_send(sync_producer: KafkaProducer) -> None:
    (future,) = in_callback(sync_producer, lambda: sync_producer.send("kp-callbacks", b"again"))
    assert isinstance(future, kafkacore.producer.FutureRecordMetadata)
    future.get(BUDGET_S)


def test_flush_in_a_callback_is_refused_instead_of_hanging(sync_producer: KafkaProducer) -> None:
    (error,) = in_callback(sync_producer, sync_producer.flush)
    assert isinstance(error, IllegalStateError)


def test_first_record_to_a_topic_cannot_be_sent_in_a_callback(sync_producer: KafkaProducer) -> None:
    (error,) = in_callback(sync_producer, lambda: sync_producer.send("kp-not-known-yet", b"value"))
    assert isinstance(error, KafkaTimeoutError)


def test_close_in_a_callback_ends_the_producer(our_broker: EmbeddedBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
    in_callback(producer, producer.close)
    (thread,) = network_threads() or [threading.Thread()]
    if thread.ident is not None:
        thread.join(BUDGET_S)
    assert network_threads() == []
    with pytest.raises(IllegalStateError):
        producer.send("kp-callbacks", b"value")


# ---- Close, exit, fork -----------------------------------------------------------------------------------


def test_closed_producer_refuses_and_leaves_no_thread(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    producer = producer_class(bootstrap_servers=our_broker.bootstrap_servers)
    producer.send(topic, b"value").get(BUDGET_S)
    producer.close()
    producer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send(topic, b"value")
    assert network_threads() == []


@pytest.mark.behaviour("Sender", "close waits for incomplete batches, or fails them at its timeout")
def test_close_without_time_fails_what_waits_and_says_that_it_is_not_in_the_log(
    our_broker: EmbeddedBroker, producer_class: ProducerClass, topic: str
) -> None:
    producer = producer_class(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=60_000)
    future = producer.send(topic, b"value")
    producer.close(timeout=0)
    assert isinstance(future.exception, KafkaError)
    assert not future.exception.possibly_persisted


def test_records_survive_a_broker_that_is_gone_for_a_while(producer_class: ProducerClass, topic: str) -> None:
    with (
        EmbeddedBroker() as broker,
        producer_class(bootstrap_servers=broker.bootstrap_servers, reconnect_backoff_max_ms=200) as producer,
    ):
        producer.send(topic, b"0").get(BUDGET_S)
        broker.kill()
        futures = [producer.send(topic, b"%d" % number) for number in range(1, 20)]
        with pytest.raises(KafkaTimeoutError):
            producer.flush(timeout=0.2)
        broker.restart()
        producer.flush(timeout=BUDGET_S)
        assert all(future.succeeded() for future in futures)


@pytest.mark.behaviour("Sender", "close waits for incomplete batches, or fails them at its timeout")
def test_close_gives_up_in_time_when_the_broker_is_gone(producer_class: ProducerClass, topic: str) -> None:
    with EmbeddedBroker() as broker:
        producer = producer_class(bootstrap_servers=broker.bootstrap_servers)
        producer.send(topic, b"value").get(BUDGET_S)
        broker.kill()
        future = producer.send(topic, b"value")
        producer.close(timeout=0.3)
        assert future.failed()
    assert network_threads() == []


# Synchronous only: compiled code stands in for its send() unless a subclass has another one.
def test_subclass_overrides_send(our_broker: EmbeddedBroker) -> None:
    class Keyed(KafkaProducer):
        def send(self, topic: str, *args: Any, **kwargs: Any) -> FutureRecordMetadata:  # type: ignore[override]
            return super().send(topic, *args, **{"key": b"of the subclass"} | kwargs)

    with Keyed(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        assert producer.send("kp-subclass", b"value").get(BUDGET_S).serialized_key_size == 15


# Synchronous only, and the next two tests: garbage collection and exit with a network thread.
# tests/system/aio/test_producer.py has those of the asynchronous producer.
def test_send_alone_keeps_a_producer_open(our_broker: EmbeddedBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
    thread = producer._thread
    assert thread is not None
    send = producer.send
    del producer
    gc.collect()
    assert send("kp-only-send", b"value").get(BUDGET_S).offset == 0
    sends = [send]
    del send
    with pytest.warns(ResourceWarning, match="unclosed <KafkaProducer client_id="):
        sends.clear()
    thread.join(BUDGET_S)
    assert not thread.is_alive()


def test_collected_producer_warns_once_and_its_thread_ends(our_broker: EmbeddedBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
    future = producer.send("kp-collected", b"value")
    threads = network_threads()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del producer
        gc.collect()
    # Other tests may have left sockets that are collected only now.
    said = [warning for warning in caught if "KafkaProducer" in str(warning.message)]
    assert [warning.category for warning in said] == [ResourceWarning]
    for thread in threads:
        thread.join(BUDGET_S)
    assert network_threads() == []
    assert future.succeeded()


UNCLOSED = """
    import sys
    from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
    producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
    future = producer.send("kp-unclosed", b"value", partition=0)
    future.add_callback(lambda metadata: print("acknowledged", metadata.offset, flush=True))
"""


def test_interpreter_exit_sends_what_there_is_and_warns_once(our_broker: EmbeddedBroker) -> None:
    process = run_python(UNCLOSED, our_broker.bootstrap_servers)
    out, err = process.communicate(timeout=BUDGET_S)
    assert process.returncode == 0
    assert out.split()[0] == "acknowledged"
    assert err.count("ResourceWarning") == 1
    assert "Traceback" not in err


def test_turn_that_fails_by_a_bug_is_logged_and_the_next_goes_on(
    our_broker: EmbeddedBroker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    producer_class: ProducerClass,
    topic: str,
) -> None:
    with producer_class(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        sender = engine_of(producer)._thread._run.sender  # type: ignore[union-attr]
        run_once, failed = sender.run_once, threading.Event()

        def fails_once(now_ms: float) -> None:
            if not failed.is_set():
                failed.set()
                raise RuntimeError("a bug")
            run_once(now_ms)

        with caplog.at_level(logging.ERROR, "kafkacore.producer"):
            monkeypatch.setattr(sender, "run_once", fails_once)
            assert producer.send(topic, b"value").get(BUDGET_S).offset == 0
        assert failed.is_set()
        assert "a bug" in caplog.text
