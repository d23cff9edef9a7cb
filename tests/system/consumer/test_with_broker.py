"""KafkaConsumer and AIOKafkaConsumer on real sockets, with our broker in another process.

Tests with the fixture ``consumer_of`` or ``consumer_class`` run for both. A comment at each other test says
why it is for the synchronous consumer alone.
"""

import contextlib
import functools
import os
import signal
import socket
import threading
import uuid

import confluent_kafka
import pyarrow as pa
import pytest
from eventually import BUDGET_MS, eventually
from model.facades import LoopConsumer

from kafkacore import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers import registry
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    UnsupportedVersionError,
    WakeupError,
)
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

COUNT = 5000


def produce(broker, topic, count=COUNT, start=0):
    """Produce values ``v<n>`` with keys ``k<n>`` to partition 0, compressed by lz4."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4", "linger.ms": 20}
    )
    for number in range(start, start + count):
        producer.produce(topic, key=b"k%d" % number, value=b"v%d" % number, partition=0)
    assert producer.flush(60) == 0


@pytest.fixture
def topic():
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def filled(our_broker, topic):
    produce(our_broker, topic)
    return TopicPartition(topic, 0)


def new_consumer(consumer_class, broker, *topics, **configs):
    return consumer_class(
        *topics, bootstrap_servers=broker.bootstrap_servers, **{"auto_offset_reset": "earliest"} | configs
    )


@pytest.fixture(params=[KafkaConsumer, LoopConsumer], ids=["sync", "aio"])
def consumer_class(request):
    return request.param


@pytest.fixture
def consumer_of(consumer_class):
    """Return a function that creates a consumer of a broker, which starts at the first record."""
    return functools.partial(new_consumer, consumer_class)


sync_consumer_of = functools.partial(new_consumer, KafkaConsumer)


def read(consumer, count):
    """Poll until there are ``count`` records, and return their values."""
    values = []

    def step():
        for records in consumer.poll(500).values():
            values.extend(record.value for record in records)

    eventually(lambda: len(values) >= count, lambda: values, step=step)
    return values


def test_position_that_moves_at_the_end_of_the_log_is_fetched_from(consumer_of, our_broker, topic):
    """The fetch at the end of the log returns nothing, so its response does not name the partition."""
    produce(our_broker, topic, 2)
    with consumer_of(our_broker) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert read(consumer, 2) == [b"v0", b"v1"]
        assert consumer.poll(600) == {}
        consumer.seek(TopicPartition(topic, 0), 1)
        assert read(consumer, 1) == [b"v1"]


def sockets():
    """Return the names of this process's connections, without the socket pair of an event loop."""
    names = set()
    for name in os.listdir("/proc/self/fd"):
        # The descriptor of the listing itself is closed by now; it is not a socket.
        with contextlib.suppress(FileNotFoundError):
            if (link := os.readlink(f"/proc/self/fd/{name}")).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        names.add(link)
    return names


def assign_nothing(consumer):
    consumer.assign([])


def unsubscribe(consumer):
    consumer.unsubscribe()


@pytest.mark.parametrize(
    ("consumer_class", "give_up"),
    [
        pytest.param(KafkaConsumer, assign_nothing, id="sync-assign"),
        pytest.param(KafkaConsumer, unsubscribe, id="sync-unsubscribe"),
        # A deserializer is a function, and stop() of the asynchronous consumer is a coroutine.
        pytest.param(KafkaConsumer, KafkaConsumer.close, id="sync-close"),
        pytest.param(LoopConsumer, assign_nothing, id="aio-assign"),
        pytest.param(LoopConsumer, unsubscribe, id="aio-unsubscribe"),
    ],
)
def test_deserializer_may_give_its_partition_up(consumer_of, our_broker, filled, give_up):
    """Release the partition whose records are being deserialized."""
    seen = []

    def deserialize(data):
        seen.append(data)
        if len(seen) == 3:
            give_up(consumer)
        return data

    consumer = consumer_of(our_broker, value_deserializer=deserialize)
    consumer.assign([filled])
    try:
        # poll() raises an error when the consumer is closed inside it.
        with contextlib.suppress(IllegalStateError):
            while not seen:
                consumer.poll(500)
        assert seen == [b"v0", b"v1", b"v2"]
        if give_up is not KafkaConsumer.close:
            consumer.assign([filled])
            consumer.seek_to_beginning(filled)
            assert read(consumer, COUNT) == [b"v%d" % number for number in range(COUNT)]
    finally:
        consumer.close()


def test_every_record_comes_once_and_in_order_by_poll_and_iteration(consumer_of, our_broker, filled):
    with consumer_of(our_broker, filled.topic, consumer_timeout_ms=60_000) as consumer:
        assert read(consumer, COUNT) == [b"v%d" % number for number in range(COUNT)]
        assert (consumer.position(filled), consumer.highwater(filled)) == (COUNT, COUNT)
        consumer.seek(filled, COUNT - 3)
        assert [record.key for _, record in zip(range(3), consumer, strict=False)] == [
            b"k%d" % number for number in range(COUNT - 3, COUNT)
        ]


def test_columns_of_a_bounded_range_come_whole(consumer_of, our_broker, filled):
    with consumer_of(our_broker) as consumer:
        consumer.assign([filled])
        consumer.seek(filled, 10)
        rows = []
        while consumer.position(filled) < COUNT - 10:
            for columns in consumer.poll_arrow(
                5000, columns=["value"], end_offsets={filled: COUNT - 10}
            ).values():
                rows += pa.record_batch(columns).column(0).to_pylist()
        assert rows == [b"v%d" % number for number in range(10, COUNT - 10)]


def test_offsets_and_topics_are_told(consumer_of, our_broker, filled):
    with consumer_of(our_broker) as consumer:
        assert consumer.beginning_offsets([filled]) == {filled: 0}
        assert consumer.end_offsets([filled]) == {filled: COUNT}
        assert consumer.offsets_for_times({filled: 0})[filled].offset == 0
        assert consumer.offsets_for_times({filled: 2**50}) == {filled: None}
        assert filled.topic in consumer.topics()


# Synchronous only: the asynchronous consumer reports partitions from its metadata, as aiokafka does.
def test_partitions_of_topics_are_told(our_broker, filled):
    with sync_consumer_of(our_broker) as consumer:
        assert consumer.partitions_for_topic(filled.topic) >= {0}
        assert consumer.partitions_for_topic("no-such-topic") == set()
        by_topic = consumer.partitions_by_topic([filled.topic, "no-such-topic"])
        assert by_topic == {filled.topic: consumer.partitions_for_topic(filled.topic)}
        assert consumer.partitions_by_topic()[filled.topic] == by_topic[filled.topic]
        assert "no-such-topic" not in consumer.topics(), "asking for its partitions has created it"


@pytest.mark.parametrize(("waiting", "count"), [({"bootstrap_timeout_ms": 0}, 0), ({}, 1)])
def test_one_broker_costs_one_socket_and_none_before_it_is_needed(
    consumer_of, our_broker, filled, waiting, count
):
    # Earlier tests may have left sockets that are closed only now, so look only at new ones.
    before = sockets()
    with consumer_of(our_broker, filled.topic, **waiting) as consumer:
        assert len(sockets() - before) == count
        read(consumer, COUNT)
        assert len(sockets() - before) == 1
    assert sockets() <= before


@pytest.fixture
def nowhere():
    """Reserve an address at which no broker listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def test_broker_that_is_down_at_the_start_is_waited_for(consumer_class, topic, nowhere):
    with consumer_class(topic, bootstrap_servers=nowhere, bootstrap_timeout_ms=0) as consumer:
        started = SYSTEM_CLOCK.monotonic_ms()
        assert consumer.poll(300) == {}
        assert SYSTEM_CLOCK.monotonic_ms() - started >= 290


# Synchronous only: aiokafka's methods have no timeout_ms.
def test_calls_without_a_broker_end_at_their_timeout(topic, nowhere):
    with KafkaConsumer(topic, bootstrap_servers=nowhere, bootstrap_timeout_ms=0) as consumer:
        with pytest.raises(KafkaTimeoutError, match=nowhere):
            consumer.end_offsets([TopicPartition(topic, 0)], timeout_ms=300)
        with pytest.raises(KafkaTimeoutError, match=nowhere):
            consumer.topics(timeout_ms=300)
        assert not consumer.bootstrap_connected()


def test_consumer_that_finds_no_broker_leaves_nothing_behind(consumer_class, topic, nowhere):
    before, threads = sockets(), set(threading.enumerate())
    with pytest.raises(NoBrokersAvailable, match=r"bootstrap_timeout_ms=200: .*Connection refused"):
        consumer_class(topic, bootstrap_servers=nowhere, group_id="g", bootstrap_timeout_ms=200)
    assert sockets() <= before
    assert set(threading.enumerate()) <= threads


# Synchronous only: the test takes long, and only the wait for the broker, which the test above has, differs.
def test_program_that_retries_until_kafka_is_up_reads_then(topic):
    with EmbeddedBroker(log_retention_ms=-1) as broker:
        produce(broker, topic, 10)
        broker.kill()
        with pytest.raises(NoBrokersAvailable):
            sync_consumer_of(broker, topic, group_id="g", bootstrap_timeout_ms=200)
        broker.restart()
        with sync_consumer_of(broker, topic, group_id="g", consumer_timeout_ms=BUDGET_MS) as consumer:
            assert next(consumer).value == b"v0"


def test_killed_and_restarted_broker_is_read_on_from(consumer_of, topic):
    with EmbeddedBroker(log_retention_ms=-1) as broker:
        produce(broker, topic, 100)
        with consumer_of(broker, topic) as consumer:
            assert len(read(consumer, 100)) == 100
            broker.kill()
            assert consumer.poll(200) == {}
            broker.restart()
            produce(broker, topic, 100, start=100)
            assert read(consumer, 100) == [b"v%d" % number for number in range(100, 200)]


# Synchronous only: an asynchronous consumer is used in one thread.
def test_close_from_another_thread_ends_the_loop_and_leaves_the_group(our_broker, filled):
    group = f"g-{filled.topic}"
    consumer = sync_consumer_of(our_broker, filled.topic, group_id=group)
    values, last = [], threading.Event()

    def loop():
        for record in consumer:
            values.append(record.value)
            if len(values) == COUNT:
                last.set()

    thread = threading.Thread(target=loop)
    thread.start()
    assert last.wait(BUDGET_MS / 1000)
    eventually(lambda: consumer.position(filled) == COUNT)
    assert consumer.assignment() == {filled}
    consumer.close()
    thread.join(BUDGET_MS / 1000)
    assert not thread.is_alive()
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        assert admin.list_group_offsets(group)[group][filled].offset == COUNT


def test_heartbeat_metrics_move_without_polls(consumer_of, our_broker, filled):
    settings = {"group_id": f"g-{filled.topic}", "heartbeat_interval_ms": 100}
    with consumer_of(our_broker, filled.topic, **settings) as consumer:

        def heartbeats():
            return consumer.metrics()["consumer-coordinator-metrics"]["heartbeat-total"]

        read(consumer, 1)
        before = heartbeats()
        eventually(lambda: heartbeats() >= before + 3)
        assert consumer.metrics()["consumer-coordinator-metrics"]["heartbeat-rate"] > 0


def test_wakeup_from_another_thread_ends_a_long_poll(consumer_of, our_broker, filled):
    with consumer_of(our_broker, filled.topic, auto_offset_reset="latest") as consumer:
        timer = threading.Timer(0.2, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(10 * BUDGET_MS)
        timer.join()


@pytest.mark.behaviour(
    "ConsumerNetworkClient", "a wakeup raises once, even if wakeups were disabled in between"
)
def test_storm_of_wakeups_loses_and_doubles_nothing(consumer_of, our_broker, filled):
    ended = threading.Event()
    with consumer_of(our_broker, fetch_max_wait_ms=20) as consumer:
        consumer.assign([filled])

        def wake():
            while not ended.wait(0.0005):
                consumer.wakeup()

        waker = threading.Thread(target=wake)
        waker.start()
        values, woken = [], 0
        try:
            # On a busy machine all records may be read before the other thread has started.
            while len(values) < COUNT or not woken:
                try:
                    for records in consumer.poll(1000, max_records=50).values():
                        values += [record.value for record in records]
                except WakeupError:
                    woken += 1
        finally:
            ended.set()
            waker.join()
        assert values == [b"v%d" % number for number in range(COUNT)]


def test_interrupt_in_a_poll_leaves_it_usable(consumer_of, our_broker, filled):
    with consumer_of(our_broker, filled.topic) as consumer:
        first = read(consumer, COUNT)
        timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may arrive before the poll begins
            timer.start()
            consumer.poll(30_000)
        timer.join()
        produce(our_broker, filled.topic, 10, start=COUNT)
        assert len(first) == COUNT
        assert read(consumer, 10) == [b"v%d" % number for number in range(COUNT, COUNT + 10)]


@pytest.fixture
def broker_without_groups(tmp_path, monkeypatch):
    """Start a broker that finds a coordinator but supports neither JoinGroup nor the offset requests."""
    of_groups = {JoinGroupRequest, OffsetCommitRequest, OffsetFetchRequest}
    kept = tuple(handler for handler in registry.HANDLERS if handler.request_class not in of_groups)
    monkeypatch.setattr(registry, "HANDLERS", kept)
    with KafkaBroker(BrokerConfig(data_dir=tmp_path / "kafka", port=0, flush="os")) as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)])
        yield broker


def test_a_broker_without_groups_is_said_to_be_one_at_once(consumer_of, broker_without_groups):
    # The asynchronous consumer joins the group in start().
    with (
        pytest.raises(
            UnsupportedVersionError, match=r"supports no version of the group requests.*use assign\(\)"
        ),
        consumer_of(broker_without_groups, "t", group_id="g") as consumer,
    ):
        consumer.poll(10 * BUDGET_MS)


def use_in_child(consumer):
    """Fork a child process in which a poll raises an error and a close returns."""
    child = os.fork()
    if child == 0:
        try:
            consumer.poll(0)
        except IllegalStateError:
            consumer.close()
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_forked_child_cannot_use_it_and_does_no_harm(consumer_of, our_broker, filled):
    with consumer_of(our_broker, filled.topic, max_poll_records=10) as consumer:
        assert len(read(consumer, 10)) == 10
        use_in_child(consumer)
        assert read(consumer, COUNT - 10)[-1] == b"v%d" % (COUNT - 1)


def test_forked_child_does_not_leave_the_group(consumer_of, our_broker, filled):
    group = f"g-{filled.topic}"
    with consumer_of(our_broker, filled.topic, group_id=group, enable_auto_commit=False) as consumer:
        assert len(read(consumer, COUNT)) == COUNT
        use_in_child(consumer)
        # The coordinator rejects the commit of a member that has left.
        consumer.commit()
        with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
            assert admin.list_group_offsets(group)[group][filled].offset == COUNT


def test_broker_without_offsets_of_groups_says_so_in_a_sentence(consumer_of, broker_without_groups):
    filled = TopicPartition("t", 0)
    with consumer_of(broker_without_groups, group_id="readers") as consumer:
        consumer.assign([filled])
        for call in (
            lambda: consumer.poll(1000),
            lambda: consumer.commit({filled: OffsetAndMetadata(1)}),
            lambda: consumer.committed(filled),
        ):
            with pytest.raises(
                UnsupportedVersionError,
                match=r"supports no version of the offset requests.*leave group_id out",
            ):
                call()
