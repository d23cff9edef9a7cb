"""ConsumerRecord: one record for the user, made when it is read."""

import copy
import pickle

import kafka.consumer.fetcher
import pytest
from model.fetch_log import batch, simple_batch

from kafkacore.consumer._record import ConsumerRecord, RecordReader
from kafkacore.record import read_batches


def read(data, limit=100, from_offset=0):
    out = []
    RecordReader(next(iter(read_batches(data))), "t", 0).read(out, limit, from_offset)
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


def test_same_object_is_given_each_time():
    (record,) = read(batch([(0, b"k", b"v", [("h", b"x")])]))
    assert record.value is record.value
    assert record.headers is record.headers


def test_reader_hands_out_a_few_at_a_time():
    reader = RecordReader(next(iter(read_batches(simple_batch(10, 5)))), "t", 0)
    out = []
    assert not reader.read(out, 2, 11)
    assert [record.offset for record in out] == [11, 12]
    assert reader.read(out, 100, 11)
    assert [record.offset for record in out] == [11, 12, 13, 14]
    assert reader.pending_offset is None
