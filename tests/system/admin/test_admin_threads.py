"""The admin client with several threads, Ctrl-C, fork, and a broker that is killed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, main_thread
from types import FrameType

import pytest
from eventually import BUDGET_MS, eventually

from kafkacore.admin import KafkaAdminClient
from kafkacore.errors import IllegalStateError, KafkaTimeoutError, TopicAlreadyExistsError
from kafkacore.testing.embedded_broker import EmbeddedBroker

THREADS = 4


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def wait_in_vain(admin: KafkaAdminClient, timeout_ms: float = BUDGET_MS) -> None:
    admin.wait_for_topics(["never-created"], timeout_ms=timeout_ms)


def is_waiting(admin: KafkaAdminClient) -> bool:
    return admin._requester._poller is not None


def test_threads_share_a_client(admin: KafkaAdminClient) -> None:
    def use(thread: int) -> None:
        for number in range(10):
            topic = f"thread-{thread}-{number}"
            admin.create_topics([topic])
            assert topic in admin.list_topics()
            assert [each["name"] for each in admin.describe_topics([topic])] == [topic]
            admin.delete_topics([topic])

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(use, range(THREADS))) == [None] * THREADS


def test_all_but_one_thread_fail_to_create_the_same_topic(admin: KafkaAdminClient) -> None:
    def create(thread: int) -> bool:
        try:
            admin.create_topics(["contended"])
        except TopicAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(create, range(THREADS))) == 1


def test_long_call_does_not_block_those_of_other_threads(admin: KafkaAdminClient) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait_in_vain, admin)
        eventually(lambda: is_waiting(admin))
        for _ in range(20):
            admin.list_topics()
        assert not waiting.done()
        admin.close()
        with pytest.raises(IllegalStateError):
            waiting.result()


def test_close_ends_the_calls_of_other_threads(admin: KafkaAdminClient) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(wait_in_vain, admin) for _ in range(THREADS)]
        eventually(lambda: is_waiting(admin))
        admin.close()
        for each in waiting:
            with pytest.raises(IllegalStateError, match="is closed; create a new one"):
                each.result()


# ---- Signals -----------------------------------------------------------------------------------------------
@pytest.fixture
def on_alarm() -> Iterator[Callable[[Callable[[], object], float], None]]:
    """Return a function that calls another one in a signal handler after some seconds."""
    before = signal.getsignal(signal.SIGALRM)

    def set_alarm(action: Callable[[], object], after_s: float) -> None:
        def handle(number: int, frame: FrameType | None) -> None:
            action()

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, after_s)

    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


Alarm = Callable[[Callable[[], object], float], None]


def interrupt() -> None:
    raise KeyboardInterrupt


def test_client_works_after_ctrl_c(admin: KafkaAdminClient, on_alarm: Alarm) -> None:
    def wait_until_interrupted(after_s: float) -> None:
        # On a busy machine the interrupt may arrive before the call begins.
        on_alarm(interrupt, after_s)
        wait_in_vain(admin)

    for number in range(20):
        with pytest.raises(KeyboardInterrupt):
            wait_until_interrupted(0.002 * (number + 1))
        assert "never-created" not in admin.list_topics()
    assert admin._requester._poller is None
    assert admin._requester._calls == []


def test_signal_handler_may_call_and_close_the_client(admin: KafkaAdminClient, on_alarm: Alarm) -> None:
    called = Event()

    def act() -> None:
        admin.list_topics()
        called.set()
        admin.close()

    on_alarm(act, 0.05)
    with pytest.raises(IllegalStateError):
        wait_in_vain(admin)
    assert called.is_set()
    assert main_thread().is_alive()


def test_forked_child_leaves_the_connections_alone(admin: KafkaAdminClient) -> None:
    admin.list_topics()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            admin.list_topics()
        except IllegalStateError:
            admin.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    admin.list_topics()


# ---- A broker that is killed -------------------------------------------------------------------------------
def test_killed_broker_ends_calls_at_their_time_limit() -> None:
    with (
        EmbeddedBroker() as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(wait_in_vain, admin, 2_000)
        eventually(lambda: is_waiting(admin) or waiting.done())
        broker.kill()

        def names_the_refusal(call: Callable[..., object]) -> bool:
            # A process that does not run for 500 ms has not tried to connect again.
            with pytest.raises(KafkaTimeoutError) as raised:
                call(timeout_ms=500)
            return bool(re.search(f"{broker.bootstrap_servers}.*Connection refused", str(raised.value)))

        for call in (admin.list_topics, admin.list_groups, partial(admin.describe_groups, ["g"])):
            eventually(partial(names_the_refusal, call))
        with pytest.raises(KafkaTimeoutError):
            waiting.result()


def test_call_goes_on_after_the_broker_has_restarted() -> None:
    with (
        EmbeddedBroker() as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        ThreadPoolExecutor(1) as pool,
    ):
        admin.create_topics(["kept"], wait_for_metadata=True)
        broker.kill()
        described = pool.submit(admin.describe_topics, ["kept"], timeout_ms=BUDGET_MS)
        broker.start()
        assert [each["error_code"] for each in described.result()] == [0]
