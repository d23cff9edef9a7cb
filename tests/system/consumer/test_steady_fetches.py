"""Fetches at low rates, with and without the steady path: every record comes once and in order."""

import gc
import os
import random
import signal
import threading
import uuid
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from eventually import BUDGET_MS, eventually
from model.dose import dose, new_seed
from model.fetch_log import ABORT, COMMIT, FetchLog, batch, marker, simple_batch, with_bad_crc
from model.fetch_servers import FetchServers

import kafkacore
from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.fetcher import Fetcher
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.errors import CorruptRecordError, IllegalStateError, WakeupError
from kafkacore.testing import EmbeddedBroker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
PACKAGE = str(Path(kafkacore.__file__).parent)
#: Wait of the broker for records, in milliseconds, in tests that must not depend on its end.
LONG_MS = 20_000


class Reader:
    """A consumer, and a check that the records of each partition come once and in order.

    Another check is that the steady path waits only while all partitions are being fetched.
    """

    def __init__(self, servers, *partitions, **configs):
        self.servers = servers
        configs = {"fetch_max_wait_ms": 100, "reconnect_backoff_ms": 10, "retry_backoff_ms": 20} | configs
        self.consumer = KafkaConsumer(bootstrap_servers=servers.bootstrap_servers, **configs)
        self.fetcher = self.consumer._engine.fetcher
        self.client = self.consumer._engine.client
        self.client.wait = partial(self.wait, self.client.wait)
        self.expected = {}
        self.records = {}
        self.assign(*partitions)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.consumer.close()

    def wait(self, wait, timeout_ms):
        for tp, state in self.consumer._engine.subscriptions.fetchable():
            node_id = self.fetcher._node_for(tp, SYSTEM_CLOCK.monotonic_ms()).node_id
            assert node_id in self.fetcher._pending_nodes
            assert self.fetcher._sessions[node_id]._partitions[tp].fetch_offset == state.position.offset
        return wait(timeout_ms)

    def assign(self, *partitions):
        new = set(partitions) - self.consumer.assignment()
        self.consumer.assign(partitions)
        for tp in new:
            self.seek(tp, self.expected.get(tp, 0))

    def seek(self, tp, offset):
        self.consumer.seek(tp, offset)
        self.expected[tp] = offset

    @property
    def steady_responses(self):
        return self.fetcher._steady.responses

    def poll(self, timeout_ms=BUDGET_MS, **options):
        """Poll, check the offsets, and return the number of records."""
        found = self.consumer.poll(timeout_ms, **options)
        self.check(found, **options)
        return sum(map(len, found.values()))

    def check(self, found, update_offsets=True, **options):
        for tp, records in found.items():
            for number, record in enumerate(records):
                assert (tp, record.offset) == (tp, self.expected[tp] + number)
                assert record.value == b"v%d" % record.offset
            if update_offsets:
                self.expected[tp] += len(records)
                self.records.setdefault(tp, []).extend(records)

    def read_all(self, *partitions):
        """Poll until all records of the partitions, by default of all, have been read."""
        for tp in partitions or self.consumer.assignment():
            eventually(lambda tp=tp: self.is_at_end(tp), lambda: self.expected, step=self.poll)

    def is_at_end(self, tp):
        return self.expected[tp] == self.servers.logs[tp].end_offset

    def append(self, *partitions, **options):
        for tp in partitions or self.consumer.assignment():
            self.servers.append(tp, **options)

    def settle(self):
        """Append to all partitions and read, until the steady path has received a response."""
        before = self.steady_responses

        def step():
            self.append()
            self.read_all()

        eventually(lambda: self.steady_responses > before, step=step)

    def go_on(self):
        """Read everything, and see the steady path again."""
        self.append()
        self.read_all()
        self.settle()


@contextmanager
def reading(*partitions, nodes=1, servers=None, **configs):
    with ExitStack() as stack:
        if servers is None:
            servers = stack.enter_context(FetchServers({tp: FetchLog() for tp in (A0, A1, B0)}, nodes))
        reader = stack.enter_context(Reader(servers, *(partitions or (A0, A1)), **configs))
        yield reader


@contextmanager
def general_path_counted(monkeypatch):
    """Count the responses that the general code receives."""
    calls = []
    with monkeypatch.context() as patch:
        on_response = Fetcher._on_response
        patch.setattr(Fetcher, "_on_response", lambda *args: calls.append(1) or on_response(*args))
        yield calls


# ---- The steady path -------------------------------------------------------------------------------------
@pytest.mark.parametrize("nodes", [1, 2])
def test_records_at_a_low_rate_take_the_steady_path(monkeypatch, nodes):
    with reading(A0, nodes=nodes, fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        with general_path_counted(monkeypatch) as calls:
            before = reader.steady_responses
            for _ in range(20):
                reader.append(A0, count=3)
                assert reader.poll() == 3
            assert (reader.steady_responses, calls) == (before + 20, [])


def test_responses_without_records_take_the_steady_path(monkeypatch):
    """The broker answers when its wait ends, or with a control batch."""
    with reading(A0, fetch_max_wait_ms=1) as reader:
        reader.settle()
        # The fetch after a fetch of the general path is received by the steady path.
        reader.poll(1)
        with general_path_counted(monkeypatch) as calls:
            before = reader.steady_responses
            reader.servers.append_batch(A0, lambda end: marker(end, 5, COMMIT))
            reader.expected[A0] = reader.servers.logs[A0].end_offset

            def end_poll():
                eventually(lambda: reader.steady_responses > before + 20)
                reader.append(A0)

            # One poll, because at the end of each poll the general code may receive a response.
            thread = in_thread(end_poll)
            assert reader.poll() == 1
            thread.join()
            assert len(calls) <= 2
        reader.go_on()


def test_requests_equal_those_of_the_general_path():
    """Compare the decoded requests for the same traffic."""

    def traffic(is_steady):
        servers = FetchServers({tp: FetchLog() for tp in (A0, A1, B0)})
        servers.topic_ids = {"a": uuid.UUID(int=1), "b": uuid.UUID(int=2)}
        with servers, reading(A0, A1, B0, servers=servers, fetch_max_wait_ms=LONG_MS) as reader:
            if not is_steady:
                reader.fetcher._steady = None
            for number in range(12):
                reader.append([A0, A1, B0][number % 3])
                reader.poll()
            servers.await_fetch(13)
            assert not is_steady or reader.steady_responses > 8
            return [repr(each) for each in servers.fetches[0][2:13]]

    assert traffic(True) == traffic(False)


def test_metrics_equal_those_of_the_general_path():
    def traffic(is_steady):
        logs = {tp: FetchLog() for tp in (A0, A1, B0)}
        with (
            FetchServers(logs) as servers,
            reading(A0, A1, servers=servers, fetch_max_wait_ms=LONG_MS) as reader,
        ):
            if not is_steady:
                reader.fetcher._steady = None
            for number in range(20):
                reader.append([A0, A1][number % 2], count=1 + number % 4)
                reader.poll()
            servers.await_fetch(21)
            assert not is_steady or reader.steady_responses > 15
            return {
                f"{group}.{name}": value
                for group, values in reader.consumer.metrics().items()
                for name, value in values.items()
                if name.endswith(
                    ("-total", "-lag", "-lead", "size-avg", "size-max", "-min", "-per-request-avg")
                )
                and "time" not in name
            }

    steady, general = traffic(True), traffic(False)
    assert any("records-consumed-total" in name for name in steady)
    assert steady == general


# ---- Positions and assignment ----------------------------------------------------------------------------
def test_seek_of_a_silent_partition_reads_it_again():
    """Seek a partition backwards, while only the other one gets records."""
    with reading(fetch_max_wait_ms=200) as reader:
        reader.settle()
        reader.seek(A1, 0)
        reader.append(A0)
        reader.read_all()
        reader.go_on()


@pytest.mark.parametrize("offset", ["back", "begin", "forward"])
def test_seek_between_polls(offset):
    with reading() as reader:
        for _ in range(3):
            reader.settle()
            reader.append(A0, count=4)
            at = reader.expected[A0]
            reader.seek(A0, {"back": at - 2, "begin": 0, "forward": at + 3}[offset])
            reader.read_all()
        reader.go_on()


def test_seek_to_beginning_and_to_end():
    with reading() as reader:
        reader.settle()
        reader.consumer.seek_to_beginning(A0)
        reader.expected[A0] = 0
        reader.read_all()
        reader.settle()
        reader.consumer.seek_to_end(A0)
        assert reader.consumer.position(A0) == reader.expected[A0]
        reader.go_on()


def test_paused_partition_is_left_out():
    with reading() as reader:
        reader.settle()
        reader.consumer.pause(A1)
        paused_at = reader.expected[A1]
        for _ in range(3):
            reader.append()
            reader.read_all(A0)
        assert reader.expected[A1] == paused_at
        reader.consumer.resume(A1)
        reader.read_all()
        reader.go_on()


def test_more_partitions_and_a_second_topic_are_assigned():
    with reading(A0, nodes=2) as reader:
        for partitions in ([A0, A1], [A0, A1, B0], [B0], [A0, B0]):
            reader.settle()
            reader.assign(*partitions)
            reader.go_on()


def test_new_partition_does_not_wait_for_the_fetch_in_flight():
    """Fetch from a second node at once, although the fetch to the first node waits for long."""
    with reading(A0, nodes=2, fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        reader.assign(A0, A1)
        reader.append(A1)
        reader.read_all(A1)


def test_records_that_an_interceptor_refuses_come_again():
    """The interceptor raises after the steady path has moved the position; no other record arrives."""

    class Refusing:
        refuses = False

        def on_consume(self, records):
            if Refusing.refuses:
                Refusing.refuses = False
                raise KeyboardInterrupt
            return records

        def on_commit(self, offsets):
            """Do nothing."""

        def close(self):
            """Do nothing."""

    with reading(interceptors=[Refusing()]) as reader:
        reader.settle()
        before = reader.steady_responses
        Refusing.refuses = True
        reader.append(A0)
        with pytest.raises(KeyboardInterrupt):
            reader.poll()
        assert reader.steady_responses > before
        reader.read_all()
        reader.go_on()


def test_poll_without_update_returns_the_records_again():
    with reading() as reader:
        reader.settle()
        for _ in range(3):
            reader.append(A0)
            assert reader.poll(update_offsets=False) == 1
            assert reader.poll(update_offsets=False) == 1
            reader.read_all()
        reader.go_on()


def test_arrow_and_records_in_turn():
    with reading() as reader:
        reader.settle()
        for number in range(12):
            reader.append(A0, count=2)
            if number % 3:
                reader.read_all()
                continue
            found = reader.consumer.poll_arrow(BUDGET_MS, columns=["offset"])
            at = reader.expected[A0]
            assert found[A0].num_rows == 2
            reader.expected[A0] = at + 2
        reader.go_on()


def test_max_poll_records_below_a_response():
    with reading(max_poll_records=3) as reader:
        reader.settle()
        for count in (2, 3, 4, 10, 1, 3):
            reader.append(count=count)
            reader.read_all()
        reader.go_on()


def test_loop_over_the_consumer_and_polls_in_turn():
    with reading(A0, consumer_timeout_ms=BUDGET_MS) as reader:
        reader.settle()
        for _ in range(5):
            reader.append(count=4)
            for number, record in enumerate(reader.consumer):
                reader.check({A0: [record]})
                if number == 1:
                    break
            reader.read_all()
        reader.go_on()


# ---- Deserializers ---------------------------------------------------------------------------------------
class Deserializer:
    """Returns its bytes, after doing what the test has set; counts the calls."""

    def __init__(self):
        self.action = None
        self.seen = []

    def __call__(self, data):
        self.seen.append(data)
        if self.action is not None:
            self.action(data)
        return data


def raise_once(deserializer, value, error):
    def action(data):
        if data == value:
            deserializer.action = None
            raise error

    deserializer.action = action


@pytest.mark.parametrize("index", [0, 1, 3])
def test_deserializer_that_raises_once(index):
    """Deserialize each record once, and the refused one again; raise if no record precedes it."""
    deserializer = Deserializer()
    with reading(A0, value_deserializer=deserializer) as reader:
        reader.settle()
        before, at = reader.steady_responses, reader.expected[A0]
        deserializer.seen.clear()
        refused = b"v%d" % (at + index)
        raise_once(deserializer, refused, ValueError("refused"))
        reader.append(count=4)
        if index == 0:
            with pytest.raises(RecordDeserializationError) as raised:
                reader.poll()
            assert (raised.value.topic_partition, raised.value.offset) == (A0, at)
            assert isinstance(raised.value.__cause__, ValueError)
        else:
            assert reader.poll() == index
        assert reader.steady_responses > before
        reader.read_all()
        assert sorted(deserializer.seen) == sorted([b"v%d" % (at + n) for n in range(4)] + [refused])
        reader.go_on()


def test_deserializer_that_always_raises():
    deserializer = Deserializer()
    with reading(value_deserializer=deserializer) as reader:
        reader.settle()
        at = reader.expected[A0]

        def refuse(data):
            if data == b"v%d" % (at + 1):
                raise ValueError("refused")

        deserializer.action = refuse
        reader.append(A0, count=3)
        assert reader.poll() == 1
        for _ in range(3):
            with pytest.raises(RecordDeserializationError) as raised:
                reader.poll()
            assert raised.value.offset == at + 1
        assert reader.consumer.position(A0) == at + 1
        deserializer.action = None
        reader.seek(A0, at + 2)
        reader.read_all()
        reader.go_on()


def test_deserializer_that_unsubscribes_gets_no_more_records():
    deserializer = Deserializer()
    with reading(A0, value_deserializer=deserializer) as reader:
        reader.settle()
        before, at = reader.steady_responses, reader.expected[A0]

        def unsubscribe(data):
            if data == b"v%d" % (at + 2):
                reader.consumer.unsubscribe()

        deserializer.seen.clear()
        deserializer.action = unsubscribe
        reader.append(count=5)
        assert reader.poll() == 2
        assert reader.steady_responses > before
        assert deserializer.seen == [b"v%d" % (at + number) for number in range(3)]
        deserializer.action = None
        reader.consumer.assign([A0, A1])
        reader.seek(A0, at + 2)
        reader.seek(A1, 0)
        reader.go_on()


def test_deserializer_that_polls_is_refused():
    deserializer = Deserializer()
    with reading(A0, value_deserializer=deserializer) as reader:
        reader.settle()
        before = reader.steady_responses
        deserializer.action = lambda data: reader.consumer.poll(100)
        reader.append()
        with pytest.raises(RecordDeserializationError) as raised:
            reader.poll()
        assert isinstance(raised.value.__cause__, IllegalStateError)
        assert reader.steady_responses > before
        deserializer.action = None
        reader.go_on()


def test_deserializer_that_closes_the_consumer():
    deserializer = Deserializer()
    with reading(A0, value_deserializer=deserializer) as reader:
        reader.settle()
        deserializer.action = lambda data: reader.consumer.close()
        reader.append(count=2)
        with pytest.raises(IllegalStateError, match="closed"):
            reader.poll()


@pytest.mark.parametrize("index", [0, 2])
def test_interrupt_in_a_deserializer(index):
    """No further record arrives; the broker answers the next fetch only after a long time."""
    deserializer = Deserializer()
    with reading(value_deserializer=deserializer, fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        before = reader.steady_responses
        raise_once(deserializer, b"v%d" % (reader.expected[A0] + index), KeyboardInterrupt())
        reader.append(A0, count=4)
        with pytest.raises(KeyboardInterrupt):
            reader.poll()
        assert reader.steady_responses > before
        assert reader.consumer.position(A0) == reader.expected[A0]
        reader.read_all()
        reader.go_on()


# ---- Records that are not returned -----------------------------------------------------------------------
def test_corrupt_batch_raises_after_the_records_before_it():
    with reading() as reader:
        reader.settle()
        at = reader.expected[A0]
        bad = lambda end: with_bad_crc(simple_batch(end, 2))  # noqa: E731
        reader.servers.append_batch(
            A0, lambda end: simple_batch(end, 2), bad, lambda end: simple_batch(end, 1)
        )
        assert reader.poll() == 2
        for _ in range(2):
            with pytest.raises(CorruptRecordError) as raised:
                reader.poll()
            assert (raised.value.topic_partition, raised.value.offset) == (A0, at + 2)
        reader.append(A1)
        reader.seek(A0, at + 4)
        reader.read_all()
        reader.go_on()


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
def test_transactions(isolation_level):
    """Control batches alone, committed and aborted records, in single responses and together."""
    with reading(A0, isolation_level=isolation_level) as reader:
        reader.settle()
        seen = []
        reader.check = lambda found, **options: seen.extend(
            record.value for records in found.values() for record in records
        )
        servers, expected = reader.servers, []
        log = servers.logs[A0]

        def write(text):
            expected.append(text)
            servers.append_batch(
                A0, lambda end: batch([(end, None, text)], producer_id=5, transactional=True)
            )

        def end(kind):
            servers.append_batch(A0, lambda end: marker(end, 5, kind))

        def read():
            eventually(
                lambda: reader.consumer.position(A0) == log.end_offset and seen == expected,
                lambda: (seen, expected),
                step=lambda: reader.poll(50),
            )

        for number in range(4):
            write(b"committed %d" % number)
            read()
            end(COMMIT)
            read()
        with servers.changed:
            first = log.end_offset
            log.aborted.append((5, first, first + 1))
            log.append(batch([(first, None, b"aborted")], producer_id=5, transactional=True))
            log.append(marker(first + 1, 5, ABORT))
            servers.changed.notify_all()
        if isolation_level == "read_uncommitted":
            expected.append(b"aborted")
        read()
        write(b"last")
        end(COMMIT)
        read()
        before = reader.steady_responses
        for number in range(3):
            write(b"more %d" % number)
            read()
        assert reader.steady_responses > before


# ---- Responses of the broker -----------------------------------------------------------------------------
def with_values(**values):
    def change(response):
        for name, value in values.items():
            setattr(response, name, value)
        return response

    return change


CHANGES = {
    "session not found": with_values(error_code=70, responses=[], session_id=0),
    "session epoch": with_values(error_code=71, responses=[], session_id=0),
    "topic id": with_values(error_code=106, responses=[], session_id=0),
    "other session": with_values(session_id=12345),
    "no session": with_values(session_id=0),
    "connection": lambda response: None,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_failed_response(change):
    with reading() as reader:
        for _ in range(2):
            reader.settle()
            reader.servers.change_next(change)
            reader.append(A0)
            reader.read_all()
        reader.go_on()


@pytest.mark.parametrize("code", [1, 2, 3, 5, 6, 74, 75, 78, 100])
def test_failed_partition(code):
    def change(response):
        for topic in response.responses:
            for part in topic.partitions:
                part.error_code, part.records = code, None
        return response

    with reading(auto_offset_reset="earliest") as reader:
        reader.settle()
        reader.servers.change_next(change)
        reader.append(A0)
        if code in {1, 2}:
            # The offset is reset to the beginning; a corrupt log raises an error.
            reader.check = lambda found, **options: [
                reader.expected.__setitem__(tp, records[-1].offset + 1) for tp, records in found.items()
            ]
        with suppress(CorruptRecordError):
            reader.read_all()
        reader.read_all()
        reader.go_on()


def test_lost_connection_while_the_fetch_waits():
    with reading(nodes=2) as reader:
        for node in (0, 1, 1, 0):
            reader.settle()
            reader.servers.hang_up(node)
            reader.go_on()


def test_throttled_response():
    with reading() as reader:
        reader.settle()
        for _ in range(3):
            reader.servers.change_next(with_values(throttle_time_ms=30))
            reader.append(A0)
            reader.read_all()
        reader.go_on()


def test_preferred_replica():
    """A response names another node; after the metadata's age the leader is asked again."""
    with reading(A0, nodes=2, metadata_max_age_ms=1000) as reader:
        reader.settle()

        def change(response):
            for topic in response.responses:
                for part in topic.partitions:
                    part.preferred_read_replica, part.records = 1, None
            return response

        # With the lock, no response without records is changed instead.
        with reader.servers.changed:
            reader.servers.change_next(change)
            reader.append(A0)
        eventually(lambda: reader.servers.fetches[1], step=lambda: reader.poll(20))
        # The second node serves the partition, too.
        reader.servers.change_cluster(lambda: reader.servers.leaders.update({A0: 1}))
        reader.read_all()
        reader.servers.change_cluster(lambda: reader.servers.leaders.update({A0: 0}))
        reader.read_all()
        reader.go_on()


def test_leader_moves_and_its_epoch_grows():
    with reading(nodes=2) as reader:
        servers = reader.servers
        for node in (1, 0, 0, 1):
            reader.settle()

            def change(node=node):
                servers.leaders[A0] = node
                servers.epochs[A0] += 1

            servers.change_cluster(change)
            reader.consumer._engine.metadata.request_update()
            reader.go_on()


def test_steady_path_uses_the_new_leader_epoch():
    """The leader stays, and accepts the fetch in flight with its old epoch."""
    with reading(A0) as reader:
        servers, metadata = reader.servers, reader.consumer._engine.metadata
        reader.settle()
        servers.checks_epochs = False
        servers.epochs[A0] += 1
        metadata.request_update()
        eventually(lambda: metadata.fetch().leader_epoch(A0) == 1, step=lambda: reader.poll(20))
        for _ in range(3):
            reader.append(leader_epoch=1)
            reader.read_all()
        servers.checks_epochs = True
        reader.settle()
        eventually(lambda: servers.fetches[0][-1].topics)
        assert servers.fetches[0][-1].topics[0].partitions[0].current_leader_epoch == 1


def test_recreated_topic():
    with reading(auto_offset_reset="earliest") as reader:
        servers = reader.servers
        reader.settle()

        def recreate():
            servers.topic_ids["a"] = uuid.uuid4()
            for tp in (A0, A1):
                servers.logs[tp] = FetchLog()

        servers.change_cluster(recreate)
        reader.consumer._engine.metadata.request_update()
        reader.expected = dict.fromkeys(reader.expected, 0)
        reader.go_on()


def test_metadata_refresh_between_responses():
    with reading(metadata_max_age_ms=20) as reader:
        for _ in range(20):
            reader.append()
            reader.read_all()
        reader.go_on()


def test_two_brokers_answer_in_the_same_poll():
    with reading(A0, A1, nodes=2, fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        before = reader.steady_responses
        for _ in range(10):
            reader.append()
            reader.read_all()
        assert reader.steady_responses > before


def test_one_of_two_brokers_answers_with_an_error():
    with reading(A0, A1, nodes=2) as reader:
        for node in (0, 1):
            reader.settle()
            reader.servers.change_next(CHANGES["session not found"], node=node)
            reader.go_on()


def framed(payload):
    return len(payload).to_bytes(4) + payload


RAW = {
    "truncated": lambda payload: framed(payload[:-3]),
    "empty": lambda payload: framed(b""),
    "two bytes": lambda payload: framed(payload[:2]),
    "other correlation id": lambda payload: framed(b"\x7f\xff\xff\xff" + payload[4:]),
    "twice": lambda payload: 2 * framed(payload),
    "huge count": lambda payload: framed(payload[:15] + b"\xff\xff\xff\xff\x0f" + payload[20:]),
    "header tags": lambda payload: framed(payload[:4] + b"\x01\x05\x01x" + payload[5:]),
    "trailing bytes": lambda payload: framed(payload + b"more"),
}


@pytest.mark.parametrize("change", RAW.values(), ids=RAW)
def test_malformed_response(change):
    """The consumer closes the connection, or ignores what may be ignored, and reads on."""
    with reading() as reader:
        for _ in range(2):
            reader.settle()
            with reader.servers.changed:
                reader.servers.raw_changes[0].append(change)
            reader.append(A0)
            reader.read_all()
        reader.go_on()


def test_steady_path_is_tried_rarely_in_vain(monkeypatch):
    """Each response has more records than a poll returns, so only the general code can receive it."""
    with reading(A0, max_poll_records=2, fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        # Only the steady path counts the partitions to fetch, when it prepares.
        prepared = []
        count = SubscriptionState.fetchable_count
        monkeypatch.setattr(
            SubscriptionState, "fetchable_count", lambda self: prepared.append(1) or count(self)
        )
        before = reader.steady_responses
        for _ in range(200):
            reader.append(count=5)
            reader.read_all()
        assert reader.steady_responses == before
        assert 0 < len(prepared) < 50
        reader.settle()


def test_large_response_leaves_the_steady_path():
    with reading(A0) as reader:
        reader.settle()
        servers = reader.servers
        for size in (100_000, 10, 60_000, 70_000):
            end = servers.logs[A0].end_offset
            records = [(end + n, None, b"v%d" % (end + n), [("h", bytes(size // 2))]) for n in range(2)]
            servers.append_batch(A0, lambda end, records=records: batch(records))
            reader.read_all()
        reader.go_on()


# ---- Other threads and signals ---------------------------------------------------------------------------
def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_wakeup_while_waiting():
    with reading(fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        for _ in range(3):
            thread = in_thread(reader.consumer.wakeup)
            with pytest.raises(WakeupError):
                reader.poll()
            thread.join()
            reader.append(A0)
            reader.read_all()
        reader.go_on()


def test_wakeups_and_records_at_the_same_time():
    with reading() as reader:
        reader.settle()
        before = reader.expected[A0]
        done = threading.Event()

        def wake():
            while not done.wait(0.001):
                reader.consumer.wakeup()

        thread = in_thread(wake)
        try:
            for _ in range(50):
                reader.append(A0)

                def step():
                    with suppress(WakeupError):
                        reader.poll()

                eventually(lambda: reader.is_at_end(A0), step=step)
        finally:
            done.set()
            thread.join()
        assert reader.expected[A0] == before + 50
        with suppress(WakeupError):
            reader.poll(0)
        reader.go_on()


def test_close_from_another_thread():
    with reading(fetch_max_wait_ms=LONG_MS) as reader:
        reader.settle()
        thread = in_thread(reader.consumer.close)
        with pytest.raises(IllegalStateError):
            reader.poll()
        thread.join()


@pytest.fixture
def interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_interrupt_while_waiting():
    with reading(fetch_max_wait_ms=LONG_MS) as reader:
        for _ in range(3):
            reader.settle()
            interrupt_wait(reader)
            reader.append(A0)
            reader.read_all()
        reader.go_on()


def interrupt_wait(reader):
    """Send a SIGINT when the steady path begins to wait."""
    waiting = threading.Event()
    wait = reader.client.wait

    def noted(*args):
        waiting.set()
        return wait(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader.client, "wait", noted)
        thread = in_thread(lambda: (waiting.wait(), os.kill(os.getpid(), signal.SIGINT)))
        with pytest.raises(KeyboardInterrupt):
            reader.poll()
        thread.join()


def test_interrupt_at_any_line_of_a_poll(ctrl_c):
    """The records of an interrupted poll are returned by the next one, without a further record."""
    with reading() as reader:
        line = 0
        while True:
            line += 1
            reader.settle()
            before = reader.steady_responses
            reader.append(A0)
            start = reader.expected[A0]
            ctrl_c.start(PACKAGE, line)
            found = None
            try:
                found = reader.consumer.poll(BUDGET_MS)
                # Python may run the signal handler only here, after the last line of the poll.
                lines = ctrl_c.stop()
            except KeyboardInterrupt:
                ctrl_c.stop()
                # The interrupt may have come just when the poll returned its records.
                assert reader.consumer.position(A0) in {start, start + 1}
                reader.expected[A0] = reader.consumer.position(A0)
                reader.read_all()
                continue
            reader.check(found)
            if lines < line:
                assert reader.steady_responses > before
                return


def test_unrequested_response_closes_the_connection():
    """A broker sends a frame although no request is in flight."""
    with reading(A0) as reader:
        reader.settle()
        reader.consumer.pause(A0)
        reader.append()
        # The general code handles the response, and no partition is left to fetch.
        reader.poll(20)
        with reader.servers.changed:
            connections = [each for _, each in reader.servers._connections]
        for each in connections:
            with suppress(OSError):
                each.sendall((20).to_bytes(4) + bytes(20))
        reader.poll(20)
        reader.consumer.resume(A0)
        reader.read_all()
        reader.go_on()


# ---- Everything mixed ------------------------------------------------------------------------------------
class Mixture:
    """Random calls of a consumer and random faults of two brokers, with a poll after each."""

    def __init__(self, reader, chance):
        self.reader = reader
        self.servers = reader.servers
        self.chance = chance
        self.steps = [
            *[self.append] * 4, self.seek, self.pause, self.resume, self.assign, self.fail_response,
            self.fail_partition, self.hang_up, self.move_leader, self.refresh, self.wake,
            self.poll_without_update, self.poll_arrow, self.damage,
        ]  # fmt: skip

    def step(self):
        self.chance.choice(self.steps)()
        for _ in range(self.chance.randrange(3)):
            self.poll(self.chance.choice([0, 1, 20, 200]))

    def poll(self, timeout_ms):
        with suppress(WakeupError):
            self.reader.poll(timeout_ms)

    def partition(self):
        return self.chance.choice(sorted(self.reader.consumer.assignment()))

    def append(self):
        self.servers.append(self.partition(), count=self.chance.randrange(1, 4))

    def seek(self):
        tp = self.partition()
        self.reader.seek(tp, self.chance.randrange(self.servers.logs[tp].end_offset + 1))

    def pause(self):
        self.reader.consumer.pause(self.partition())

    def resume(self):
        self.reader.consumer.resume(self.partition())

    def assign(self):
        self.reader.assign(*self.chance.sample([A0, A1, B0], self.chance.randrange(1, 4)))

    def fail_response(self):
        node, change = self.chance.randrange(2), self.chance.choice([*CHANGES.values()])
        self.servers.change_next(change, node=node)

    def fail_partition(self):
        code = self.chance.choice([3, 5, 6, 74, 75, 78, 100])

        def change(response):
            for topic in response.responses:
                for part in topic.partitions[:1]:
                    part.error_code, part.records = code, None
            return response

        self.servers.change_next(change, node=self.chance.randrange(2))

    def hang_up(self):
        self.servers.hang_up(self.chance.randrange(2))

    def move_leader(self):
        tp = self.partition()

        def change():
            self.servers.leaders[tp] = self.chance.randrange(2)
            self.servers.epochs[tp] += 1

        self.servers.change_cluster(change)

    def refresh(self):
        self.reader.consumer._engine.metadata.request_update()

    def wake(self):
        self.reader.consumer.wakeup()

    def poll_without_update(self):
        with suppress(WakeupError):
            self.reader.poll(20, update_offsets=False)

    def poll_arrow(self):
        found = {}
        with suppress(WakeupError):
            found = self.reader.consumer.poll_arrow(20, columns=["offset"])
        for tp, columns in found.items():
            offsets = pa.record_batch(columns).column(0).to_pylist()
            at = self.reader.expected[tp]
            assert offsets == list(range(at, at + len(offsets)))
            self.reader.expected[tp] += len(offsets)

    def damage(self):
        with self.servers.changed:
            self.servers.raw_changes[self.chance.randrange(2)].append(self.chance.choice([*RAW.values()]))

    def finish(self):
        """End all faults and pauses, and read everything."""
        with self.servers.changed:
            self.servers.changes.clear()
            self.servers.raw_changes.clear()
        for tp in self.reader.consumer.paused():
            self.reader.consumer.resume(tp)
        self.poll(0)
        self.reader.read_all()


def test_any_mixture_of_calls_and_faults():
    seed = new_seed()
    for number in range(dose(2, 8)):
        chance = random.Random(f"{seed} {number}")
        # One record of each partition must fit, or the steady path never takes the response.
        settings = {"max_poll_records": chance.choice([3, 500]), "auto_offset_reset": "earliest"}
        with reading(A0, nodes=2, fetch_max_wait_ms=chance.choice([5, 100, 500]), **settings) as reader:
            mixture = Mixture(reader, chance)
            for _ in range(dose(30, 100)):
                mixture.step()
            mixture.finish()
            reader.go_on()


# ---- Our broker ------------------------------------------------------------------------------------------
def send(producer, topic, number):
    producer.send(topic, b"v%d" % number, partition=0).get(timeout=BUDGET_MS / 1000)


def read_one(consumer):
    """Return the value of the next record, the only one."""
    found = []

    def step():
        for records in consumer.poll(500).values():
            found.extend(record.value for record in records)

    eventually(lambda: found, step=step)
    (value,) = found
    return value


def test_group_member_with_auto_commit(our_groups):
    """The next member continues after the committed offset."""
    topic, group = f"t-{uuid.uuid4().hex}", uuid.uuid4().hex
    count = 0
    with KafkaProducer(bootstrap_servers=our_groups.bootstrap_servers) as producer:
        for _ in range(3):
            with KafkaConsumer(
                topic,
                bootstrap_servers=our_groups.bootstrap_servers,
                group_id=group,
                auto_commit_interval_ms=5,
                auto_offset_reset="earliest",
            ) as consumer:
                steady = consumer._engine.fetcher._steady

                def send_and_read(consumer=consumer):
                    nonlocal count
                    send(producer, topic, count)
                    assert read_one(consumer) == b"v%d" % count
                    count += 1

                for _ in range(20):
                    send_and_read()
                # A poll that also receives the response to a commit takes the general path.
                eventually(lambda steady=steady: steady.responses > 0, step=send_and_read)
                tp = TopicPartition(topic, 0)
                committed = eventually(lambda tp=tp: consumer.committed(tp), step=lambda: consumer.poll(10))
                assert 0 < committed <= count


def test_restart_of_the_broker(tmp_path):
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(tmp_path))
        servers = broker.bootstrap_servers
        producer = stack.enter_context(KafkaProducer(bootstrap_servers=servers))
        consumer = stack.enter_context(KafkaConsumer(bootstrap_servers=servers, reconnect_backoff_ms=10))
        consumer.assign([A0])
        consumer.seek(A0, 0)
        steady = consumer._engine.fetcher._steady
        count = 0
        for _ in range(2):
            before = steady.responses
            for _ in range(10):
                send(producer, "a", count)
                assert read_one(consumer) == b"v%d" % count
                count += 1
            assert steady.responses > before
            broker.restart()


# ---- Memory ----------------------------------------------------------------------------------------------
def test_responses_are_released():
    """Neither the steady path nor its records keep the bytes of earlier responses."""

    def views():
        gc.collect()
        return sum(type(each) is memoryview for each in gc.get_objects())

    with reading(fetch_max_wait_ms=LONG_MS) as reader:
        reader.check = lambda found, **options: None

        def traffic():
            for _ in range(20):
                reader.append(A0)
                reader.poll()

        traffic()
        before, responses = views(), reader.steady_responses
        traffic()
        traffic()
        assert reader.steady_responses == responses + 40
        assert (views(), len(reader.fetcher._pins)) == (before, 0)
