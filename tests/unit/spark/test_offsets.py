"""Offset ranges of a micro-batch."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.reader.offsets import OffsetRange, backlog, from_json, limit_to, split, to_json
from kafkacore.structs import TopicPartition

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b", "t-10"]), st.integers(0, 12))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 10**6), max_size=8)


def test_text_of_offsets_has_one_order_whatever_the_order_given():
    one = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    other = dict(reversed(one.items()))
    assert json.dumps(to_json(one)) == json.dumps(to_json(other)) == '{"a": {"9": 3, "10": 2}, "b": {"0": 1}}'


@given(OFFSETS)
def test_offsets_survive_their_text(offsets):
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@given(OFFSETS, OFFSETS, st.integers(1, 10**6))
def test_limited_batch_moves_on_and_keeps_to_its_limit_and_the_end(start, gain, limit):
    start = dict.fromkeys(gain, 0) | start
    latest = {tp: start.get(tp, 0) + gain.get(tp, 0) for tp in {*start, *gain}}
    end = limit_to(start, latest, limit)
    assert all(start.get(tp, 0) <= end[tp] <= latest[tp] for tp in latest)
    assert backlog(start, end) <= limit + len(latest)
    assert (backlog(start, end) > 0) == (backlog(start, latest) > 0)


def test_what_ran_backwards_ends_where_it_is():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert limit_to({a: 700, b: 0}, {a: 5, b: 100}, 10) == {a: 5, b: 10}
    assert backlog({a: 700, b: 0}, {a: 5, b: 100}) == -595


@pytest.mark.parametrize(
    "parsed", [[], {"t": 1}, {"t": {"a": 1}}, {"t": {"0": "1"}}, {"t": {"0": None}}, "x"]
)
def test_checkpoint_of_another_source_is_refused(parsed):
    with pytest.raises(KafkaConfigurationError, match="checkpointLocation of its own"):
        from_json(parsed)


def test_limit_is_shared_in_proportion_to_the_backlog():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert limit_to({a: 0, b: 0}, {a: 900, b: 100}, 100) == {a: 90, b: 10}


def test_a_partition_with_little_to_read_is_not_starved():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert limit_to({a: 0, b: 0}, {a: 10_000, b: 1}, 10)[b] == 1


@given(
    st.lists(
        st.builds(OffsetRange, st.just("t"), st.integers(0, 3), st.integers(0, 50), st.integers(50, 300))
    ),
    st.one_of(st.none(), st.integers(1, 20)),
    st.one_of(st.none(), st.integers(1, 100)),
)
def test_split_ranges_cover_the_same_offsets_once(ranges, min_partitions, max_records):
    pieces = split(ranges, min_partitions, max_records)
    wanted = [(r.partition, o) for r in ranges for o in range(r.start, r.end)]
    assert [(p.partition, o) for p in pieces for o in range(p.start, p.end)] == wanted
    assert all(p.size > 0 for p in pieces)
    assert max_records is None or all(p.size <= max_records for p in pieces)


def test_without_hints_one_task_reads_one_partition():
    ranges = [OffsetRange("t", 0, 0, 10**9), OffsetRange("t", 1, 5, 5)]
    assert split(ranges, None, None) == [OffsetRange("t", 0, 0, 10**9)]


# Results of Spark 4.2.0's KafkaOffsetRangeCalculator.getRanges.
@pytest.mark.parametrize(
    ("sizes", "min_partitions", "max_records", "parts"),
    [
        ([900, 100], 10, None, [100] * 9 + [100]),
        ([10], 4, None, [2, 2, 3, 3]),
        ([11], 4, None, [2, 3, 3, 3]),
        ([3], 5, None, [1, 1, 1]),
        ([10, 40], 5, None, [10, 10, 10, 10, 10]),
        ([10, 40], 2, None, [10, 40]),
        ([10, 40], None, 7, [5, 5, 6, 6, 7, 7, 7, 7]),
        # Both limits: a partition whose pieces are already within their share is not divided further.
        ([10, 40], 12, 7, [5, 5, 6, 6, 7, 7, 7, 7]),
        ([100, 100], 3, None, [50, 50, 50, 50]),
        ([1, 1, 100], 4, None, [1, 1, 50, 50]),
        ([10_000, 1], 3, None, [5_000, 5_000, 1]),
    ],
)
def test_ranges_are_those_of_sparks_own_source(sizes, min_partitions, max_records, parts):
    ranges = [OffsetRange("t", number, 7, 7 + size) for number, size in enumerate(sizes)]
    assert [piece.size for piece in split(ranges, min_partitions, max_records)] == parts
