"""The transactional producer against a model coordinator that follows Kafka's rules.

Despite lost connections, errors and delays, each transaction is visible completely or not at all, as
reported to the application. The producer can always continue.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.producer_harness import BUFFER_MEMORY
from model.sequenced_broker import NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER, OK
from model.transaction_harness import TransactionHarness
from model.transactional_brokers import TransactionalBrokers

from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.producer.transaction_requests import EndTxn, TxnOffsetCommit
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.producer.transaction_state import State

NODES = (1, 2)
PARTITIONS = (0, 1, 2)
DELIVERY_TIMEOUT_MS = 4000.0
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT, TOPIC_DENIED, TOO_LARGE = 14, 15, 16, 51, 29, 10

nodes = st.sampled_from(NODES)
actions = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(["send", "send", "send", "offsets", "commit", "abort"])),
    st.tuples(st.just("user"), st.sampled_from(["send", "commit"])),
    st.tuples(st.just("turn")),
    st.tuples(st.just("turn")),
    st.tuples(st.just("process"), nodes, st.just(OK)),
    st.tuples(
        st.just("process"),
        nodes,
        st.sampled_from(
            [NOT_LEADER, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, TOPIC_DENIED, TOO_LARGE]
        ),
    ),
    st.tuples(st.just("answer"), nodes),
    st.tuples(st.just("cut"), nodes),
    st.tuples(st.just("ask"), st.just(OK)),
    st.tuples(st.just("ask"), st.sampled_from([LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT])),
    st.tuples(st.just("lose")),
    st.tuples(st.just("cut question")),
    st.tuples(st.just("complete")),
    st.tuples(st.just("advance"), st.sampled_from([1, 130, 400, 1300])),
)
stories = st.lists(actions, min_size=30, max_size=200)


@dataclass
class UserTransaction:
    """A transaction as the application knows it."""

    sent: list[tuple[int, bytes, FutureRecordMetadata]] = field(default_factory=list)
    offset: int | None = None
    is_commit: bool | None = None


class World:
    """A producer with its application, brokers, and the outcomes reported to the application."""

    def __init__(self, version: int) -> None:
        self.harness = TransactionHarness(version, delivery_timeout_ms=DELIVERY_TIMEOUT_MS)
        self.brokers = TransactionalBrokers(self.harness.client, version)
        self.transactions: list[UserTransaction] = []
        self.waiting: tuple[str, TransactionalRequestResult] | None = None
        #: The state of the application's program.
        self.phase = "new"
        self.numbers = count()

    # ---- The application -------------------------------------------------------------------------------

    def user(self, wish: str) -> None:
        """Run one step of a program that aborts after any error."""
        if self.waiting is not None:
            self._look()
        elif self.phase == "new":
            self.waiting = ("init", self.harness.manager.init_transactions())
        elif self.phase == "ready":
            self.harness.manager.begin_transaction()
            self.transactions.append(UserTransaction())
            self.phase = "open"
        elif self.phase == "failed":
            self.waiting = ("abort", self.harness.manager.begin_abort())
        else:
            try:
                self._go_on(wish)
            except KafkaError:
                self.phase = "failed"

    def _go_on(self, wish: str) -> None:
        match wish:
            case "send":
                number = next(self.numbers)
                value = b"%d" % number
                future = self.harness.send(value, number % len(PARTITIONS))
                self.transactions[-1].sent.append((number % len(PARTITIONS), value, future))
            case "offsets":
                self.transactions[-1].offset = next(self.numbers)
                self.waiting = ("offsets", self.harness.send_offsets(self.transactions[-1].offset))
            case "commit":
                self.waiting = ("commit", self.harness.manager.begin_commit())
            case "abort":
                self.waiting = ("abort", self.harness.manager.begin_abort())

    def _look(self) -> None:
        assert self.waiting is not None
        call, result = self.waiting
        if not result.is_completed:
            return
        self.waiting = None
        try:
            result.wait(0)
        except KafkaError:
            # Only these calls may fail: no error here is fatal, and an abort always succeeds eventually.
            assert call in ("offsets", "commit")
            self.phase = "failed"
            return
        if call in ("commit", "abort"):
            self.transactions[-1].is_commit = call == "commit"
        if call != "offsets":
            self.phase = "ready"

    # ---- The cluster -----------------------------------------------------------------------------------

    def do(self, action: tuple[str, *tuple[object, ...]]) -> None:
        name, *arguments = action
        match name:
            case "user":
                self.user(*arguments)  # type: ignore[arg-type]
            case "turn":
                self.harness.run()
            case "process":
                self.brokers.process(*arguments)  # type: ignore[arg-type]
            case "answer":
                self.brokers.answer(*arguments)  # type: ignore[arg-type]
            case "cut":
                self.brokers.cut(*arguments)  # type: ignore[arg-type]
            case "ask":
                self.brokers.ask(*arguments)  # type: ignore[arg-type]
            case "lose":
                self.brokers.ask(is_lost=True)
            case "cut question":
                self.brokers.cut_question()
            case "complete":
                self.brokers.complete()
            case "advance":
                self.harness.clock.advance(*arguments)  # type: ignore[arg-type]
        assert self.harness.state is not State.FATAL_ERROR, self.harness.manager.error

    def settle(self) -> None:
        """Run without faults until the application has ended its transaction."""
        for _ in range(1000):
            if self.waiting is not None or self.phase not in ("ready", "new"):
                self.user("commit")
            elif self.phase == "new":
                self.user("init")
            is_woken = bool(self.harness.client.ended)
            self.harness.run()
            assert self.harness.state is not State.FATAL_ERROR, self.harness.manager.error
            done = [self.brokers.process(node_id) or self.brokers.answer(node_id) for node_id in NODES]
            done += [self.brokers.ask(), self.brokers.complete()]
            if is_woken or any(done) or self.harness.client.ended:
                continue
            if self.phase == "ready" and self.waiting is None and not self.harness.sender.has_work:
                break
            # No event can wake the sender: it waits for a back-off or a delivery timeout at most.
            wait_ms = self.harness.client.polls[-1]
            assert wait_ms <= DELIVERY_TIMEOUT_MS, f"{self.phase}: the sender waits forever"
            self.harness.clock.advance(wait_ms)
        assert self.phase == "ready"
        assert self.harness.state is State.READY
        assert not self.brokers.is_open
        assert self.harness.free == BUFFER_MEMORY

    def check(self) -> None:
        for partition in PARTITIONS:
            expected = [
                value
                for transaction in self.transactions
                if transaction.is_commit
                for place, value, _ in transaction.sent
                if place == partition
            ]
            assert self.brokers.read_committed(partition) == expected
        offsets = [
            transaction.offset
            for transaction in self.transactions
            if transaction.is_commit and transaction.offset is not None
        ]
        assert self.brokers.committed_offsets == ({0: offsets[-1]} if offsets else {})
        for transaction in self.transactions:
            for partition, value, future in transaction.sent:
                error = future.exception
                assert future.is_done
                if error is None:
                    assert value in self.brokers.logs[partition]
                    continue
                assert not transaction.is_commit, "a committed transaction must not contain a failed record"
                assert isinstance(error, KafkaError)
                if not error.possibly_persisted:
                    assert value not in self.brokers.logs[partition]


def run(world: World, story: list[tuple[str, *tuple[object, ...]]]) -> None:
    for action in story:
        world.do(action)
    world.settle()
    # The producer must be able to commit again after any faults.
    for wish in ("begin", "send", "send", "send", "offsets"):
        world.user(wish)
    world.settle()
    assert world.transactions[-1].is_commit
    world.check()


@pytest.mark.behaviour(
    "TransactionManager",
    "despite faults, a transaction is visible as a whole or not at all, as its caller was informed",
)
@pytest.mark.parametrize("version", [1, 2])
@settings(max_examples=300)
@given(story=stories)
def test_a_transaction_is_seen_whole_or_not_at_all_as_its_caller_was_told(
    version: int, story: list[tuple[str, *tuple[object, ...]]]
) -> None:
    errors: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = errors.append  # type: ignore[method-assign]
    log = logging.getLogger("kafkacore")
    log.addHandler(handler)
    try:
        run(World(version), story)
    finally:
        log.removeHandler(handler)
    assert [record.getMessage() for record in errors] == []


# ---- Planted faults ----------------------------------------------------------------------------------------


def end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a transaction although some of its records are in flight."""
    monkeypatch.setattr(TransactionManager, "_has_open_batches", False)


def commit_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit the transaction when the application aborts it."""
    plain = EndTxn.__init__

    def init(self: EndTxn, manager: Any, result: Any, *, is_commit: bool) -> None:
        plain(self, manager, result, is_commit=True)

    monkeypatch.setattr(EndTxn, "__init__", init)


def keep_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the epoch of the last transaction for the next one."""
    monkeypatch.setattr(
        TransactionManager, "ended", lambda self, end, *given: self._complete_transaction(end)
    )


def forget_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat offsets as committed whatever the response is."""
    monkeypatch.setattr(TxnOffsetCommit, "handle", lambda self, message: self.result.done())


@pytest.mark.behaviour(
    "TransactionManager",
    "despite faults, a transaction is visible as a whole or not at all, as its caller was informed",
)
@pytest.mark.parametrize("fault", [end_at_once, commit_always, keep_the_epoch, forget_offsets])
def test_a_planted_fault_is_seen(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    monkeypatch.setattr(logging.getLogger("kafkacore.producer"), "disabled", True)
    for seed in range(500):
        try:
            run(World(2), story_of(seed))
        except AssertionError:
            return
    pytest.fail("no story revealed the planted fault")


def story_of(seed: int) -> list[tuple[str, *tuple[object, ...]]]:
    """Return a random story: a list of actions determined by ``seed``."""
    chance = random.Random(seed)
    wishes = ["send", "send", "send", "offsets", "commit", "abort"]
    codes = [OK, NOT_LEADER, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, TOPIC_DENIED, TOO_LARGE]
    kinds: list[Callable[[], tuple[str, *tuple[object, ...]]]] = [
        *[lambda: ("user", chance.choice(wishes))] * 8,
        *[lambda: ("turn",)] * 7,
        *[lambda: ("process", chance.choice(NODES), OK)] * 2,
        lambda: ("process", chance.choice(NODES), chance.choice(codes)),
        *[lambda: ("answer", chance.choice(NODES))] * 2,
        *[lambda: ("ask", OK)] * 3,
        lambda: ("ask", chance.choice([LOADING, NOT_COORDINATOR, CONCURRENT])),
        lambda: ("lose",),
        lambda: ("cut", chance.choice(NODES)),
        lambda: ("complete",),
        lambda: ("advance", chance.choice([1, 130, 1300])),
    ]
    return [chance.choice(kinds)() for _ in range(chance.randint(50, 400))]
