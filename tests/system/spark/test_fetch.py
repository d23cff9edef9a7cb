"""Reading an offset range as a worker does, from our broker: every row, little memory, and no leaks."""

import operator
import os
import threading

import pyarrow as pa
import pytest
from eventually import BUDGET_S

from kafkacore import KafkaConsumer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.producer import KafkaProducer
from kafkacore.spark.columns.output import KafkaColumns
from kafkacore.spark.columns.schema import all_columns
from kafkacore.spark.options import client_arguments
from kafkacore.spark.options.client_arguments import consumer_configs
from kafkacore.spark.reader import fetch
from kafkacore.spark.reader.consumers import CONSUMERS
from kafkacore.spark.reader.fetch import read_range
from kafkacore.spark.reader.offsets import OffsetRange
from kafkacore.spark.reader.options import parse_options
from kafkacore.testing import VirtualClock
from kafkacore.wire import _blocks as blocks

MIB = 1024 * 1024
ROWS, VALUE_BYTES = 40_000, 1_000
SENT_ROWS = 5_000


@pytest.fixture(scope="module")
def topic(make_topic, our_broker):
    """Return a topic with 40 MB in one partition."""
    name = make_topic(partitions=1)
    value = os.urandom(VALUE_BYTES)
    configs = {"bootstrap_servers": our_broker.bootstrap_servers, "batch_size": 256 * 1024, "linger_ms": 5}
    with KafkaProducer(**configs) as producer:
        for first in range(0, ROWS, SENT_ROWS):
            keys = [b"%d" % number for number in range(first, first + SENT_ROWS)]
            table = pa.table({"key": keys, "value": pa.array([value] * SENT_ROWS, pa.binary())})
            producer.send_arrow(name, table, partition=0)
        producer.flush()
    return name


@pytest.fixture(autouse=True)
def _nothing_idle():
    CONSUMERS.close()
    yield
    CONSUMERS.close()


@pytest.fixture
def options(our_broker, topic):
    def of(**more):
        servers = our_broker.bootstrap_servers
        return parse_options({"kafka.bootstrap.servers": servers, "subscribe": topic, **more}, False)

    return of


def read(options, topic, start, end, columns=("offset",), **more):
    plan = KafkaColumns(tuple(columns))
    return read_range(options, OffsetRange(topic, 0, start, end), plan.output(), **more)


def offsets_of(batches):
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def sockets():
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
        except FileNotFoundError:
            # This descriptor belonged to the listing itself.
            continue
    return count


def test_a_range_of_many_answers_is_read_whole_and_in_order(options, topic):
    batches = list(read(options(), topic, 5, ROWS - 5, all_columns(True)))
    assert len(batches) > 2
    assert offsets_of(batches) == list(range(5, ROWS - 5))
    assert [key for batch in batches for key in batch.column("key").to_pylist()] == [
        b"%d" % number for number in range(5, ROWS - 5)
    ]
    assert len({str(batch.schema) for batch in batches}) == 1
    assert set(batches[-1].column("topic").to_pylist()) == {topic}
    assert set(batches[-1].column("partition").to_pylist()) == {0}


def test_what_one_answer_holds_needs_no_thread(options, topic, monkeypatch):
    monkeypatch.setattr(fetch, "Prefetch", None)
    assert offsets_of(read(options(), topic, 100, 200)) == list(range(100, 200))


def test_a_range_without_records_gives_nothing_and_does_not_wait(options, topic):
    assert list(read(options(), topic, 7, 7)) == []


def test_tasks_of_one_process_share_a_consumer(options, topic):
    for start in range(0, 1_000, 10):
        assert offsets_of(read(options(), topic, start, start + 10)) == list(range(start, start + 10))
        assert len(CONSUMERS) == 1


def test_hundred_ranges_leave_no_memory_sockets_or_threads(options, topic):
    def read_some(number):
        start = number * 7 % 100
        end = start + (3_000 if number % 2 else ROWS // 4)
        assert sum(batch.num_rows for batch in read(options(), topic, start, end)) == end - start

    for number in range(4):
        read_some(number)
    before = sockets(), threading.active_count(), blocks.statistics()["used_blocks"]
    for number in range(100):
        read_some(number)
    assert not any(map(operator.gt, (sockets(), threading.active_count()), before))
    # The rest of the last response can still be in memory, because the next range begins with it.
    assert blocks.statistics()["used_blocks"] <= before[2] + 2
    assert len(CONSUMERS) == 1


@pytest.mark.parametrize("taken", [1, 2, 5])
def test_a_read_cut_short_leaves_nothing(options, topic, taken):
    before = sockets(), threading.active_count()
    batches = read(options(), topic, 0, ROWS)
    for _ in range(taken):
        next(batches)
    batches.close()
    assert not any(map(operator.gt, (sockets(), threading.active_count()), before))
    assert len(CONSUMERS) == 0
    assert offsets_of(read(options(), topic, 0, 10)) == list(range(10))


class Counting:
    """The Kafka columns, with a count of the batches built so far."""

    def __init__(self, columns):
        self._output = KafkaColumns(tuple(columns)).output()
        self.fetched, self.schema = self._output.fetched, self._output.schema
        self.made = 0
        self._changed = threading.Condition()

    def batch(self, found, topic, partition):
        with self._changed:
            self.made += 1
            self._changed.notify_all()
        return self._output.batch(found, topic, partition)

    def wait_until_made(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self.made >= count, BUDGET_S)


def test_memory_stays_small_however_slow_spark_is(options, topic):
    output = Counting(all_columns(False))
    most = rows = taken = 0
    before = blocks.statistics()["used_bytes"]
    for batch in read_range(options(), OffsetRange(topic, 0, 0, ROWS), output):
        rows, taken = rows + batch.num_rows, taken + 1
        if rows < ROWS - 3 * batch.num_rows:
            # Act as a slow consumer: let the reader build all batches that it may build ahead.
            output.wait_until_made(taken + 2)
        assert output.made <= taken + 4
        most = max(most, blocks.statistics()["used_bytes"])
        del batch
    assert rows == ROWS
    # In memory are a response being received, one being read, its columns and the batches built ahead:
    # much less than the 40 MB.
    assert most - before < 24 * MIB


def test_what_is_large_when_it_is_decompressed_comes_in_pieces(options, our_broker, make_topic):
    name = make_topic(partitions=1)
    value = b"x" * 20_000
    configs = {"bootstrap_servers": our_broker.bootstrap_servers, "compression_type": "gzip"}
    with KafkaProducer(**configs, batch_size=256 * 1024, linger_ms=5) as producer:
        for _ in range(4):
            producer.send_arrow(name, pa.table({"value": pa.array([value] * 600, pa.binary())}), partition=0)
            producer.flush()
    sizes = []
    rows = 0
    for batch in read_range(options(), OffsetRange(name, 0, 0, 2_400), KafkaColumns(("value",)).output()):
        rows += batch.num_rows
        sizes.append(batch.nbytes)
    assert rows == 2_400
    assert max(sizes) <= fetch.MAX_BATCH_BYTES + MIB
    assert max(sizes[1:]) <= fetch.BATCH_BYTES + MIB


def test_users_fetch_size_is_kept(options, topic):
    small = options(**{"kafka.max.partition.fetch.bytes": str(128 * 1024)})
    batches = list(read(small, topic, 0, 4_000))
    assert len(batches) >= 10
    assert offsets_of(batches) == list(range(4_000))


def test_small_ranges_have_little_more_sent_than_they_hold(options, topic, monkeypatch):
    monkeypatch.setitem(client_arguments.FETCHING, "metrics_enabled", True)
    ranges = [(start, start + 100) for start in range(0, 20_000, 1_000)]
    rows = sum(batch.num_rows for first, end in ranges for batch in read(options(), topic, first, end))
    assert rows == 100 * len(ranges)
    settings = consumer_configs(options().client_configs, for_fetching=True)
    with CONSUMERS.lend(settings, KafkaConsumer.close) as consumer:
        received = consumer.metrics()["consumer-metrics"]["incoming-byte-total"]
    # The first range fetches the maximum, because record sizes are unknown. Each later range may also fetch
    # two partial batches of 256 KiB.
    most = client_arguments.FETCHING["max_partition_fetch_bytes"]
    assert received < most + (len(ranges) - 1) * (1.2 * 100 * VALUE_BYTES + 2.2 * 256 * 1024)


def test_the_group_of_the_options_is_neither_joined_nor_written_to(options, topic):
    grouped = options(**{"kafka.group.id": "other-group"})
    threads = threading.active_count()
    batches = read(grouped, topic, 0, 2_000)
    next(batches)
    assert threading.active_count() <= threads + 1
    batches.close()


def test_error_of_what_makes_the_columns_comes_out_in_the_task(options, topic):
    class Failing:
        def __init__(self):
            self.left = 2
            self.output = KafkaColumns(("offset",)).output()
            self.fetched, self.schema = self.output.fetched, self.output.schema

        def batch(self, found, topic, partition):
            self.left -= 1
            if self.left == 0:
                raise LookupError("no such schema")
            return self.output.batch(found, topic, partition)

    batches = read_range(options(), OffsetRange(topic, 0, 0, ROWS), Failing())
    assert next(batches).num_rows > 0
    with pytest.raises(LookupError, match="no such schema"):
        list(batches)
    assert threading.active_count() == 1 or not any(
        thread.name == "kafkacore-prefetch" for thread in threading.enumerate()
    )
    assert len(CONSUMERS) == 0


def test_records_that_never_come_end_in_a_sentence(our_broker, make_topic):
    """Raise KafkaTimeoutError when records of the range never arrive.

    This happens when the broker does not respond, or when an open transaction hides the records before the
    end of the range. Here the consumer returns no records while time passes.
    """
    clock = VirtualClock()

    class Nothing:
        """A consumer that never returns a record; each poll advances the clock."""

        def __init__(self, consumer):
            self._consumer = consumer

        def __getattr__(self, name):
            return getattr(self._consumer, name)

        def poll_arrow(self, timeout_ms, **_):
            clock.advance(timeout_ms)
            return {}

    name = make_topic([(0, None, b"%d" % n) for n in range(5)], partitions=1)
    servers = our_broker.bootstrap_servers
    options = parse_options(
        {
            "kafka.bootstrap.servers": servers,
            "subscribe": name,
            "kafkaConsumer.pollTimeoutMs": "60000",
        },
        False,
    )
    offsets = OffsetRange(name, 0, 1, 4)
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="none")
    try:
        reading = fetch._Reading(
            Nothing(consumer), options, offsets, KafkaColumns(("offset",)).output(), clock
        )
        with pytest.raises(KafkaTimeoutError, match=r"from offset 1 within 60000 ms .*pollTimeoutMs"):
            next(reading.batches())
    finally:
        consumer.close()


def test_a_topic_made_anew_is_read_by_the_same_consumer(options, our_broker, make_topic):
    from kafkacore.admin import KafkaAdminClient, NewTopic

    name = make_topic([(0, None, b"old")], partitions=1)
    configs = parse_options(
        {"kafka.bootstrap.servers": our_broker.bootstrap_servers, "subscribe": name}, streaming=False
    )
    plan = KafkaColumns(("value",))

    def values(end):
        batches = read_range(configs, OffsetRange(name, 0, 0, end), plan.output())
        return [value for batch in batches for value in batch.column("value").to_pylist()]

    assert values(1) == [b"old"]
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.delete_topics([name])
        admin.create_topics([NewTopic(name, num_partitions=1)])
    make_topic([(0, None, b"new"), (0, None, b"er")], topic=name)
    assert values(2) == [b"new", b"er"]
