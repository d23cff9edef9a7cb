"""A producer whose thread waits: the thread that calls ``send()`` writes the request."""

from __future__ import annotations

import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.topic_reader import values_of
from peers.secure_broker import SecureBroker

from kafkacore import KafkaProducer
from kafkacore.client import NetworkClient
from kafkacore.producer.sender import Sender
from kafkacore.testing import Direction, EmbeddedBroker, FaultProxy

PLAIN: dict[str, Any] = {"acks": 1, "enable_idempotence": False}
PRODUCE = 0
#: Faults of the connection before or during the next request.
CUTS: list[Callable[[FaultProxy], object]] = [
    lambda proxy: proxy.reset_connections(),
    lambda proxy: proxy.cut_request(PRODUCE, 20),
    lambda proxy: proxy.cut_response(PRODUCE, 2),
    lambda proxy: None,
]
KINDS: dict[str, dict[str, Any]] = {"idempotent": {}, "not idempotent": PLAIN}


class Idle:
    """A producer to a topic with one partition, and the number of times that its thread was woken."""

    def __init__(self, servers: str, topic: str, monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
        self.topic = topic
        self.wakeups = 0
        wakeup = NetworkClient.wakeup

        def counted(client: NetworkClient) -> None:
            self.wakeups += 1
            wakeup(client)

        monkeypatch.setattr(NetworkClient, "wakeup", counted)
        self.producer = KafkaProducer(bootstrap_servers=servers, linger_ms=0, **config)
        self.selector: Any = self.producer._client.selector
        self.send(b"first").get(BUDGET_S)

    def send(self, value: bytes) -> Any:
        return self.producer.send(self.topic, value, partition=0)

    def await_wait(self) -> None:
        """Wait until the network thread waits and no request is in flight."""
        in_flight = self.producer._client.in_flight
        eventually(lambda: self.selector.poller.is_waiting and in_flight.total == 0)


@pytest.fixture(scope="module")
def module_proxy() -> Iterator[FaultProxy]:
    """Start a broker behind a proxy."""
    with FaultProxy() as proxy, EmbeddedBroker(advertised_port=proxy.port, log_retention_ms=-1) as broker:
        proxy.target = broker.bootstrap_servers
        yield proxy


@pytest.fixture
def proxy(module_proxy: FaultProxy) -> Iterator[FaultProxy]:
    yield module_proxy
    module_proxy.lift()


@pytest.fixture(params=KINDS)
def idle(
    request: pytest.FixtureRequest, our_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Idle]:
    topic = f"direct-{request.node.name}".replace("[", "-").replace("]", "").replace(" ", "-")[:200]
    idle = Idle(our_broker.bootstrap_servers, topic, monkeypatch, **KINDS[request.param])
    yield idle
    idle.producer.close()


def test_a_record_goes_out_without_waking_the_network_thread(idle: Idle, our_broker: EmbeddedBroker) -> None:
    idle.await_wait()
    before = idle.wakeups
    for number in range(50):
        idle.await_wait()
        assert idle.send(b"%d" % number).get(BUDGET_S).offset == number + 1
    assert idle.wakeups == before
    assert values_of(our_broker.bootstrap_servers, idle.topic)[1:] == [b"%d" % number for number in range(50)]
    figures = idle.producer.metrics()["producer-metrics"]
    assert figures["record-send-total"] == figures["record-acknowledged-total"] == 51
    assert figures["request-total"] == figures["response-total"]


def test_no_python_code_runs_while_the_connections_are_borrowed(idle: Idle) -> None:
    found: list[str] = []
    poller = idle.selector.poller

    def trace(frame: FrameType, event: str, argument: object) -> None:
        if poller.borrower:
            found.append(frame.f_code.co_qualname)

    for number in range(20):
        idle.await_wait()
        before = sys.gettrace()
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            future = idle.send(b"%d" % number)
        finally:
            sys.settrace(before)
        future.get(BUDGET_S)
    assert found == []


def test_a_signal_handler_may_flush_at_any_time(idle: Idle) -> None:
    flushes, least = 0, 500

    def flush(*_: object) -> None:
        nonlocal flushes
        flushes += 1
        idle.producer.flush(BUDGET_S)
        # Not an interval, because another signal would interrupt a flush that takes longer. After the last
        # flush, the signal could arrive when its handler is no longer set.
        if flushes < least:
            signal.setitimer(signal.ITIMER_REAL, 0.0007)

    before = signal.signal(signal.SIGALRM, flush)
    futures = []
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while flushes < least:
            futures.append(idle.send(b"v"))
            time.sleep(0.0005)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    idle.producer.flush(BUDGET_S)
    assert [future.exception for future in futures] == [None] * len(futures)


class Interrupt(BaseException):
    """An exception like KeyboardInterrupt, but distinct from a real Ctrl-C."""


def test_an_interrupt_at_any_time_loses_no_record(idle: Idle, our_broker: EmbeddedBroker) -> None:
    raised, is_armed = 0, False

    def interrupt(*_: object) -> None:
        nonlocal raised, is_armed
        if is_armed:
            raised, is_armed = raised + 1, False
            raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    # A callback of the garbage collector, such as Hypothesis's, would swallow the handler's exception.
    gc.disable()
    futures, number = [], 0
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
        while raised < 300:
            try:
                is_armed = True
                while True:
                    number += 1
                    futures.append(idle.send(b"%d" % number))
                    idle.producer.flush(BUDGET_S)
            except Interrupt:
                continue
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    idle.producer.flush(BUDGET_S)
    assert [future.exception for future in futures] == [None] * len(futures)
    values = values_of(our_broker.bootstrap_servers, idle.topic)[1:]
    # An interrupted send() may have appended its record, but none is sent twice or out of order.
    numbers = [int(value) for value in values]
    assert numbers == sorted(set(numbers))
    assert len(futures) <= len(numbers) <= number
    # The network thread removes a batch only after the flush may have returned.
    eventually(lambda: idle.producer.metrics()["producer-metrics"]["batches-incomplete"] == 0)
    figures = idle.producer.metrics()["producer-metrics"]
    assert figures["buffer-available-bytes"] == figures["buffer-total-bytes"]


def test_a_finalizer_may_flush_at_any_time(idle: Idle) -> None:
    class Flushes:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            idle.producer.flush(BUDGET_S)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            idle.await_wait()
            Flushes()
            idle.send(b"v")
    finally:
        gc.set_threshold(*before)
    assert gc.isenabled()
    idle.producer.flush(BUDGET_S)


def test_records_of_many_threads_keep_their_order(idle: Idle, our_broker: EmbeddedBroker) -> None:
    threads, records = 4, 300
    errors: list[object] = []

    def send(thread: int) -> None:
        chance = random.Random(thread)
        futures = []
        for number in range(records):
            futures.append(idle.send(b"%d %d" % (thread, number)))
            if chance.random() < 0.5:
                time.sleep(chance.random() / 1000)
        errors.extend(future.get(BUDGET_S) and future.exception for future in futures)

    running = [threading.Thread(target=send, args=(thread,)) for thread in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join(BUDGET_S)
    assert errors == [None] * (threads * records)
    values = [
        tuple(map(int, value.split())) for value in values_of(our_broker.bootstrap_servers, idle.topic)[1:]
    ]
    for thread in range(threads):
        assert [number for of, number in values if of == thread] == list(range(records))


def test_a_network_thread_that_waits_for_the_gil_does_not_hinder_the_next_record(idle: Idle) -> None:
    in_flight = idle.producer._client.in_flight
    before = sys.getswitchinterval()
    for _ in range(10):
        idle.await_wait()
        wakeups = idle.wakeups
        sys.setswitchinterval(3600)
        try:
            futures = [idle.send(b"1")]
            while not idle.selector.poller.has_events:
                pass
            futures.append(idle.send(b"2"))
            assert (in_flight.total, idle.wakeups) == (2, wakeups)
        finally:
            sys.setswitchinterval(before)
        offsets = [future.get(BUDGET_S).offset for future in futures]
        assert offsets[1] == offsets[0] + 1


def test_a_record_larger_than_the_socket_buffer_is_written_to_its_end(
    our_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, Any] = {"batch_size": 1 << 20, "send_buffer_bytes": 8192}
    idle = Idle(our_broker.bootstrap_servers, "direct-large", monkeypatch, **config)
    values = [bytes([number]) * 700_000 for number in range(5)]
    with idle.producer:
        for value in values:
            idle.await_wait()
            idle.send(value).get(BUDGET_S)
    assert values_of(our_broker.bootstrap_servers, "direct-large")[1:] == values


def test_a_batch_that_another_thread_begins_meanwhile_is_sent_too(
    our_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum of a large batch is computed without the GIL, so that another thread can append."""
    idle = Idle(our_broker.bootstrap_servers, "direct-two", monkeypatch, batch_size=1 << 20)
    offsets: list[int] = []
    both = threading.Barrier(2, action=idle.await_wait)

    def send() -> None:
        for _ in range(60):
            both.wait(BUDGET_S)
            offsets.append(idle.send(bytes(500_000)).get(BUDGET_S).offset)

    threads = [threading.Thread(target=send) for _ in range(2)]
    with idle.producer:
        for each in threads:
            each.start()
        for each in threads:
            each.join(2 * BUDGET_S)
    assert sorted(offsets) == list(range(1, 121))


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
def test_a_connection_that_was_cut_is_replaced(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    topic = f"direct-cut-{len(config)}"
    idle = Idle(proxy.bootstrap_servers, topic, monkeypatch, **config)
    before = proxy.counters.cuts
    with idle.producer:
        for number in range(20):
            idle.await_wait()
            CUTS[number % len(CUTS)](proxy)
            idle.send(b"%d" % number).get(BUDGET_S)
    assert proxy.counters.cuts - before >= 15
    numbers = [int(value) for value in values_of(proxy.bootstrap_servers, topic)[1:]]
    assert list(dict.fromkeys(numbers)) == list(range(20))
    assert config or numbers == list(range(20))


# ---- The network thread ----------------------------------------------------------------------------------


def refuse_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(*_: object) -> None:
        raise AssertionError("a lone batch took the general path")

    monkeypatch.setattr(Sender, "_send_produce_request", send)


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
def test_the_network_thread_sends_a_lone_batch_while_others_are_in_flight(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    idle = Idle(proxy.bootstrap_servers, f"direct-stalled-{len(config)}", monkeypatch, **config)
    in_flight = idle.producer._client.in_flight
    with idle.producer:
        for _ in range(5):
            idle.await_wait()
            with monkeypatch.context() as patch:
                refuse_general_path(patch)
                proxy.set_stalled(direction=Direction.TO_CLIENT)
                futures = []
                for number in range(1, 6):
                    futures.append(idle.send(b"v"))
                    eventually(lambda number=number: in_flight.total == number)
                # The node accepts no further request.
                futures.append(idle.send(b"v"))
                futures.append(idle.send(b"v"))
                assert in_flight.total == 5
                proxy.set_stalled(False)
                offsets = [future.get(BUDGET_S).offset for future in futures]
            assert offsets == list(range(offsets[0], offsets[0] + 7))
        figures = idle.producer.metrics()["producer-metrics"]
    assert figures["record-send-total"] == 36
    assert figures["request-total"] == figures["response-total"]


def test_the_network_thread_sends_a_lone_batch_over_tls(
    secure_broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = secure_broker.settings("SSL")
    idle = Idle(settings.pop("bootstrap_servers"), "direct-tls", monkeypatch, **settings)
    with idle.producer:
        refuse_general_path(monkeypatch)
        assert [idle.send(b"v").get(BUDGET_S).offset for _ in range(20)] == list(range(1, 21))


def test_a_cut_connection_with_several_lone_batches_in_flight_loses_and_repeats_nothing(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "direct-many-cut"
    idle = Idle(proxy.bootstrap_servers, topic, monkeypatch)

    def produced() -> int:
        # Not the requests in flight: a refresh of the metadata after a cut may be one of them.
        return sum(seen.api_key == PRODUCE for seen in proxy.requests)

    with idle.producer:
        for turn in range(10):
            idle.await_wait()
            before = produced()
            proxy.set_stalled(direction=Direction.TO_CLIENT)
            futures = []
            for number in range(3):
                futures.append(idle.send(b"%d" % (3 * turn + number)))
                eventually(lambda count=before + number + 1: produced() == count)
            proxy.reset_connections()
            proxy.set_stalled(False)
            assert [future.get(BUDGET_S) and future.exception for future in futures] == [None] * 3
    assert [int(value) for value in values_of(proxy.bootstrap_servers, topic)[1:]] == list(range(30))
