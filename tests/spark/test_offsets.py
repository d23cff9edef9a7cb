"""The arithmetic of a micro-batch."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kafkacore.spark.offsets import OffsetRange, backlog, from_json, limit_to, split, to_json
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
    latest = {tp: start.get(tp, 0) + gain.get(tp, 0) for tp in {*start, *gain}}
    end = limit_to(start, latest, limit)
    assert all(start.get(tp, 0) <= end[tp] <= latest[tp] for tp in latest)
    assert backlog(start, end) <= limit + len(latest)
    assert (backlog(start, end) > 0) == (backlog(start, latest) > 0)


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


def test_min_partitions_cuts_the_large_ones():
    pieces = split([OffsetRange("t", 0, 0, 900), OffsetRange("t", 1, 0, 100)], 10, None)
    assert len(pieces) == 10
