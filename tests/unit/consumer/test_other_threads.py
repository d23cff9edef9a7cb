"""Calls of another thread while one thread is in a call of the consumer."""

import threading
from unittest.mock import Mock

import pytest
from eventually import BUDGET_S, eventually
from interleaving import at_each_step
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafkacore.consumer import ConsumerInterceptor
from kafkacore.consumer.engine import ConsumerEngine
from kafkacore.consumer.guard import ConsumerInUseError, SingleOwnerGuard
from kafkacore.errors import IllegalStateError

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def in_thread(task):
    """Run ``task`` in its own thread, and return its result or error."""
    outcome = []

    def run():
        try:
            outcome.append(task())
        except IllegalStateError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(BUDGET_S)
    assert outcome, "the thread is stuck"
    return outcome[0]


@pytest.fixture
def consumer(make_consumer):
    """Return a member that has read, committed and paused; its deserializer runs ``consumer.inside``."""
    made = []

    def deserialize(data):
        if made and made[0].inside is not None:
            made[0].inside, task = None, made[0].inside
            task()
        return data

    logs = {A0: FetchLog(simple_batch(0, 1), simple_batch(1, 2)), A1: FetchLog()}
    consumer = make_consumer(
        logs, "a", group_id="g", max_poll_records=1, enable_auto_commit=False, value_deserializer=deserialize
    )
    consumer.inside = None
    made.append(consumer)
    assert read(consumer) == {A0: [0]}
    consumer.commit({A0: OffsetAndMetadata(1, "mine")})
    consumer.pause(A1)
    return consumer


def while_polling(consumer, task):
    """Poll, and run ``task`` in another thread while the call runs."""
    outcome = []
    consumer.inside = lambda: outcome.append(in_thread(task))
    assert read(consumer) == {A0: [1]}
    return outcome[0]


def test_state_is_readable_while_another_thread_polls(consumer):
    expected = {
        "assignment": {A0, A1},
        "subscription": {"a"},
        "paused": {A1},
        "position": 1,
        "highwater": 3,
        "committed": 1,
        "with metadata": {A0: OffsetAndMetadata(1, "mine")},
        "topics": {"a"},
        "generation": consumer.group_metadata().generation_id,
    }
    found = while_polling(
        consumer,
        lambda: {
            "assignment": consumer.assignment(),
            "subscription": consumer.subscription(),
            "paused": consumer.paused(),
            "position": consumer.position(A0),
            "highwater": consumer.highwater(A0),
            "committed": consumer.committed(A0),
            "with metadata": consumer.committed([A0], metadata=True),
            "topics": consumer.topics(),
            "generation": consumer.group_metadata().generation_id,
        },
    )
    assert found == expected
    assert while_reading_metrics(consumer) == 2


def while_reading_metrics(consumer):
    return in_thread(lambda: consumer.metrics()["consumer-coordinator-metrics"]["assigned-partitions"])


def test_position_is_right_while_another_thread_ends_the_loop(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))})
    consumer.assign([A0])

    def prepare():
        consumer.seek(A0, 0)
        assert next(consumer).offset == 0
        return (lambda: consumer.position(A0)), consumer._engine._end_iteration

    assert set(at_each_step(ConsumerEngine.known_position, prepare)) == {1}


def test_snapshots_belong_to_the_caller(consumer):
    for given in (consumer.assignment(), consumer.subscription(), consumer.paused()):
        given.clear()
    assert (consumer.assignment(), consumer.subscription(), consumer.paused()) == ({A0, A1}, {"a"}, {A1})


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.committed(TopicPartition("b", 0)),
        lambda consumer: consumer.committed([A0, TopicPartition("b", 0)]),
        lambda consumer: consumer.poll(),
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.resume(A1),
        lambda consumer: consumer.unsubscribe(),
    ],
)
def test_call_that_needs_the_polling_thread_raises(consumer, call):
    assert isinstance(while_polling(consumer, lambda: call(consumer)), ConsumerInUseError)
    assert consumer.paused() == {A1}


def test_state_follows_a_new_assignment(consumer):
    consumer.unsubscribe()
    assert (consumer.assignment(), consumer.subscription(), consumer.paused()) == (set(), None, set())
    with pytest.raises(IllegalStateError, match="not assigned"):
        consumer.position(A0)
    consumer.assign([A1])
    assert (consumer.assignment(), consumer.subscription()) == ({A1}, None)


# ---- Closing -----------------------------------------------------------------------------------------------
def close_while_polling(consumer, poll):
    """Call ``poll``; while it runs, call ``close()`` in another thread. Return what ``poll`` returned."""
    closer = threading.Thread(target=consumer.close)

    def start_closing():
        closer.start()
        eventually(lambda: consumer._engine.client._is_closing)
        consumer.wakeup()  # A wakeup at the same time changes nothing.

    consumer.pause(A0)
    consumer.network.on_poll = start_closing
    found = poll()
    closer.join(BUDGET_S)
    assert not closer.is_alive()
    return found


class _OnPoll:
    """Wraps ``poll`` of the network, and runs ``on_poll`` once before it."""

    def __init__(self, consumer):
        self.consumer, self.poll = consumer, consumer.network.poll

    def __call__(self, *arguments, **how):
        task, self.consumer.network.on_poll = self.consumer.network.on_poll, None
        if task is not None:
            task()
        return self.poll(*arguments, **how)


@pytest.mark.parametrize(
    ("poll", "found"),
    [
        (lambda consumer: consumer.poll(600_000), {}),
        (lambda consumer: consumer.poll_arrow(600_000), {}),
        (lambda consumer: next(consumer, "the end"), "the end"),
    ],
)
def test_close_ends_the_poll_of_another_thread(consumer, monkeypatch, poll, found):
    consumer.network.on_poll = None
    monkeypatch.setattr(consumer.network, "poll", _OnPoll(consumer), raising=False)
    assert close_while_polling(consumer, lambda: poll(consumer)) == found
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.poll()
    assert list(consumer) == []
    consumer.close()


def test_close_that_cannot_enter_in_time_leaves_the_consumer_open(consumer):
    error = while_polling(consumer, lambda: consumer.close(timeout_ms=0))
    assert isinstance(error, IllegalStateError)
    assert read(consumer) == {A0: [2]}


def test_two_threads_may_close_the_consumer_at_the_same_time(make_consumer):
    made = []

    def prepare():
        interceptor = Mock(ConsumerInterceptor)
        made.append(interceptor)
        consumer = make_consumer({A0: FetchLog()}, "a", group_id="g", interceptors=[interceptor])
        read(consumer, 1)
        return consumer.close, lambda: in_thread(consumer.close)

    for outcome in at_each_step(KafkaConsumer.close, prepare):
        assert outcome is None
        assert made[-1].close.call_count == 1


def test_error_during_the_close_of_another_thread_says_so():
    guard = SingleOwnerGuard()
    with guard:
        guard.is_closing = True
        assert "another thread called close()" in str(in_thread(guard.__enter__))


def test_listener_may_close_the_consumer_itself(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, group_id="g")

    class Closing(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            pass

        def on_partitions_assigned(self, assigned):
            consumer.close()

    consumer.subscribe(["a"], listener=Closing())
    with pytest.raises(IllegalStateError, match="closed"):
        read(consumer, 1)
