"""Transactions of our producer on Apache Kafka 4.3.1 and on our broker, with transaction.version 1 and 2.

The tests check what read_committed consumers (Java's and ours) read, which offsets a group has, and which
producers are fenced. ``test_exactly_once.py`` shows that kills lose and duplicate no records.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow
import pytest
from eventually import BUDGET_S, eventually
from model.topic_reader import await_markers
from peers.java_peer import JavaPeer
from peers.transaction_copier import Group
from peers.transactional import KIND_NAMES, KINDS, Broker, started

from kafkacore import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafkacore.errors import (
    CommitFailedError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    MessageSizeTooLargeError,
    ProducerFencedError,
    TransactionAbortedError,
)
from kafkacore.structs import ConsumerGroupMetadata

#: Settings with which a broker aborts timed-out transactions soon.
EAGER = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
_names = itertools.count(1)


@pytest.fixture(scope="module", params=KINDS, ids=KIND_NAMES)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with started(tmp_path_factory.mktemp("transactions") / "data", request.param, EAGER) as broker:
        yield broker


@pytest.fixture
def topic(kafka: Broker, java_peer: JavaPeer) -> str:
    name = f"transactions-{next(_names)}"
    java_peer.create_topic(kafka.bootstrap_servers, name, 2)
    return name


def make_producer(kafka: Broker, transactional_id: str, **settings: Any) -> KafkaProducer:
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, transactional_id=transactional_id, **settings
    )
    producer.init_transactions()
    return producer


def by_java(java_peer: JavaPeer, kafka: Broker, topic: str, *, is_open: bool = False) -> list[bytes | None]:
    """Return the committed values, once all markers of ended transactions are written."""
    if not is_open:
        await_markers(kafka.bootstrap_servers, topic, 2)
    received = java_peer.consume(kafka.bootstrap_servers, topic, None, {"isolation.level": "read_committed"})
    return [each.value for each in sorted(received, key=lambda each: (each.partition, each.offset))]


def by_ours(kafka: Broker, topic: str) -> tuple[list[bytes], list[int]]:
    """Return the committed values and the positions after them; no transaction may be open."""
    mine = [TopicPartition(topic, partition) for partition in range(2)]
    found: dict[TopicPartition, list[bytes]] = {each: [] for each in mine}
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign(mine)
        ends = consumer.end_offsets(mine)

        def step() -> None:
            for each, records in consumer.poll(timeout_ms=100).items():
                found[each] += [record.value for record in records]

        eventually(lambda: all(consumer.position(each) >= ends[each] for each in mine), step=step)
        return [value for each in mine for value in found[each]], [consumer.position(each) for each in mine]


def last_stable_offset(kafka: Broker, topic: str) -> int:
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
    ) as consumer:
        place = TopicPartition(topic, 0)
        return int(consumer.end_offsets([place])[place])


def await_stable_offset(kafka: Broker, topic: str, wanted: int) -> None:
    eventually(lambda: last_stable_offset(kafka, topic) >= wanted)


# ---- Commit and abort --------------------------------------------------------------------------------------


def test_what_is_committed_is_seen_and_what_is_aborted_never(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    with make_producer(kafka, topic) as producer:
        for number in range(6):
            producer.begin_transaction()
            futures = [producer.send(topic, b"%d-%d" % (number, n), partition=n % 2) for n in range(4)]
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
            assert all(future.get(timeout=0).offset >= 0 for future in futures)
    committed = [b"%d-%d" % (number, n) for p in range(2) for number in (0, 2, 4) for n in (p, p + 2)]
    assert by_java(java_peer, kafka, topic) == committed
    values, positions = by_ours(kafka, topic)
    assert values == committed
    # Six transactions of two records in each partition, each followed by a marker.
    assert positions == [18, 18]


def test_an_open_transaction_is_seen_by_nobody_who_wants_what_is_committed(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).get(timeout=BUDGET_S)
        assert by_java(java_peer, kafka, topic, is_open=True) == []
        assert last_stable_offset(kafka, topic) == 0
        producer.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"open"]


def test_rows_and_tables_are_part_of_the_transaction(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    table = pyarrow.table({"value": [b"c", b"d"], "partition": pyarrow.array([0, 1], pyarrow.int32())})
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send_batch(topic, [b"a", b"b"], partition=0)
        producer.send_arrow(topic, table)
        producer.commit_transaction()
        producer.begin_transaction()
        rows = producer.send_batch(topic, [b"x", b"y"], partition=0)
        rows.get(timeout=BUDGET_S)
        producer.abort_transaction()
        with pytest.raises(IllegalStateError, match="begin_transaction"):
            producer.send_batch(topic, [b"z"], partition=0)
    assert by_java(java_peer, kafka, topic) == [b"a", b"b", b"c", b"d"]


def test_what_was_not_sent_fails_with_the_abort(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    with make_producer(kafka, topic, linger_ms=60_000) as producer:
        producer.begin_transaction()
        future = producer.send(topic, b"lingers", partition=0)
        producer.abort_transaction()
        assert isinstance(future.exception, TransactionAbortedError)
        assert not future.exception.possibly_persisted
        producer.begin_transaction()
        producer.send(topic, b"next", partition=0)
        producer.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"next"]


def test_a_commit_says_which_record_failed_and_after_the_abort_all_goes_on(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    with make_producer(kafka, topic, max_request_size=8 << 20, batch_size=1) as producer:
        producer.begin_transaction()
        good = producer.send(topic, b"good", partition=0)
        producer.send(topic, b"v" * (5 << 20), partition=1)
        with pytest.raises(MessageSizeTooLargeError, match="MESSAGE_TOO_LARGE"):
            producer.commit_transaction()
        with pytest.raises(MessageSizeTooLargeError, match="abort_transaction"):
            producer.send(topic, b"refused")
        producer.abort_transaction()
        assert good.succeeded() or isinstance(good.exception, TransactionAbortedError)
        for value in (b"next", b"and next"):
            producer.begin_transaction()
            producer.send(topic, value, partition=1)
            producer.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"next", b"and next"]


def test_threads_share_a_transaction(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()

        def send(name: int) -> None:
            for number in range(50):
                producer.send(topic, b"%d %d" % (name, number), partition=name % 2)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.commit_transaction()
    values = by_java(java_peer, kafka, topic)
    assert len(values) == 500
    for name in range(10):
        mine = [value for value in values if value is not None and value.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, number) for number in range(50)]


def test_leaving_the_with_block_in_a_transaction_aborts_it(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"never", partition=0).get(timeout=BUDGET_S)
    assert by_java(java_peer, kafka, topic) == []
    assert last_stable_offset(kafka, topic) == 2


# ---- Offsets -----------------------------------------------------------------------------------------------


def test_offsets_are_the_groups_with_the_commit_and_not_with_an_abort(kafka: Broker, topic: str) -> None:
    group = Group(kafka.bootstrap_servers, f"group-{topic}", topic, 2)
    place = TopicPartition(topic, 0)
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send_offsets_to_transaction({place: OffsetAndMetadata(5, "note")}, f"group-{topic}")
        producer.abort_transaction()
        assert group.committed() == {0: 0, 1: 0}
        producer.begin_transaction()
        producer.send(topic, b"with them", partition=0)
        offsets = {place: OffsetAndMetadata(7), TopicPartition(topic, 1): OffsetAndMetadata(8)}
        producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(f"group-{topic}"))
        producer.commit_transaction()
    assert group.committed() == {0: 7, 1: 8}


def test_a_member_of_an_old_generation_is_fenced_and_a_live_one_is_not(kafka: Broker, topic: str) -> None:
    name = f"group-{topic}"
    with KafkaConsumer(
        topic, bootstrap_servers=kafka.bootstrap_servers, group_id=name, enable_auto_commit=False
    ) as member:
        eventually(lambda: member.assignment(), step=lambda: member.poll(timeout_ms=100))
        alive = member.group_metadata()
        place = TopicPartition(topic, 0)
        with make_producer(kafka, topic) as producer:
            producer.begin_transaction()
            producer.send_offsets_to_transaction({place: OffsetAndMetadata(3)}, alive)
            producer.commit_transaction()
            stale = ConsumerGroupMetadata(name, alive.generation_id + 7, alive.member_id)
            producer.begin_transaction()
            with pytest.raises(CommitFailedError, match="the consumer was removed from its group"):
                producer.send_offsets_to_transaction({place: OffsetAndMetadata(4)}, stale)
            with pytest.raises(CommitFailedError, match="abort_transaction"):
                producer.commit_transaction()
            producer.abort_transaction()
        assert Group(kafka.bootstrap_servers, name, topic, 2).committed()[0] == 3


# ---- Fencing -----------------------------------------------------------------------------------------------


def test_a_second_producer_of_the_id_fences_the_first(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    with make_producer(kafka, topic) as first, make_producer(kafka, f"{topic}-other") as other:
        first.begin_transaction()
        first.send(topic, b"open", partition=0).get(timeout=BUDGET_S)
        with make_producer(kafka, topic) as second:
            with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
                first.commit_transaction()
            second.begin_transaction()
            second.send(topic, b"second", partition=0)
            second.commit_transaction()
        with pytest.raises(ProducerFencedError):
            _end(first)
        other.begin_transaction()
        other.send(topic, b"other", partition=0)
        other.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"second", b"other"]


def _end(producer: KafkaProducer) -> None:
    """Abort as a program does after an error.

    The second call is needed because the first only raises the error.
    """
    try:
        producer.abort_transaction()
    except InvalidProducerEpochError:
        producer.abort_transaction()


def test_a_fenced_producer_hears_of_it_when_it_writes(kafka: Broker, topic: str) -> None:
    with make_producer(kafka, topic) as first:
        first.begin_transaction()
        first.send(topic, b"open", partition=0).get(timeout=BUDGET_S)
        with make_producer(kafka, topic):
            future = first.send(topic, b"too late", partition=0)
            with pytest.raises(ProducerFencedError):
                future.get(timeout=BUDGET_S)
            with pytest.raises(ProducerFencedError):
                _end(first)


def test_a_transaction_that_a_killed_process_left_open_is_aborted_by_the_next_of_its_id(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    program = (
        "import sys; from kafkacore import KafkaProducer; "
        "producer = KafkaProducer(bootstrap_servers=sys.argv[1], transactional_id=sys.argv[2]); "
        "producer.init_transactions(); producer.begin_transaction(); "
        "producer.send(sys.argv[2], b'orphan', partition=0).get(timeout=30); "
        "print('open', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, kafka.bootstrap_servers, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        child.communicate()
    assert last_stable_offset(kafka, topic) == 0
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"heir", partition=0)
        producer.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"heir"]
    # The record "orphan", the marker that aborted it, the record "heir", and its marker.
    assert by_ours(kafka, topic) == ([b"heir"], [4, 0])


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker(
    kafka: Broker, java_peer: JavaPeer, topic: str
) -> None:
    with make_producer(kafka, topic, transaction_timeout_ms=5_000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"slow", partition=0).get(timeout=BUDGET_S)
        await_stable_offset(kafka, topic, 2)
        with pytest.raises((ProducerFencedError, InvalidTxnStateError), match="transaction_timeout_ms"):
            producer.commit_transaction()
    with make_producer(kafka, topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"quick", partition=0)
        producer.commit_transaction()
    assert by_java(java_peer, kafka, topic) == [b"quick"]


def test_a_time_out_longer_than_the_brokers_is_refused(kafka: Broker) -> None:
    with (
        KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers,
            transactional_id="patient",
            transaction_timeout_ms=2**31 - 1,
        ) as producer,
        pytest.raises(InvalidTransactionTimeoutError),
    ):
        producer.init_transactions()


def test_other_clients_transactions_do_not_mind_ours(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    theirs = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-theirs"}
    )
    theirs.init_transactions(30)
    with make_producer(kafka, topic) as producer:
        for number in range(3):
            theirs.begin_transaction()
            producer.begin_transaction()
            theirs.produce(topic, b"theirs %d" % number, partition=0)
            producer.send(topic, b"ours %d" % number, partition=0)
            theirs.commit_transaction(30)
            producer.commit_transaction()
    values = by_java(java_peer, kafka, topic)
    for whose in (b"ours", b"theirs"):
        mine = [value for value in values if value is not None and value.startswith(whose)]
        assert mine == [b"%s %d" % (whose, number) for number in range(3)]


def test_the_example_prints_what_was_committed(kafka: Broker, java_peer: JavaPeer, topic: str) -> None:
    java_peer.create_topic(kafka.bootstrap_servers, f"{topic}-invoices", 1)
    example = Path(__file__).resolve().parents[3] / "examples" / "transactions.py"
    command = [
        sys.executable,
        "-W",
        "error",
        str(example),
        kafka.bootstrap_servers,
        topic,
        f"{topic}-invoices",
    ]
    expected = Counter(
        line
        for number in (0, 1, 2, 4)
        for line in (f"{topic} order {number}", f"{topic}-invoices invoice of order {number}")
    )
    written: Counter[str] = Counter()

    def prints_all() -> bool:
        """Run it once more, and return whether it prints everything.

        It stops when no record arrives for 3 s, which may be too early on a slow machine.
        """
        written.update(expected)
        done = subprocess.run(command, capture_output=True, timeout=2 * BUDGET_S, check=False, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        aborted, *printed = done.stdout.splitlines()
        assert aborted == "aborted: simulated failure"
        assert Counter(printed) <= written
        return Counter(printed) == written

    eventually(prints_all)
