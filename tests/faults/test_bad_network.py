"""A producer without idempotence behind a bad network: what it says of each record is true, whatever is cut.

Every byte of a Produce request and of its response is cut once; the log that is read back is judged by
``model.history``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from model.history import Finding, History, LogRecord, SendId

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError
from kafkacore.producer.future import FutureRecordMetadata
from kafkacore.testing import EmbeddedBroker, Ending, FaultProxy

LIMIT_S = 20.0
PRODUCE = 0
RECORDS = 3
#: Never over by itself: a flush makes one batch of what was sent.
LINGER_MS = 60_000


@pytest.fixture(scope="module")
def proxied_broker() -> Iterator[FaultProxy]:
    """The proxy; behind it a broker that is known by no other way."""
    with FaultProxy() as proxy, EmbeddedBroker(num_partitions=4, advertised_port=proxy.port) as broker:
        proxy.target = broker.bootstrap_servers
        yield proxy


@pytest.fixture
def proxy(proxied_broker: FaultProxy) -> Iterator[FaultProxy]:
    yield proxied_broker
    proxied_broker.lift()
    proxied_broker.reset_connections()


def log_of(proxy: FaultProxy, topic: str, partitions: int = 1) -> list[LogRecord]:
    log: list[LogRecord] = []
    mine = [TopicPartition(topic, partition) for partition in range(partitions)]
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(mine)
        ends = consumer.end_offsets(mine)
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + LIMIT_S * 1000
        while any(consumer.position(each) < ends[each] for each in mine):
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms
            for each, records in consumer.poll(timeout_ms=200).items():
                log += [LogRecord(each.partition, record.offset, record.value) for record in records]
    return log


@dataclass
class Sender:
    """A producer, and what it was told of each record."""

    producer: KafkaProducer
    topic: str
    history: History = field(default_factory=History)
    pending: list[tuple[SendId, FutureRecordMetadata]] = field(default_factory=list)
    failures: list[KafkaError] = field(default_factory=list)
    sequence: Iterator[int] = field(default_factory=count)

    def send(self, partition: int = 0, padding: int = 0) -> SendId:
        sequence = next(self.sequence)
        value = b"%06d" % sequence + b"." * padding
        send = self.history.sent("p", partition, sequence, value)
        self.pending.append((send, self.producer.send(self.topic, value, partition=partition)))
        return send

    def settle(self, limit_s: float = LIMIT_S) -> None:
        """Wait for the outcome of each."""
        for send, future in self.pending:
            try:
                metadata = future.get(limit_s)
            except KafkaError as error:
                assert future.is_done, f"{send} has no outcome after {limit_s} s"
                self.failures.append(error)
                self.history.failed(send, possibly_persisted=error.possibly_persisted)
            else:
                self.history.acknowledged(send, metadata.offset)
        self.pending.clear()

    def send_batch(self) -> list[SendId]:
        """One batch, in one request; its outcome is known on return."""
        sends = [self.send() for _ in range(RECORDS)]
        self.producer.flush(LIMIT_S)
        self.settle()
        return sends


def connected(proxy: FaultProxy, topic: str, **options: object) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=proxy.bootstrap_servers,
        acks="all",
        **{  # type: ignore[arg-type]
            "max_in_flight_requests_per_connection": 1,
            "enable_idempotence": False,
            "linger_ms": LINGER_MS,
            "retry_backoff_ms": 1,
            "reconnect_backoff_ms": 1,
            "reconnect_backoff_max_ms": 5,
        }
        | options,
    )


def sizes_of_produce(proxy: FaultProxy) -> tuple[int, int]:
    """Bytes of the last Produce request and of its response."""
    seen = [each for each in proxy.requests if each.api_key == PRODUCE][-1]
    return seen.request_bytes, seen.response_bytes


def sweep(proxy: FaultProxy, sender: Sender, ending: Ending) -> tuple[set[SendId], int]:
    """Cut after each byte of a request, then of a response; the sends that the broker had, and the cuts."""
    sender.send_batch()
    request_bytes, response_bytes = sizes_of_produce(proxy)
    before = proxy.counters.cuts
    reached_broker: set[SendId] = set()
    for after in range(request_bytes + 1):
        proxy.cut_request(PRODUCE, after, ending=ending)
        sends = sender.send_batch()
        if after == request_bytes:
            reached_broker.update(sends)
    for after in range(response_bytes + 1):
        proxy.cut_response(PRODUCE, after, ending=ending)
        reached_broker.update(sender.send_batch())
    expected = request_bytes + response_bytes + 2
    assert proxy.wait_for(lambda counters: counters.cuts - before >= expected, LIMIT_S * 1000)
    return reached_broker, expected


def said(findings: list[Finding]) -> str:
    return "\n".join(map(str, findings))


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_loses_nothing_and_doubles_only_what_the_broker_had(
    proxy: FaultProxy, ending: Ending
) -> None:
    topic = f"sweep-retried-{ending.name}"
    with connected(proxy, topic) as producer:
        sender = Sender(producer, topic)
        reached_broker, _ = sweep(proxy, sender, ending)
    assert sender.failures == []
    log = log_of(proxy, topic)
    assert said(sender.history.check(log, may_be_doubled=reached_broker.__contains__)) == ""
    # Lost answers were really lost: there are records twice.
    assert len(log) > len({record.value for record in log})


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_without_retries_is_told_truly(proxy: FaultProxy, ending: Ending) -> None:
    topic = f"sweep-once-{ending.name}"
    with connected(proxy, topic, retries=0) as producer:
        sender = Sender(producer, topic)
        _, cuts = sweep(proxy, sender, ending)
    # All but the one whose response came whole, and with a reset perhaps that too.
    assert (cuts - 1) * RECORDS <= len(sender.failures) <= cuts * RECORDS
    assert said(sender.history.check(log_of(proxy, topic))) == ""


def test_record_that_never_reached_a_connection_is_called_not_persisted(proxy: FaultProxy) -> None:
    with connected(
        proxy, "refused", linger_ms=0, delivery_timeout_ms=600, request_timeout_ms=500
    ) as producer:
        sender = Sender(producer, "refused")
        sender.send()
        sender.settle()
        proxy.set_refusing()
        proxy.reset_connections()
        for _ in range(RECORDS):
            sender.send()
            sender.settle()
        proxy.set_refusing(False)
        sender.send()
        sender.settle()
    assert [error.possibly_persisted for error in sender.failures[1:]] == [False] * (RECORDS - 1)
    assert said(sender.history.check(log_of(proxy, "refused"))) == ""


@pytest.mark.parametrize("cut", ["request", "response"])
def test_half_open_connection_is_noticed_in_time_and_given_up_for_another(
    proxy: FaultProxy, cut: str
) -> None:
    topic, timeout_ms = f"half-open-{cut}", 1_000
    with connected(proxy, topic, linger_ms=0, request_timeout_ms=timeout_ms) as producer:
        sender = Sender(producer, topic)
        sender.send()
        sender.settle()
        set_cut = proxy.cut_request if cut == "request" else proxy.cut_response
        set_cut(PRODUCE, 20, ending=Ending.SILENCE)
        retried = sender.send()
        sender.settle(timeout_ms / 1000 + 1.0)
    assert sender.failures == []
    findings = sender.history.check(log_of(proxy, topic), may_be_doubled=lambda send: send == retried)
    assert said(findings) == ""


def test_network_that_has_gone_silent_fails_the_record_in_time_and_comes_back(proxy: FaultProxy) -> None:
    timeout_ms = 1_000
    with connected(proxy, "silent", linger_ms=0, request_timeout_ms=timeout_ms, retries=0) as producer:
        sender = Sender(producer, "silent")
        sender.send()
        sender.settle()
        proxy.set_black_hole()
        sender.send()
        sender.settle(timeout_ms / 1000 + 1.0)
        assert [error.possibly_persisted for error in sender.failures] == [True]
        proxy.set_black_hole(False)
        sender.send()
        sender.settle()
    assert len(sender.failures) == 1
    assert said(sender.history.check(log_of(proxy, "silent"))) == ""


@pytest.mark.parametrize("in_flight", [1, 5])
def test_long_thin_link_expires_nothing_and_sends_nothing_twice(proxy: FaultProxy, in_flight: int) -> None:
    topic = f"thin-{in_flight}"
    with connected(
        proxy,
        topic,
        linger_ms=5,
        max_in_flight_requests_per_connection=in_flight,
        # A tenth of the default: nothing waits that long for an answer on this link.
        request_timeout_ms=3_000,
        delivery_timeout_ms=30_000,
    ) as producer:
        sender = Sender(producer, topic)
        sender.send()
        sender.settle()
        connections = proxy.counters.connections
        proxy.set_delay(50.0)
        proxy.set_rate(375_000.0)
        for number in range(4_000):
            sender.send(partition=number % 4, padding=94)
        sender.settle()
        proxy.lift()
        # Given up none, so also none of its requests.
        assert proxy.counters.connections == connections
    assert sender.failures == []
    assert said(sender.history.check(log_of(proxy, topic, 4))) == ""
