"""CompletedFetch: one partition of a fetch response, returned in pieces."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.fetch_log import ABORT, COMMIT, batch, marker, simple_batch, with_bad_crc, with_bad_record

from kafkacore.consumer.completed_fetch import CompletedFetch, ReadOptions
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.errors import CorruptRecordError
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.record import ColumnBuilder, Compression, RecordBatchBuilder
from kafkacore.structs import IsolationLevel, TopicPartition

TP = TopicPartition("topic", 3)
COMMITTED = ReadOptions(isolation_level=IsolationLevel.READ_COMMITTED)


def completed(*batches, offset=0, aborted=(), options=None):
    data = FetchResponse.PartitionData(
        partition_index=TP.partition,
        records=memoryview(b"".join(batches)),
        aborted_transactions=[
            FetchResponse.AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first in aborted
        ],
    )
    return CompletedFetch(TP, data, offset, 17, options or ReadOptions())


def offsets(records):
    return [record.offset for record in records]


def columns(fetch, **limits):
    """Return the offsets that ``fetch_columns`` reads."""
    builder = ColumnBuilder(("offset",))
    count = fetch.fetch_columns(builder, **limits)
    found = pa.record_batch(builder.finish()).column(0).to_pylist()
    assert len(found) == count
    return found


@pytest.mark.kafka("FetcherTest.testLeaderEpochInConsumerRecord", "FetcherTest.testHeaders")
def test_records_carry_everything_that_kafka_python_names():
    (record,) = completed(
        batch([(7, b"key", b"value", [("h", b"x"), ("n", None)])], leader_epoch=4), offset=7
    ).fetch_records(10)
    assert (record.topic, record.partition, record.leader_epoch, record.offset) == ("topic", 3, 4, 7)
    assert (record.timestamp, record.timestamp_type, record.checksum) == (1000, 0, None)
    assert (record.key, record.value, record.headers) == (b"key", b"value", [("h", b"x"), ("n", None)])
    assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)
    assert record.serialized_header_size == 3


def test_null_key_and_value_have_size_minus_one():
    (record,) = completed(batch([(0, None, None)])).fetch_records(10)
    assert (record.key, record.value, record.headers) == (None, None, [])
    sizes = (record.serialized_key_size, record.serialized_value_size, record.serialized_header_size)
    assert sizes == (-1, -1, -1)


def test_records_before_the_fetch_offset_are_skipped():
    fetch = completed(simple_batch(0, 10), offset=4)
    assert offsets(fetch.fetch_records(100)) == [4, 5, 6, 7, 8, 9]
    assert fetch.next_fetch_offset == 10


@pytest.mark.kafka("CompletedFetchTest.testSimple")
@pytest.mark.behaviour(
    "Fetcher",
    "records beyond `max_poll_records` are kept for the next poll, across partitions",
)
def test_limit_carries_the_rest_over_across_batches():
    fetch = completed(simple_batch(0, 5), simple_batch(5, 5))
    assert offsets(fetch.fetch_records(3)) == [0, 1, 2]
    assert fetch.next_fetch_offset == 3
    assert offsets(fetch.fetch_records(4)) == [3, 4, 5, 6]
    assert offsets(fetch.fetch_records(100)) == [7, 8, 9]
    assert fetch.is_consumed
    assert fetch.fetch_records(100) == []


@pytest.mark.kafka("FetcherTest.testUpdatePositionWithLastRecordMissingFromBatch")
@pytest.mark.behaviour(
    "Fetcher",
    "a position moves past the last record, also over compacted records and empty batches",
)
def test_position_moves_past_a_last_record_that_was_compacted_away():
    fetch = completed(batch([(0, b"a", b"1"), (3, b"b", b"2")], last_offset=9))
    assert offsets(fetch.fetch_records(100)) == [0, 3]
    assert fetch.next_fetch_offset == 10


def test_position_moves_past_an_empty_batch():
    fetch = completed(batch([], base_offset=5, last_offset=8), offset=5)
    assert fetch.fetch_records(100) == []
    assert fetch.next_fetch_offset == 9
    assert fetch.is_consumed


def test_trailing_partial_batch_is_left_for_the_next_fetch():
    fetch = completed(simple_batch(0, 2), simple_batch(2, 2)[:-5])
    assert offsets(fetch.fetch_records(100)) == [0, 1]
    assert fetch.next_fetch_offset == 2


@pytest.mark.kafka("FetcherTest.testFetcherIgnoresControlRecords")
def test_control_records_are_never_handed_out():
    fetch = completed(
        simple_batch(0, 2, producer_id=1, transactional=True), marker(2, 1, COMMIT), simple_batch(3, 1)
    )
    assert offsets(fetch.fetch_records(100)) == [0, 1, 3]
    only_marker = completed(marker(2, 1, ABORT), offset=2)
    assert only_marker.fetch_records(100) == []
    assert only_marker.next_fetch_offset == 3


@pytest.mark.kafka(
    "FetcherTest.testReturnCommittedTransactions",
    "FetcherTest.testReturnAbortedTransactionsInUncommittedMode",
    "FetchCollectorTest.testReadCommittedWithAbortedTransaction",
    "CompletedFetchTest.testAbortedTransactionRecordsRemoved",
    "CompletedFetchTest.testCommittedTransactionRecordsIncluded",
)
def test_read_committed_drops_aborted_records_and_moves_past_them():
    batches = [
        simple_batch(0, 2, producer_id=1, transactional=True),  # aborted
        simple_batch(2, 2, producer_id=2, transactional=True),  # committed
        simple_batch(4, 2),  # no transaction
        marker(6, 1, ABORT),
        simple_batch(
            7, 2, producer_id=1, transactional=True
        ),  # committed, by the producer that aborted before
        marker(9, 1, COMMIT),
        marker(10, 2, COMMIT),
    ]
    fetch = completed(*batches, aborted=[(1, 0)], options=COMMITTED)
    assert offsets(fetch.fetch_records(100)) == [2, 3, 4, 5, 7, 8]
    assert fetch.next_fetch_offset == 11
    assert offsets(completed(*batches, aborted=[(1, 0)]).fetch_records(100)) == [0, 1, 2, 3, 4, 5, 7, 8]


@pytest.mark.kafka("FetcherTest.testReadCommittedWithCommittedAndAbortedTransactions")
@pytest.mark.behaviour("Fetcher", "read_committed drops aborted and control records and moves past them")
def test_read_committed_of_interleaved_aborts():
    batches = [
        simple_batch(0, 1, producer_id=1, transactional=True),
        simple_batch(1, 1, producer_id=2, transactional=True),
        simple_batch(2, 1, producer_id=1, transactional=True),
        marker(3, 2, ABORT),
        simple_batch(4, 1, producer_id=2, transactional=True),
        marker(5, 1, ABORT),
        marker(6, 2, COMMIT),
    ]
    fetch = completed(*batches, aborted=[(2, 1), (1, 0)], options=COMMITTED)
    assert offsets(fetch.fetch_records(100)) == [4]


@pytest.mark.kafka("FetcherTest.testInvalidDefaultRecordBatch")
def test_bad_crc_raises_with_its_place_every_time_after_the_records_before():
    fetch = completed(simple_batch(0, 3), with_bad_crc(simple_batch(3, 3)), simple_batch(6, 1))
    assert offsets(fetch.fetch_records(100)) == [0, 1, 2]
    for _ in range(3):
        with pytest.raises(CorruptRecordError) as raised:
            fetch.fetch_records(100)
        assert raised.value.topic_partition == TP
        assert raised.value.offset == 3
    assert fetch.next_fetch_offset == 3
    assert not fetch.is_consumed


def test_unchecked_crc_is_not_looked_at():
    fetch = completed(with_bad_crc(simple_batch(0, 3)), options=ReadOptions(check_crcs=False))
    assert len(fetch.fetch_records(2)) == 2


def test_a_batch_that_decompresses_to_more_than_the_setting_is_refused_by_its_name():
    builder = RecordBatchBuilder(1 << 20, compression=Compression.GZIP)
    builder.append(0, None, bytes(100_000))
    packed = builder.close()
    fetch = completed(packed, options=ReadOptions(max_decompressed_size=50_000))
    with pytest.raises(CorruptRecordError, match="max_decompressed_size=50000"):
        fetch.fetch_records(100)
    assert len(completed(packed, options=ReadOptions(max_decompressed_size=110_000)).fetch_records(100)) == 1


@pytest.mark.kafka("FetcherTest.testParseCorruptedRecord")
@pytest.mark.behaviour(
    "Fetcher",
    "earlier records come first; then every poll raises the corrupt batch with its offset until a seek",
)
def test_bad_record_comes_after_the_good_ones_before_it():
    good = simple_batch(0, 3)
    record_size = (len(good) - 61) // 3
    fetch = completed(with_bad_record(good, record_size * 2))
    assert offsets(fetch.fetch_records(100)) == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as raised:
            fetch.fetch_records(100)
        assert (raised.value.topic_partition, raised.value.offset) == (TP, 2)
    assert fetch.next_fetch_offset == 2


def refuse(bad):
    def deserialize(topic, headers, data):
        if data == bad:
            raise KeyError("no such thing")
        return data.decode()

    return deserialize


@pytest.mark.kafka("CompletedFetchTest.testCorruptedMessage")
@pytest.mark.parametrize("field", ["key", "value"])
def test_deserialization_error_names_the_record_and_does_not_move_past_it(field):
    bad = b"k2" if field == "key" else b"v2"
    fetch = completed(simple_batch(0, 4), options=ReadOptions(**{f"{field}_deserializer": refuse(bad)}))
    good = fetch.fetch_records(100)
    assert [getattr(record, field) for record in good] == [f"{field[0]}0", f"{field[0]}1"]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as raised:
            fetch.fetch_records(100)
        assert (raised.value.topic_partition, raised.value.offset) == (TP, 2)
        assert isinstance(raised.value.__cause__, KeyError)
    assert fetch.next_fetch_offset == 2


@pytest.mark.behaviour(
    "Fetcher",
    "a record that fails to deserialize stays before the position; a seek skips it",
)
def test_deserializer_that_recovers_gets_the_same_record_again():
    refusals = [True]

    def deserialize(topic, headers, data):
        if data == b"v1" and refusals:
            refusals.pop()
            raise ValueError("registry is down")
        return data.decode()

    fetch = completed(simple_batch(0, 3), options=ReadOptions(value_deserializer=deserialize))
    assert [record.value for record in fetch.fetch_records(100)] == ["v0"]
    assert [record.value for record in fetch.fetch_records(100)] == ["v1", "v2"]


def test_interrupt_in_a_deserializer_loses_nothing():
    interrupts = [True]

    def deserialize(topic, headers, data):
        if data == b"v1" and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return data

    fetch = completed(simple_batch(0, 3), options=ReadOptions(value_deserializer=deserialize))
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch_records(100)
    assert fetch.next_fetch_offset == 0
    assert offsets(fetch.fetch_records(100)) == [0, 1, 2]


def test_corruption_error_out_of_a_deserializer_is_the_deserializers():
    def deserialize(topic, headers, data):
        raise CorruptRecordError("inner")

    fetch = completed(simple_batch(0, 1), options=ReadOptions(value_deserializer=deserialize))
    with pytest.raises(RecordDeserializationError):
        fetch.fetch_records(1)


def test_columns_stop_exactly_at_the_end_offset():
    fetch = completed(simple_batch(0, 5), simple_batch(5, 5))
    assert columns(fetch, end_offset=7) == [0, 1, 2, 3, 4, 5, 6]
    assert fetch.next_fetch_offset == 7
    assert columns(fetch, end_offset=7) == []
    assert columns(fetch, end_offset=100) == [7, 8, 9]
    assert fetch.next_fetch_offset == 10


def test_columns_reach_an_end_offset_that_lies_in_a_gap():
    fetch = completed(batch([(0, b"a", b"1"), (2, b"b", b"2"), (8, b"c", b"3")], last_offset=9))
    assert columns(fetch, end_offset=5) == [0, 2]
    assert fetch.next_fetch_offset == 5
    assert columns(fetch, end_offset=8) == []
    assert fetch.next_fetch_offset == 8
    assert columns(fetch, end_offset=10) == [8]
    assert fetch.next_fetch_offset == 10


def test_columns_do_not_pass_the_end_offset_by_control_records():
    fetch = completed(simple_batch(0, 1), marker(1, 1, COMMIT), marker(2, 2, COMMIT), simple_batch(3, 1))
    assert columns(fetch, end_offset=2) == [0]
    assert fetch.next_fetch_offset == 2


def test_columns_carry_the_rest_over():
    fetch = completed(simple_batch(0, 5), simple_batch(5, 5))
    assert columns(fetch, max_records=3) == [0, 1, 2]
    assert columns(fetch, max_records=4) == [3, 4, 5, 6]
    assert columns(fetch) == [7, 8, 9]


def test_columns_and_records_may_take_turns():
    fetch = completed(simple_batch(0, 6))
    assert offsets(fetch.fetch_records(2)) == [0, 1]
    assert columns(fetch, max_records=2) == [2, 3]
    assert offsets(fetch.fetch_records(10)) == [4, 5]


def test_columns_of_a_bad_batch_raise_after_what_came_before():
    fetch = completed(simple_batch(0, 3), with_bad_crc(simple_batch(3, 3)))
    assert columns(fetch) == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as raised:
            columns(fetch)
        assert (raised.value.topic_partition, raised.value.offset) == (TP, 3)


def test_columns_drop_aborted_records():
    fetch = completed(
        simple_batch(0, 2, producer_id=1, transactional=True),
        marker(2, 1, ABORT),
        simple_batch(3, 2),
        aborted=[(1, 0)],
        options=COMMITTED,
    )
    assert columns(fetch) == [3, 4]
    assert fetch.next_fetch_offset == 5


@pytest.mark.kafka("FetcherTest.testFetchNonContinuousRecords")
@settings(max_examples=60)
@given(st.data())
def test_any_order_of_limits_and_ends_gives_every_record_once(data):
    present = sorted(data.draw(st.sets(st.integers(0, 40), min_size=1)))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(present)), max_size=3)) | {len(present)})
    groups = [present[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    batches = [
        batch(
            [(offset, None, b"v") for offset in group],
            last_offset=(groups[i + 1][0] - 1) if i + 1 < len(groups) else group[-1],
        )
        for i, group in enumerate(groups)
    ]
    start = data.draw(st.integers(0, present[-1]))
    fetch = completed(*batches, offset=start)
    found, end = [], start
    while not fetch.is_consumed:
        limit = data.draw(st.integers(1, 5))
        if data.draw(st.booleans()):
            found += offsets(fetch.fetch_records(limit))
        else:
            end = max(end, fetch.next_fetch_offset) + data.draw(st.integers(1, 7))
            found += columns(fetch, max_records=limit, end_offset=end)
            assert fetch.next_fetch_offset <= end
        assert all(offset < fetch.next_fetch_offset for offset in found)
    assert found == [offset for offset in present if offset >= start]


def test_columns_stay_at_an_end_offset_before_the_gap_that_ends_a_batch():
    fetch = completed(batch([(0, None, b"v")], last_offset=1), simple_batch(2, 1))
    assert columns(fetch, end_offset=1) == [0]
    assert fetch.next_fetch_offset == 1
    assert columns(fetch) == [2]


@pytest.mark.kafka(
    "FetcherTest.testReadCommittedAbortMarkerWithNoData",
    "FetcherTest.testEmptyControlBatch",
)
@pytest.mark.parametrize("take", [lambda fetch: offsets(fetch.fetch_records(10)), columns])
@pytest.mark.parametrize("options", [ReadOptions(), COMMITTED])
def test_control_batch_without_a_record_is_stepped_over(options, take):
    empty = batch([], base_offset=1, last_offset=1, producer_id=1, transactional=True, control=True)
    fetch = completed(simple_batch(0, 1), empty, simple_batch(2, 1), options=options)
    assert take(fetch) == [0, 2]


def test_refused_record_behind_a_gap_is_named_by_its_own_offset():
    def refuse(topic, headers, data):
        raise ValueError(data)

    fetch = completed(
        batch([(2, None, b"v")], base_offset=0, last_offset=3), options=ReadOptions(value_deserializer=refuse)
    )
    with pytest.raises(RecordDeserializationError) as raised:
        fetch.fetch_records(10)
    assert raised.value.offset == 2
    assert fetch.next_fetch_offset == 0


@pytest.mark.kafka("CompletedFetchTest.testNoRecordsInFetch")
def test_fetch_without_records_is_done_at_once():
    fetch = completed(offset=5)
    assert fetch.fetch_records(10) == []
    assert fetch.is_consumed
    assert fetch.next_fetch_offset == 5
    assert not fetch.has_whole_batch
