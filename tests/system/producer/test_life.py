"""Unplanned ends of a producer: fork, Ctrl-C and the end of the interpreter."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.paused_process import paused
from model.topic_reader import values_of

from kafkacore import KafkaProducer
from kafkacore.errors import IllegalStateError
from kafkacore.testing import EmbeddedBroker, FaultProxy


@contextmanager
def running(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a new interpreter with pipes, and kill it if it does not end."""
    process = subprocess.Popen(
        [sys.executable, "-W", "default", "-c", textwrap.dedent(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


# ---- Fork --------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[KafkaProducer], object]] = {
    "send": lambda producer: producer.send("life-fork", b"child", partition=0),
    "send to a new topic": lambda producer: producer.send("life-fork-new", b"child"),
    "send_batch": lambda producer: producer.send_batch("life-fork", [b"child"]),
    "flush": lambda producer: producer.flush(),
    "partitions_for": lambda producer: producer.partitions_for("life-fork"),
}


def use_in_child(producer: KafkaProducer, said: Any) -> None:
    for name, call in CALLS.items():
        try:
            call(producer)
            said.put((name, "nothing"))
        except IllegalStateError as error:
            said.put((name, str(error)))
    # metrics() and close() are allowed in the child.
    producer.metrics()
    producer.close()
    said.put(("close", "done"))


def test_every_use_in_a_forked_process_is_refused_by_a_sentence(our_broker: EmbeddedBroker) -> None:
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send("life-fork", b"first", partition=0).get(BUDGET_S)
        child = context.Process(target=use_in_child, args=(producer, said))
        child.start()
        results = dict(said.get() for _ in range(len(CALLS) + 1))
        child.join(BUDGET_S)
        assert child.exitcode == 0
        assert producer.send("life-fork", b"last", partition=0).get(BUDGET_S).offset == 1
    assert results.pop("close") == "done"
    assert results.keys() == CALLS.keys()
    for sentence in results.values():
        assert "before fork()" in sentence
        assert "create a new one in the child" in sentence
    assert values_of(our_broker.bootstrap_servers, "life-fork") == [b"first", b"last"]


def test_forked_process_may_make_a_producer_of_its_own(our_broker: EmbeddedBroker) -> None:
    def live(servers: str) -> None:
        with KafkaProducer(bootstrap_servers=servers) as own:
            own.send("life-own", b"child").get(BUDGET_S)

    context = multiprocessing.get_context("fork")
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send("life-own", b"parent").get(BUDGET_S)
        child = context.Process(target=live, args=(our_broker.bootstrap_servers,))
        child.start()
        child.join(BUDGET_S)
        assert child.exitcode == 0
        producer.send("life-own", b"parent").get(BUDGET_S)
    assert values_of(our_broker.bootstrap_servers, "life-own") == [b"parent", b"child", b"parent"]


FORKED = """
    import os, sys, warnings
    from kafkacore import KafkaProducer
    # Python 3.12 warns about forks of a process with threads, which is what this test does.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    topic = "life-" + sys.argv[2]
    producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
    producer.send(topic, b"first", partition=0)
    producer.flush()
    producer.send(topic, b"waits", partition=0)
    print("quiet", flush=True)
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        if sys.argv[2] == "collect":
            del producer
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
    sys.stdin.readline()
    producer.send(topic, b"last", partition=0)
    producer.close()
"""


@pytest.mark.parametrize("end", ["exit", "collect"])
def test_end_of_a_forked_process_writes_nothing_on_the_parents_sockets(
    kafka_proxy: FaultProxy, end: str
) -> None:
    with running(FORKED, kafka_proxy.bootstrap_servers, end) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "quiet\n"
        before = kafka_proxy.counters
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "7\n"
        assert kafka_proxy.counters == before
        _, err = process.communicate("\n", timeout=BUDGET_S)
    assert (process.returncode, err) == (0, "")
    read = values_of(kafka_proxy.bootstrap_servers, f"life-{end}")
    assert read == [b"first", b"waits", b"last"]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Start a broker that tests can pause."""
    with EmbeddedBroker() as made:
        yield made


# ---- Ctrl-C ------------------------------------------------------------------------------------------------

INTERRUPTED = """
    import sys, time
    from kafkacore import KafkaProducer
    from kafkacore.producer import sender_thread
    sender_thread.EXIT_TIMEOUT_S = 0.3
    producer = KafkaProducer(bootstrap_servers=sys.argv[1], buffer_memory=40_000)
    producer.send("life-interrupted", b"value").get(60)
    print("ready", flush=True)
    sys.stdin.readline()
    future = producer.send("life-interrupted", b"value")
    try:
        print("waiting", flush=True)
        {call}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    {after}
"""
WAITS = {
    "get": "future.get()",
    "flush": "producer.flush()",
    "close": "producer.close()",
    "send for memory": "[producer.send('life-interrupted', b'v' * 9000) for _ in range(9)]",
    "send to a new topic": "producer.send('life-not-known', b'v')",
}


@pytest.mark.parametrize("after", ["pass", "producer.close(0.1)"], ids=["left open", "closed then"])
@pytest.mark.parametrize("call", WAITS)
def test_ctrl_c_ends_every_wait_at_once_and_the_program_in_bounded_time(
    broker: EmbeddedBroker, call: str, after: str
) -> None:
    script = INTERRUPTED.format(call=WAITS[call], after=after)
    with running(script, broker.bootstrap_servers) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with paused(broker.pid):
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "waiting\n"
            # The script may need some milliseconds until it blocks. The handler may raise before that.
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            _, err = process.communicate(timeout=BUDGET_S)
    assert process.returncode == 0
    assert "Traceback" not in err
    # If the signal arrives before close() begins, the producer is left open too.
    is_left_open = {True} if after == "pass" and call != "close" else {after == "pass", False}
    assert err.count("ResourceWarning") in is_left_open


def test_interrupted_close_leaves_the_thread_at_work_and_the_next_one_waits_for_it(
    our_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send("life-twice", b"first").get(BUDGET_S)
        thread = producer._thread
        assert thread is not None
        held = threading.Event()
        run_once = thread.sender.run_once

        def held_up(now_ms: float) -> None:
            held.wait(BUDGET_S)
            run_once(now_ms)

        monkeypatch.setattr(thread.sender, "run_once", held_up)
        future = producer.send("life-twice", b"second")

        def interrupted(*_: object) -> bool:
            raise Interrupt

        with monkeypatch.context() as patched:
            patched.setattr(thread._run.clock, "wait_for", interrupted)
            with pytest.raises(Interrupt):
                producer.close()
        assert thread.is_alive()
        held.set()
    assert not thread.is_alive()
    assert future.succeeded()


class Interrupt(BaseException):
    """An exception like KeyboardInterrupt, but distinct from a real Ctrl-C."""


INTERRUPTS = 600
SENDS: dict[str, Callable[[KafkaProducer], object]] = {
    "send": lambda producer: producer.send("life-storm", b"v" * 3000).add_callback(lambda metadata: None),
    "send_batch": lambda producer: producer.send_batch("life-storm", [b"v" * 300] * 50),
}


@pytest.mark.behaviour(
    "BufferPool",
    "an interrupt at any time leaves the count of available bytes correct",
)
@pytest.mark.parametrize("send", SENDS)
def test_storm_of_interrupts_loses_no_memory_and_no_outcome(our_broker: EmbeddedBroker, send: str) -> None:
    is_armed, raised = False, 0

    def interrupt(*_: object) -> None:
        nonlocal is_armed, raised
        if is_armed:
            is_armed, raised = False, raised + 1
            raise Interrupt

    futures: list[Any] = []
    config: dict[str, Any] = {"buffer_memory": 200_000, "batch_size": 50_000, "linger_ms": 1}
    before = signal.signal(signal.SIGALRM, interrupt)
    # A callback of the garbage collector, such as Hypothesis's, would swallow the handler's exception.
    gc.disable()
    try:
        with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer:
            producer.partitions_for("life-storm")
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
            while raised < INTERRUPTS:
                try:
                    is_armed = True
                    while True:
                        futures.append(SENDS[send](producer))
                except Interrupt:
                    continue
            signal.setitimer(signal.ITIMER_REAL, 0)
            producer.flush(BUDGET_S)
            # The network thread removes a batch only after the flush may have returned.
            eventually(lambda: producer.metrics()["producer-metrics"]["batches-incomplete"] == 0)
            figures = producer.metrics()["producer-metrics"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    assert futures
    assert [future.exception for future in futures] == [None] * len(futures)
    assert all(future.is_done for future in futures)
    assert figures["buffer-available-bytes"] == figures["buffer-total-bytes"]
    assert figures["waiting-threads"] == 0


# ---- Threads -----------------------------------------------------------------------------------------------


def test_close_by_many_threads_at_once_is_one_close(our_broker: EmbeddedBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
    future = producer.send("life-closed", b"v")
    threads = [threading.Thread(target=producer.close) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BUDGET_S)
        assert not thread.is_alive()
    assert future.succeeded()


def test_thread_that_waits_for_memory_is_woken_by_the_close(our_broker: EmbeddedBroker) -> None:
    config: dict[str, Any] = {"buffer_memory": 20_000, "linger_ms": 60_000, "batch_size": 20_000}
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config)
    producer.partitions_for("life-memory")
    # The sender sends nothing from now on, so no memory is released.
    stopped = threading.Event()
    producer._thread.sender.run_once = lambda now_ms: stopped.wait(BUDGET_S)  # type: ignore[union-attr, method-assign]
    raised: list[Exception] = []

    def fill() -> None:
        try:
            while True:
                producer.send("life-memory", b"v" * 9000, partition=0)
        except IllegalStateError as error:
            raised.append(error)

    thread = threading.Thread(target=fill)
    thread.start()
    eventually(lambda: producer._accumulator.pool.queued)
    closing = threading.Thread(target=producer.close, args=(0,))
    closing.start()
    stopped.set()
    thread.join(BUDGET_S)
    closing.join(BUDGET_S)
    assert len(raised) == 1


def test_process_that_ends_by_a_signal_leaves_the_broker_well(our_broker: EmbeddedBroker) -> None:
    script = """
        import sys
        from kafkacore import KafkaProducer
        producer = KafkaProducer(bootstrap_servers=sys.argv[1])
        producer.send("life-killed", b"v").get(60)
        print("ready", flush=True)
        sys.stdin.readline()
    """
    with running(script, our_broker.bootstrap_servers) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(BUDGET_S) == -signal.SIGKILL
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        assert producer.send("life-killed", b"v").get(BUDGET_S).offset == 1
