"""A producer on a bad network: the outcome that it reports for each record is true, wherever a cut happens.

The tests cut the connection once after every byte of a Produce request and of its response.
``model.history`` then checks the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.cut_producer import (
    PRODUCE,
    RECORDS,
    Sender,
    check_idempotent_sweep,
    check_sweep_with_retries,
    connected,
    log_of,
    said,
    sweep,
)
from model.shifted_clock import HOUR_MS, PATIENT, ShiftedClock, requests_in_flight

from kafkacore import KafkaProducer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.testing import EmbeddedBroker, Ending, FaultProxy
from kafkacore.testing.fault_proxy import Direction


@pytest.fixture(scope="module")
def proxied_broker() -> Iterator[FaultProxy]:
    """Return a proxy in front of a broker that advertises only the proxy's address."""
    with FaultProxy() as proxy, EmbeddedBroker(num_partitions=4, advertised_port=proxy.port) as broker:
        proxy.target = broker.bootstrap_servers
        yield proxy


@pytest.fixture
def proxy(proxied_broker: FaultProxy) -> Iterator[FaultProxy]:
    yield proxied_broker
    proxied_broker.lift()
    proxied_broker.reset_connections()


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_loses_nothing_and_doubles_only_what_the_broker_had(
    proxy: FaultProxy, ending: Ending
) -> None:
    check_sweep_with_retries(proxy, f"sweep-retried-{ending.name}", ending)


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_loses_doubles_and_reorders_nothing_with_idempotence(
    proxy: FaultProxy, ending: Ending
) -> None:
    check_idempotent_sweep(proxy, f"sweep-idempotent-{ending.name}", ending)


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_without_retries_is_told_truly(proxy: FaultProxy, ending: Ending) -> None:
    topic = f"sweep-once-{ending.name}"
    with connected(proxy, retries=0) as producer:
        sender = Sender(producer, topic)
        _, cuts = sweep(proxy, sender, ending)
    # The last cut comes after a complete response. Its records may fail only if a reset discards it.
    assert (cuts - 1) * RECORDS <= len(sender.failures) <= cuts * RECORDS
    assert said(sender.history.check(log_of(proxy, topic))) == ""


def test_record_that_never_reached_a_connection_is_called_not_persisted(proxy: FaultProxy) -> None:
    with connected(proxy, linger_ms=0, delivery_timeout_ms=600, request_timeout_ms=500) as producer:
        sender = Sender(producer, "refused")
        sender.send()
        sender.settle()
        # On a busy machine this record, too, may take longer than 600 ms.
        sender.failures.clear()
        proxy.set_refusing()
        proxy.reset_connections()
        for _ in range(RECORDS):
            sender.send()
            sender.settle()
        proxy.set_refusing(False)
        sender.send()
        sender.settle()
    # Ignore the record sent afterwards: on a busy machine it may take longer than 600 ms and fail too.
    assert [error.possibly_persisted for error in sender.failures[1:RECORDS]] == [False] * (RECORDS - 1)
    assert said(sender.history.check(log_of(proxy, "refused"))) == ""


@pytest.mark.parametrize("cut", ["request", "response"])
def test_half_open_connection_is_noticed_in_time_and_given_up_for_another(
    proxy: FaultProxy, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the hour until the request timeout pass while the connection is silent."""
    topic, clock = f"half-open-{cut}", ShiftedClock()
    monkeypatch.setattr("kafkacore.producer.kafka_producer.SYSTEM_CLOCK", clock)
    timeouts_ms = {"request_timeout_ms": int(HOUR_MS), "delivery_timeout_ms": int(3 * HOUR_MS)}
    with connected(proxy, linger_ms=0, **timeouts_ms, **PATIENT) as producer:
        sender = Sender(producer, topic)
        sender.send()
        sender.settle()
        set_cut = proxy.cut_request if cut == "request" else proxy.cut_response
        cuts = proxy.counters.cut_frames
        set_cut(PRODUCE, 20, ending=Ending.SILENCE)
        retried = sender.send()
        assert proxy.wait_for(lambda counters: counters.cut_frames > cuts, BUDGET_MS)
        # Only the request timeout ends the wait for this response.
        clock.let_pass(producer, hours=1.1)
        sender.settle()
    assert sender.failures == []
    findings = sender.history.check(log_of(proxy, topic), may_be_doubled=lambda send: send == retried)
    assert said(findings) == ""


def test_network_that_has_gone_silent_fails_the_record_in_time_and_comes_back(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the hour until the request timeout pass while the network is silent."""
    clock = ShiftedClock()
    monkeypatch.setattr("kafkacore.producer.kafka_producer.SYSTEM_CLOCK", clock)
    timeouts_ms = {"request_timeout_ms": int(HOUR_MS), "delivery_timeout_ms": int(3 * HOUR_MS)}
    with connected(proxy, linger_ms=0, retries=0, **timeouts_ms, **PATIENT) as producer:
        sender = Sender(producer, "silent")
        sender.send()
        sender.settle()
        proxy.set_black_hole()
        sender.send()
        eventually(lambda: requests_in_flight(producer) == 1)
        clock.let_pass(producer, hours=1.1)
        sender.settle()
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
        linger_ms=5,
        max_in_flight_requests_per_connection=in_flight,
        # Half of the default. On this link no response takes that long.
        request_timeout_ms=15_000,
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
        # The connection is still the same one, so no request timed out.
        assert proxy.counters.connections == connections
    assert sender.failures == []
    assert said(sender.history.check(log_of(proxy, topic, 4))) == ""


@pytest.mark.parametrize("in_flight", [1, 5])
def test_expired_half_written_request_keeps_its_memory(
    proxy: FaultProxy, in_flight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the memory of an expired batch until the rest of its request has been written.

    The batch expires when half of its request is in the socket. The other half must not carry records that
    other batches have since put into reused memory. The batch first waits an hour for earlier requests, so
    its delivery timeout passes an hour before its request timeout. :class:`ShiftedClock` skips these hours.
    """
    clock = ShiftedClock()
    monkeypatch.setattr("kafkacore.producer.kafka_producer.SYSTEM_CLOCK", clock)
    memory, size = 4_000_000, 900_000
    fill, expiring, later = (f"{name}-half-{in_flight}" for name in ("fill", "expiring", "later"))
    with (
        KafkaProducer(
            bootstrap_servers=proxy.bootstrap_servers,
            send_buffer_bytes=65536,
            request_timeout_ms=int(2 * HOUR_MS),
            delivery_timeout_ms=int(2 * HOUR_MS),
            buffer_memory=memory,
            batch_size=size,
            max_in_flight_requests_per_connection=in_flight,
            max_block_ms=BUDGET_MS,
            **PATIENT,
        ) as producer,
        ExitStack() as faults,
    ):
        # Lift the fault before the producer is closed, because close() waits for its requests.
        faults.callback(proxy.lift)

        def figure(name: str) -> float:
            return float(producer.metrics()["producer-metrics"][name])

        def is_half_written() -> bool:
            selector = producer._client.selector
            channels = [selector.channel(each) for each in selector.channel_ids()]
            return any(channel is not None and channel.has_send for channel in channels)

        for topic in (fill, expiring, later):
            assert producer.send(topic, b"first", partition=0).get(BUDGET_S).offset == 0
        eventually(lambda: requests_in_flight(producer) == 0)
        passed = proxy.counters.bytes_to_broker
        proxy.set_stalled(direction=Direction.TO_CLIENT)
        for number in range(in_flight):
            producer.send(fill, b"fill", partition=0)
            eventually(lambda count=number + 1: requests_in_flight(producer) == count)  # type: ignore[misc]
        # The broker must have these requests before the proxy stops forwarding, or they stay in flight.
        eventually(
            lambda: (
                proxy.counters.bytes_to_broker
                == passed + sum(request.request_bytes for request in proxy.requests[-in_flight:])
            )
        )
        expired = producer.send(expiring, b"A" * size, partition=0)
        clock.let_pass(producer, hours=1)
        proxy.set_stalled(direction=Direction.TO_BROKER)
        proxy.set_stalled(False, direction=Direction.TO_CLIENT)
        eventually(
            lambda: requests_in_flight(producer) == 1 and is_half_written(),
            lambda: (requests_in_flight(producer), is_half_written(), expired, proxy.requests[-9:]),
        )
        assert not expired.is_done
        clock.let_pass(producer, hours=1.1)
        with pytest.raises(KafkaTimeoutError) as error:
            expired.get(BUDGET_S)
        assert error.value.possibly_persisted
        assert is_half_written(), "the rest of the request was written, or the connection was closed"
        assert figure("buffer-available-bytes") <= memory - size
        futures = [producer.send(later, b"B" * (size // 2), partition=0) for _ in range(3)]
        proxy.set_stalled(False)
        assert [future.get(BUDGET_S).offset for future in futures] == [1, 2, 3]
        eventually(lambda: figure("buffer-available-bytes") == memory)
    assert [record.value for record in log_of(proxy, expiring)] == [b"first", b"A" * size]
    assert [record.value for record in log_of(proxy, later)] == [b"first"] + [b"B" * (size // 2)] * 3
