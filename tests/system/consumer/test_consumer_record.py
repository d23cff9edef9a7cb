"""ConsumerRecord: a record that is created when the user reads it."""

import copy
import gc
import pickle
import weakref

import kafka.consumer.fetcher
import pytest
from model.fetch_log import batch, simple_batch

from kafkacore.consumer._memory import FetchMemory, PinLedger
from kafkacore.consumer._reader import RecordReader
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.errors import IllegalStateError


def reader_of(data, from_offset=0, memory=None, **options):
    memory = FetchMemory(PinLedger()) if memory is None else memory
    return RecordReader(data, "t", 0, from_offset, memory, lambda batch: True, **options)


def read(data, limit=100, from_offset=0, memory=None):
    out = []
    reader_of(data, from_offset, memory).read(out, limit)
    return out


def test_fields_are_kafka_pythons():
    assert ConsumerRecord._fields == kafka.consumer.fetcher.ConsumerRecord._fields
    values = ("t", 1, 2, 3, 4, 0, b"k", b"v", [("h", b"x")], None, 1, 1, 2)
    theirs = kafka.consumer.fetcher.ConsumerRecord(*values)
    ours = ConsumerRecord(*values)
    assert ours == theirs
    assert tuple(ours) == tuple(theirs)
    assert ours._asdict() == theirs._asdict()
    assert repr(ours) == repr(theirs)
    assert (ours[3], len(ours), ours[-1]) == (3, 13, 2)


def test_sizes_are_those_of_the_serialized_data():
    record = ConsumerRecord("t", 0, -1, 0, 0, 0, "key", 5, [("ä", None)])
    assert (record.serialized_key_size, record.serialized_value_size) == (3, -1)
    assert record.serialized_header_size == 2


def test_record_unpacks_and_matches():
    (record,) = read(batch([(4, b"k", None)]))
    topic, partition, _, offset, *_ = record
    assert (topic, partition, offset) == ("t", 0, 4)
    match record:
        case ConsumerRecord("t", 0, _, 4, key=b"k", value=None):
            pass
        case _:
            pytest.fail("it did not match")


def test_record_survives_pickling_and_copying():
    for record in read(batch([(0, b"k", b"v", [("h", b"x")]), (1, None, None)])):
        assert pickle.loads(pickle.dumps(record)) == record
        assert copy.copy(record) == record


def test_detached_record_lets_go_of_its_buffer():
    buffer = bytearray(simple_batch(0, 3))
    records = read(buffer)
    with pytest.raises(BufferError):
        buffer.clear()
    values = [record.detach().value for record in records]
    records[0].detach()
    buffer.clear()
    assert values == [b"v0", b"v1", b"v2"]
    assert [record.key for record in records] == [b"k0", b"k1", b"k2"]


def test_record_is_not_equal_to_others():
    first, second = read(simple_batch(0, 2))
    assert first == copy.copy(first)
    assert first != second
    assert first != "something else"
    with pytest.raises(TypeError):
        hash(first)


def test_headers_are_one_list_and_values_are_equal_each_time():
    (record,) = read(batch([(0, b"k", b"value", [("h", b"x")])]))
    assert record.value == record.value == b"value"
    record.headers.append(("n", None))
    assert record.headers == [("h", b"x"), ("n", None)]


def test_collector_walks_records_only_when_they_hold_more_than_bytes():
    first, second = read(simple_batch(0, 2))
    assert first.value == b"v0"
    assert not gc.is_tracked(first)
    assert second.headers == []
    assert gc.is_tracked(second)
    assert gc.is_tracked(first.detach())


def test_record_in_a_cycle_with_its_own_value_is_collected():
    class Value:
        pass

    out = []
    reader_of(simple_batch(0, 1), value_deserializer=lambda topic, headers, data: Value()).read(out, 1)
    (record,) = out
    record.value.record = record
    gone = weakref.ref(record.value)
    out.clear()
    del record
    gc.collect()
    assert gone() is None


def test_record_made_without_arguments_has_nothing_and_breaks_nothing():
    record = ConsumerRecord.__new__(ConsumerRecord)
    assert (record.key, record.value, record.headers, record.topic) == (None, None, [], None)
    assert record.serialized_value_size is None
    assert record.detach() is record


def test_record_made_again_is_another_record():
    (record,) = read(simple_batch(0, 1))
    record.__init__("other", 1, 2, 3, 4, 0, None, b"new")
    assert (record.topic, record.offset, record.value) == ("other", 3, b"new")


def test_record_in_the_memory_of_another_has_nothing_of_it():
    for round_ in range(3):
        records = read(batch([(0, b"k", b"%d" % round_, [("h", b"x")])]))
        assert records[0].headers == [("h", b"x")]
        del records
        fresh = ConsumerRecord.__new__(ConsumerRecord)
        assert (fresh.key, fresh.value, fresh.headers, fresh.offset) == (None, None, [], 0)
        assert [record.value for record in read(simple_batch(0, 2))] == [b"v0", b"v1"]


def test_more_records_than_are_kept_for_reuse_come_and_go():
    data = batch([(offset, None, b"x") for offset in range(40_000)])
    for _ in range(2):
        records = read(data, limit=40_000)
        assert (len(records), records[-1].offset) == (40_000, 39_999)


def test_deserialized_record_holds_no_buffer():
    buffer, out = bytearray(simple_batch(0, 3)), []
    reader = reader_of(buffer, value_deserializer=lambda topic, headers, data: data.decode())
    reader.read(out, 3)
    reader.drain()
    del reader
    buffer.clear()
    assert [(record.key, record.value, record.serialized_value_size) for record in out] == [
        (b"k0", "v0", 2), (b"k1", "v1", 2), (b"k2", "v2", 2)
    ]  # fmt: skip


def test_deserializer_that_polls_is_refused():
    def poll(topic, headers, data):
        reader.read([], 1)

    reader = reader_of(simple_batch(0, 3), value_deserializer=poll)
    with pytest.raises(IllegalStateError, match="deserializer"):
        reader.read([], 3)


# ---- How long records keep a response in memory ------------------------------------------------------------


class Response:
    """A response with 1,000 records (100 KB), of which each poll returns a hundred."""

    def __init__(self):
        self.ledger = PinLedger()
        self.memory = FetchMemory(self.ledger)
        self.buffer = bytearray(batch([(offset, None, b"%0100d" % offset) for offset in range(1000)]))
        self.memory.add_part(len(self.buffer))
        self.reader = reader_of(self.buffer, memory=self.memory)

    def poll(self):
        self.ledger.begin_poll()
        out = []
        if self.reader is not None:
            self.reader.read(out, 100)
        return out

    def drop_buffer(self):
        """Release the response, as the fetch buffer does after the last record was returned."""
        self.memory.part_is_done()
        self.reader.drain()
        self.reader = None

    @property
    def is_pinned(self):
        try:
            self.buffer.append(0)
        except BufferError:
            return True
        return False


def test_few_records_that_are_kept_stop_holding_the_response():
    response = Response()
    kept = [response.poll()[7] for _ in range(10)]
    response.drop_buffer()
    assert response.is_pinned
    response.poll()
    response.poll()
    assert not response.is_pinned
    assert [record.value for record in kept] == [b"%0100d" % (100 * poll + 7) for poll in range(10)]
    assert [record.topic for record in kept] == ["t"] * 10
    assert len(response.ledger) == 0


def test_records_are_left_alone_while_the_rest_of_their_response_waits():
    response = Response()
    record = response.poll()[0]
    for _ in range(5):
        response.poll()
    assert not gc.is_tracked(record)


def test_what_the_last_poll_gave_is_left_alone():
    response = Response()
    records = response.poll()
    response.drop_buffer()
    response.poll()
    assert response.is_pinned
    assert not gc.is_tracked(records[0])
    response.poll()
    assert not response.is_pinned
    assert records[99].value == b"%099d9" % 9


def test_many_records_that_are_kept_go_on_holding_the_response():
    response = Response()
    kept = [record for _ in range(10) for record in response.poll()[:50]]
    response.drop_buffer()
    for _ in range(100):
        response.poll()
    assert response.is_pinned
    del kept[100:]
    for _ in range(100):
        response.poll()
    assert not response.is_pinned
    assert kept[99].value == b"%0100d" % 149


def test_records_of_a_small_response_hold_a_read_buffer_and_are_detached():
    ledger = PinLedger()
    buffer = bytearray(simple_batch(0, 3))
    memory = FetchMemory(ledger)
    kept = read(buffer, memory=memory)
    for _ in range(3):
        ledger.begin_poll()
    buffer.clear()
    assert [record.value for record in kept] == [b"v0", b"v1", b"v2"]


def test_ledger_forgets_responses_of_which_nothing_is_left():
    response = Response()
    for _ in range(10):
        response.poll()
    response.drop_buffer()
    assert not response.memory.is_pinned
    assert not response.is_pinned
    assert len(response.ledger) == 0


def test_reader_hands_out_a_few_at_a_time():
    reader = reader_of(simple_batch(10, 5) + simple_batch(15, 2), 11)
    out = []
    reader.read(out, 2)
    assert [record.offset for record in out] == [11, 12]
    assert (reader.next_offset, reader.is_consumed) == (13, False)
    reader.read(out, 100)
    assert [record.offset for record in out] == [11, 12, 13, 14, 15, 16]
    assert (reader.next_offset, reader.is_consumed) == (17, True)
