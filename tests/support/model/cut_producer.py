"""A producer behind the fault proxy, with or without idempotence, and a history of its results.

The connection is cut again and again. ``model.history`` checks the outcomes against the log read back
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from eventually import BUDGET_MS, BUDGET_S
from model.history import Finding, History, LogRecord, SendId
from model.topic_reader import read_log

from kafkacore import KafkaProducer
from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.testing import Ending, FaultProxy

PRODUCE = 0
#: Number of records in one batch, which is one request.
RECORDS = 3
#: Long enough never to expire: a flush makes one batch of the sent records.
LINGER_MS = 60_000


def log_of(proxy: FaultProxy, topic: str, partitions: int = 1) -> list[LogRecord]:
    return read_log(proxy.bootstrap_servers, topic, partitions)


@dataclass
class Sender:
    """A producer and the outcome of each of its records."""

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

    def settle(self) -> None:
        """Wait for the outcome of each record."""
        for send, future in self.pending:
            try:
                metadata = future.get(BUDGET_S)
            except KafkaError as error:
                assert future.is_done, f"{send} has no outcome after {BUDGET_S} s"
                self.failures.append(error)
                self.history.failed(send, possibly_persisted=error.possibly_persisted)
            else:
                self.history.acknowledged(send, metadata.offset)
        self.pending.clear()

    def send_batch(self) -> list[SendId]:
        """Send one batch in one request, and wait for its outcome."""
        sends = [self.send() for _ in range(RECORDS)]
        self.producer.flush(BUDGET_S)
        self.settle()
        return sends


def connected(proxy: FaultProxy, **options: object) -> KafkaProducer:
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
    """Return the sizes in bytes of the last Produce request and of its response."""
    seen = [each for each in proxy.requests if each.api_key == PRODUCE][-1]
    return seen.request_bytes, seen.response_bytes


def sweep(proxy: FaultProxy, sender: Sender, ending: Ending) -> tuple[set[SendId], int]:
    """Cut after each byte of a request, then of a response.

    Return the sends that reached the broker, and the number of cuts.
    """
    sender.send_batch()
    request_bytes, response_bytes = sizes_of_produce(proxy)
    before = proxy.counters.cut_frames
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
    assert proxy.wait_for(lambda counters: counters.cut_frames - before == expected, BUDGET_MS)
    return reached_broker, expected


def idempotent(proxy: FaultProxy, **options: object) -> KafkaProducer:
    """Return a producer with five requests in flight. Each record fills a batch, and therefore a request."""
    five = {"enable_idempotence": True, "max_in_flight_requests_per_connection": 5, "batch_size": 1}
    return connected(proxy, **(five | options))


def check_idempotent_sweep(proxy: FaultProxy, topic: str, ending: Ending) -> None:
    """Cut after every byte with several requests in flight, and check exactly-once delivery and order."""
    with idempotent(proxy) as producer:
        sender = Sender(producer, topic)
        sweep(proxy, sender, ending)
    assert sender.failures == []
    log = log_of(proxy, topic)
    assert said(sender.history.check(log)) == ""
    assert len(log) == len({record.value for record in log})


def said(findings: list[Finding]) -> str:
    return "\n".join(map(str, findings))


def check_sweep_with_retries(proxy: FaultProxy, topic: str, ending: Ending) -> None:
    """Cut after every byte with retries: no record is lost, and only those the broker had are duplicated."""
    with connected(proxy) as producer:
        sender = Sender(producer, topic)
        reached_broker, _ = sweep(proxy, sender, ending)
    assert sender.failures == []
    log = log_of(proxy, topic)
    assert said(sender.history.check(log, may_be_doubled=reached_broker.__contains__)) == ""
    # Some responses were really lost, because the log contains duplicates.
    assert len(log) > len({record.value for record in log})
