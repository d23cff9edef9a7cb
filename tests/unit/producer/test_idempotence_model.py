"""The idempotent producer against model brokers that follow Kafka's rules.

Despite lost connections, errors, leader changes and delays, each record is written once and in order, and its
reported outcome is true.
"""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.history import History, SendId
from model.producer_harness import BUFFER_MEMORY, SenderHarness, given_id, idempotent_harness
from model.sequenced_broker import (
    FORBIDDEN,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER,
    OK,
    SequencedBrokers,
)

from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._partition_sequences import MAX_SEQUENCE

NODES = (1, 2)
PARTITIONS = (0, 1, 2)
DELIVERY_TIMEOUT_MS = 4000.0

nodes = st.sampled_from(NODES)
actions = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(PARTITIONS), st.integers(1, 3)),
    st.tuples(st.just("send"), st.just(0), st.integers(1, 3)),
    st.tuples(st.just("turn")),
    st.tuples(st.just("process"), nodes, st.just(OK)),
    st.tuples(
        st.just("process"),
        nodes,
        st.sampled_from([OK, NOT_LEADER, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, FORBIDDEN]),
    ),
    st.tuples(st.just("answer"), nodes),
    st.tuples(st.just("cut"), nodes),
    st.tuples(st.just("advance"), st.sampled_from([1, 130, 400, 1300])),
    st.tuples(st.just("move"), st.sampled_from(PARTITIONS), nodes),
)
stories = st.lists(actions, min_size=20, max_size=150)


class World:
    """A producer, its brokers, and a history of the outcomes reported to the application."""

    def __init__(
        self,
        *,
        forgets_offsets: bool = False,
        max_records: int = 1000,
        first_sequence: int | None = None,
        producer_epoch: int = 0,
    ) -> None:
        self.harness: SenderHarness = idempotent_harness(
            producer_epoch=producer_epoch,
            next_sequence=first_sequence,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        )
        self.brokers = SequencedBrokers(
            self.harness.client, forgets_offsets=forgets_offsets, max_records=max_records
        )
        for partition in PARTITIONS if first_sequence is not None else ():
            self.brokers.know(partition, 7, producer_epoch, first_sequence)
        self.history = History()
        self.open: list[tuple[SendId, FutureRecordMetadata]] = []
        self.numbers = count()
        self.leaders = [1, 1, 2]
        self.epochs = count(1)
        self.producer_ids = count(100)

    def send(self, partition: int, records: int) -> None:
        for _ in range(records):
            number = next(self.numbers)
            value = b"%d" % number
            send = self.history.sent("p", partition, number, value)
            self.open.append((send, self.harness.send(value, partition)))

    def move(self, partition: int, node_id: int) -> None:
        self.leaders[partition] = node_id
        self.harness.move(*self.leaders, epoch=next(self.epochs))

    def turn(self) -> None:
        self.harness.run()
        while self.harness.client.asked:
            self.harness.client.answer(message=given_id(next(self.producer_ids)))

    def do(self, action: tuple[str, *tuple[int, ...]]) -> None:
        name, *arguments = action
        match name:
            case "send":
                self.send(*arguments)
            case "turn":
                self.turn()
            case "process":
                self.brokers.process(*arguments)
            case "answer":
                self.brokers.answer(*arguments)
            case "cut":
                self.brokers.cut(*arguments)
            case "advance":
                self.harness.clock.advance(*arguments)
            case "move":
                self.move(*arguments)

    def settle(self) -> None:
        """Run without faults until the producer has no more work."""
        for _ in range(500):
            is_woken = bool(self.harness.client.ended)
            self.turn()
            done = [self.brokers.process(node_id) or self.brokers.answer(node_id) for node_id in NODES]
            if is_woken or any(done) or self.harness.client.ended:
                continue
            if not self.harness.sender.has_work:
                break
            # No event can wake the sender: it waits for a back-off at most.
            wait_ms = self.harness.client.polls[-1]
            assert wait_ms <= 1200
            self.harness.clock.advance(wait_ms)
        assert not self.harness.sender.has_work
        assert self.harness.free == BUFFER_MEMORY

    def check(self) -> None:
        for send, future in self.open:
            if future.exception is None:
                offset = future.get(0).offset
                self.history.acknowledged(send, None if offset < 0 else offset)
            else:
                assert isinstance(future.exception, KafkaError)
                self.history.failed(send, possibly_persisted=future.exception.possibly_persisted)
        findings = self.history.check(self.brokers.log())
        assert [str(finding) for finding in findings] == []


def run(world: World, story: list[tuple[str, *tuple[int, ...]]]) -> None:
    for action in story:
        world.do(action)
    world.settle()
    # The producer must be able to send again after any faults.
    for partition in PARTITIONS:
        world.send(partition, 2)
    world.settle()
    last = [future for _, future in world.open[-2 * len(PARTITIONS) :]]
    assert [future.exception for future in last] == [None] * len(last)
    world.check()


@settings(max_examples=300)
@given(stories, st.booleans())
def test_each_record_is_in_the_log_once_in_order_and_its_outcome_is_true(
    story: list[tuple[str, *tuple[int, ...]]], forgets_offsets: bool
) -> None:
    run(World(forgets_offsets=forgets_offsets), story)


@settings(max_examples=150)
@given(stories, st.integers(1, 3))
def test_and_so_it_is_where_batches_are_too_large(
    story: list[tuple[str, *tuple[int, ...]]], max_records: int
) -> None:
    run(World(max_records=max_records), story)


@settings(max_examples=100)
@given(stories)
def test_and_so_it_is_where_epochs_run_out(story: list[tuple[str, *tuple[int, ...]]]) -> None:
    run(World(producer_epoch=2**15 - 1), story)


@settings(max_examples=100)
@given(stories, st.integers(1, 12))
def test_and_so_it_is_where_numbers_begin_anew(
    story: list[tuple[str, *tuple[int, ...]]], before_the_end: int
) -> None:
    run(World(first_sequence=MAX_SEQUENCE - before_the_end), story)


def test_checker_sees_brokers_that_do_not_look_at_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def append(self: SequencedBrokers, partition: int, records: bytes) -> tuple[int, int]:
        self._states.clear()
        return plain(self, partition, records)

    plain = SequencedBrokers._append
    monkeypatch.setattr(SequencedBrokers, "_append", append)
    world = World()
    with pytest.raises(AssertionError, match="p#0 is in the log 2 times"):
        run(world, [("send", 0, 2), ("turn",), ("process", 1, OK), ("cut", 1)])
