"""A KIP-848 member keeps working whatever its coordinator answers and its listener does."""

import random
import uuid
from contextlib import suppress

import pytest
from model.fetch_log import FetchLog, simple_batch
from model.group_coordinator import RecordingListener

from kafkacore.errors import KafkaError
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkacore.structs import TopicPartition

A0, A1, B0 = PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
#: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, and an unknown code.
CODES = [15, 16, 25, 110, 32000]
BIGGEST = 2**31 - 1


class ListenerError(Exception):
    """Raised by the listener of a test."""


@pytest.fixture
def attacked(make_consumer, clock):
    """Return a function that creates a consumer whose coordinator and listener are hostile.

    They are honest after ``is_attacked`` is false.
    """

    def make(seed):
        chance = random.Random(seed)
        logs = {tp: FetchLog(simple_batch(0, 10)) for tp in PARTITIONS}
        consumer = make_consumer(logs, group_id="g", group_protocol="consumer", max_poll_records=2)
        consumer.is_attacked = True
        consumer.chance = chance
        group = consumer.group = consumer.model.coordinator.consumers
        honest = group.answer

        def answer(request, code):
            if not consumer.is_attacked or chance.random() < 0.5:
                return honest(request, code)
            return hostile_answer(chance, group, honest(request, code))

        group.answer = answer
        metadata = consumer._engine.metadata
        request_update = metadata.request_update

        def request_update_after_backoff(**options):
            # The model answers at once, and without this back-off a poll would request metadata forever.
            clock.advance(100)
            return request_update(**options)

        metadata.request_update = request_update_after_backoff
        consumer.listener = RecordingListener()
        consumer.listener.meanwhile = lambda what: hostile_listener(consumer, chance)
        return consumer

    return make


def hostile_answer(chance, group, answer):
    kind = chance.randrange(7)
    if kind == 0:
        return ConsumerGroupHeartbeatResponse(error_code=chance.choice(CODES), error_message="x" * 1000)
    if kind == 1:
        answer.heartbeat_interval_ms = chance.choice([-1, 0, 1, BIGGEST])
    elif kind == 2:
        answer.member_epoch = chance.choice([-2, -1, 0, 1, BIGGEST])
    elif kind == 3:
        answer.member_id = chance.choice([None, "", "x" * 300])
    else:
        known = group.cluster.topic_id("a")
        ids = [known, known, uuid.UUID(int=0), uuid.UUID(int=chance.randrange(1, 3))]
        answer.assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponse.TopicPartitions(
                    topic_id=chance.choice(ids), partitions=chance.choices([0, 0, 1, -1, 5, BIGGEST], k=3)
                )
                for _ in range(chance.randrange(4))
            ]
        )
    return answer


def hostile_listener(consumer, chance):
    if not consumer.is_attacked:
        return
    match chance.randrange(10):
        case 0:
            raise ListenerError
        case 1:
            consumer.unsubscribe()
        case 2:
            consumer.unsubscribe()
            consumer.subscribe(["b"], listener=consumer.listener)
        case 3:
            consumer.commit_async()
        case 4:
            consumer.wakeup()
        case 5:
            consumer.commit(timeout_ms=10)
        case 6:
            consumer.poll(0)
        case 7:
            raise KeyboardInterrupt
        case 8:
            consumer.assign([A1])
        case _:
            pass


@pytest.mark.parametrize("seed", range(60))
def test_member_recovers_from_nonsense(attacked, clock, seed):
    consumer = attacked(seed)
    chance = consumer.chance
    consumer.subscribe(["a"], listener=consumer.listener)
    for _ in range(60):
        with suppress(KafkaError, ListenerError, KeyboardInterrupt):
            consumer.poll(chance.choice([0, 0, 100, 3000]))
        if chance.random() < 0.1:
            consumer.group.assign(*chance.sample(PARTITIONS, chance.randrange(4)))
        if chance.random() < 0.2:
            background(consumer, chance.choice([10, 6000, 400_000]))
        if consumer.subscription() is None:
            consumer.subscribe(["a"], listener=consumer.listener)
    consumer.is_attacked = False
    consumer.group.target = {A0, B0}
    consumer.group.remove()
    # An error that ended the membership is forgotten by unsubscribe().
    consumer.unsubscribe()
    consumer.subscribe(["a", "b"], listener=consumer.listener)
    for _ in range(40):
        with suppress(KafkaError):
            consumer.poll(3000)
        if consumer.assignment() == {A0, B0}:
            break
    assert consumer.assignment() == {A0, B0}
    assert consumer._engine.membership.state.value == "stable"
    consumer.close()


def background(consumer, duration_ms):
    clock, membership = consumer._engine.clock, consumer._engine.membership
    end_ms = clock.monotonic_ms() + duration_ms
    for _ in range(200):
        if clock.monotonic_ms() >= end_ms:
            break
        wait_ms = membership.background_turn(clock.monotonic_ms())
        clock.advance(max(min(wait_ms, end_ms - clock.monotonic_ms()), 1.0))
    clock.advance(max(end_ms - clock.monotonic_ms(), 0.0))
