"""Interceptors: what they receive, what they can change, and how their errors are handled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
import pytest
from eventually import BUDGET_MS, BUDGET_S
from interleaving import at_each_step

from kafkacore import KafkaConsumer, KafkaProducer, ProducerInterceptor, ProducerRecord, TopicPartition
from kafkacore.errors import KafkaConfigurationError, KafkaTimeoutError, MessageSizeTooLargeError
from kafkacore.producer import RecordMetadata
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.testing import EmbeddedBroker


class Notes(ProducerInterceptor):
    """An interceptor that records its calls and appends a mark to each value."""

    def __init__(self, mark: bytes = b"") -> None:
        self.mark = mark
        self.sent: list[ProducerRecord] = []
        self.outcomes: list[tuple[RecordMetadata, Exception | None]] = []
        self.threads: set[str] = set()
        self.closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.sent.append(record)
        return record._replace(value=record.value + self.mark)

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self.outcomes.append((metadata, error))
        self.threads.add(threading.current_thread().name)

    def close(self) -> None:
        self.closed += 1


class Breaks(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise RuntimeError("on_send is broken")

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        raise RuntimeError("on_acknowledgement is broken")

    def close(self) -> None:
        raise RuntimeError("close is broken")


class Returns(ProducerInterceptor):
    def __init__(self, made: Any) -> None:
        self.made = made

    def on_send(self, record: ProducerRecord) -> Any:
        return self.made(record)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def producer(our_broker: EmbeddedBroker, notes: Notes) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, interceptors=[notes]) as made:
        yield made


def values_of(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes]:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        values: list[bytes] = []
        while len(values) < count:
            records = consumer.poll(BUDGET_MS)
            assert records
            values += [record.value for of_partition in records.values() for record in of_partition]
        return values


def test_interceptors_change_the_record_one_after_the_other(our_broker: EmbeddedBroker) -> None:
    first, second = Notes(b"1"), Notes(b"2")
    config = {"interceptors": [first, second], "value_serializer": lambda value: value + b"!"}
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        producer.send("pi-chain", b"v", key=b"k", headers=[("h", b"x")], timestamp_ms=7).get(BUDGET_S)
    assert first.sent == [ProducerRecord("pi-chain", b"v", b"k", [("h", b"x")], None, 7)]
    # Interceptors run before serialization and before the partitioner.
    assert second.sent == [first.sent[0]._replace(value=b"v1")]
    assert values_of(our_broker, "pi-chain", 1) == [b"v12!"]


def test_outcomes_come_in_the_order_of_the_records_on_the_network_thread(
    producer: KafkaProducer, notes: Notes
) -> None:
    producer.send("pi-order", b"first")
    # Unlike get(), this waits for the interceptors.
    producer.flush(BUDGET_S)
    notes.outcomes.clear()
    notes.threads.clear()
    futures = [producer.send("pi-order", b"%d" % number, partition=0) for number in range(500)]
    producer.flush(BUDGET_S)
    assert [metadata.offset for metadata, _ in notes.outcomes] == list(range(1, 501))
    assert [error for _, error in notes.outcomes] == [None] * 500
    assert notes.outcomes[-1][0] == futures[-1].get(0)
    assert producer._thread is not None
    assert producer._thread.name in notes.threads


def test_interceptor_is_told_before_the_users_callback(producer: KafkaProducer, notes: Notes) -> None:
    producer.send("pi-before", b"first")
    producer.flush(BUDGET_S)
    seen: list[int] = []
    done = threading.Event()

    def callback(metadata: RecordMetadata) -> None:
        seen.append(len(notes.outcomes))
        done.set()

    producer.send("pi-before", b"v").add_callback(callback)
    assert done.wait(BUDGET_S)
    assert seen == [2]


def test_interceptor_that_raises_is_logged_and_the_last_good_record_goes(
    our_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    notes, last = Notes(b"1"), Notes(b"2")
    config = {"interceptors": [notes, Breaks(), last]}
    with (
        caplog.at_level(logging.ERROR),
        KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer,
    ):
        producer.send("pi-broken", b"v").get(BUDGET_S)
        producer.flush(BUDGET_S)
    assert last.sent[0].value == b"v1"
    assert len(last.outcomes) == 1
    assert (notes.closed, last.closed) == (1, 1)
    for what in ("on_send", "on_acknowledgement", "close"):
        assert f"{what} is broken" in caplog.text


@pytest.mark.parametrize("made", [None, b"bytes", ("pi-wrong", b"v", None, None, None, None)])
def test_what_is_no_record_is_logged_and_the_given_record_goes(
    our_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, made: Any
) -> None:
    config = {"interceptors": [Returns(lambda record: made)]}
    with (
        caplog.at_level(logging.ERROR),
        KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer,
    ):
        assert producer.send("pi-wrong", b"v").get(BUDGET_S).topic == "pi-wrong"
    assert "must return a ProducerRecord" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "expected", "partition"),
    [
        ({"value": b"v" * 2_000_000, "partition": 0}, MessageSizeTooLargeError, 0),
        ({"value": b"v", "partition": 7}, ValueError, 7),
        ({"value": b"v", "partition": "0"}, TypeError, -1),
        ({"value": b"v", "topic": "no/name"}, ValueError, -1),
    ],
)
def test_send_that_fails_at_once_is_told_too(
    producer: KafkaProducer,
    notes: Notes,
    arguments: dict[str, Any],
    expected: type[Exception],
    partition: int,
) -> None:
    producer.send("pi-refused", b"v")
    # Unlike get(), this waits for the interceptors.
    producer.flush(BUDGET_S)
    with pytest.raises(expected) as raised:
        producer.send(**({"topic": "pi-refused"} | arguments))
    metadata, error = notes.outcomes[-1]
    assert error is raised.value
    assert (metadata.offset, metadata.partition) == (-1, partition)
    producer.send("pi-refused", b"v")
    producer.flush(BUDGET_S)
    assert notes.outcomes[-1][1] is None


def test_record_that_fails_later_is_told_where_it_was_to_go(our_broker: EmbeddedBroker) -> None:
    notes = Notes()
    config: dict[str, Any] = {"interceptors": [notes], "linger_ms": 60_000}
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config)
    future = producer.send("pi-late", b"v", partition=0)
    producer.close(timeout=0)
    ((metadata, error),) = notes.outcomes
    assert error is future.exception
    assert metadata.topic_partition == TopicPartition("pi-late", 0)
    assert metadata.offset == -1


# ---- Many records in one call ------------------------------------------------------------------------------


def test_each_row_of_a_batch_is_shown_before_and_after(our_broker: EmbeddedBroker) -> None:
    notes = Notes(b"!")
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, interceptors=[notes]) as producer:
        future = producer.send_batch(
            "pi-batch", [b"a", b"b"], [b"k", None], [[("h", b"x")], None], [5, None], partition=0
        )
        assert future.get(BUDGET_S).tolist() == [0, 1]
        assert future[0].get(0).timestamp == 5
        producer.flush(BUDGET_S)
    assert notes.sent == [
        ProducerRecord("pi-batch", b"a", b"k", [("h", b"x")], 0, 5),
        ProducerRecord("pi-batch", b"b", None, [], 0, None),
    ]
    assert [metadata.offset for metadata, _ in notes.outcomes] == [0, 1]
    assert values_of(our_broker, "pi-batch", 2) == [b"a!", b"b!"]


def test_row_cannot_be_sent_to_another_topic(
    our_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"interceptors": [Returns(lambda record: record._replace(topic="elsewhere", value=b"lost"))]}
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
        assert producer.send("pi-row", b"single").get(BUDGET_S).topic == "elsewhere"
        with caplog.at_level(logging.ERROR):
            producer.send_batch("pi-row", [b"row"]).get(BUDGET_S)
    assert "another topic, 'elsewhere'" in caplog.text
    assert values_of(our_broker, "pi-row", 1) == [b"row"]


def test_rows_that_are_refused_are_told(producer: KafkaProducer, notes: Notes) -> None:
    with pytest.raises(MessageSizeTooLargeError) as raised:
        producer.send_batch("pi-rows", [b"v", b"v" * 2_000_000])
    assert [error for _, error in notes.outcomes] == [raised.value] * 2


def test_rows_for_which_memory_ran_out_are_told_with_their_futures(our_broker: EmbeddedBroker) -> None:
    notes = Notes()
    config: dict[str, Any] = {
        "interceptors": [notes], "linger_ms": 60_000, "buffer_memory": 20_000, "max_block_ms": 1000,
        "batch_size": 10_000,
    }  # fmt: skip
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config)
    try:
        producer.partitions_for("pi-memory")
        # The client no longer reads responses, so no memory is released.
        producer._client.poll = lambda *_: []  # type: ignore[method-assign]
        with pytest.raises(KafkaTimeoutError):
            producer.send_batch("pi-memory", [b"v" * 3000] * 20, partition=0)
        assert 0 < len(notes.outcomes) < 20
    finally:
        producer.close(timeout=0)
    assert len(notes.outcomes) == 20
    assert all(error is not None for _, error in notes.outcomes)


def test_arrow_data_cannot_be_shown_to_interceptors(producer: KafkaProducer, notes: Notes) -> None:
    table = pyarrow.table({"value": [b"v"]})
    with pytest.raises(TypeError, match="interceptors"):
        producer.send_arrow("pi-arrow", table)
    for column in ("values", "timestamps"):
        columns: dict[str, Any] = {"values": [b"v"]} | {column: pyarrow.array([1])}
        with pytest.raises(TypeError, match="interceptor"):
            producer.send_batch("pi-arrow", **columns)
    assert notes.sent == []


# ---- The setting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interceptors", [Notes, [Notes], [object()], "name", 5, None])
def test_what_is_no_list_of_interceptors_is_refused(interceptors: Any) -> None:
    with pytest.raises(KafkaConfigurationError, match="on_send, on_acknowledgement, close"):
        KafkaProducer(interceptors=interceptors)


def test_without_interceptors_the_way_of_a_record_is_the_short_one(our_broker: EmbeddedBroker) -> None:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, interceptors=[]) as producer:
        assert producer._preparer.is_plain


def test_interceptor_is_closed_once_if_two_threads_close_the_producer() -> None:
    made: list[Notes] = []

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        notes = Notes()
        producer = KafkaProducer(bootstrap_servers="127.0.0.1:1", max_block_ms=0, interceptors=[notes])
        made.append(notes)
        return producer.close, producer.close

    for outcome in at_each_step(KafkaProducer.close, prepare):
        assert (outcome, made[-1].closed) == (None, 1)


def test_interceptor_is_closed_by_the_close_after_an_interrupted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()
    producer = KafkaProducer(bootstrap_servers="127.0.0.1:1", max_block_ms=0, interceptors=[notes])

    def interrupted(thread: SenderThread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SenderThread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            producer.close()
    assert notes.closed == 0
    producer.close()
    assert notes.closed == 1
