"""Topics that grow, appear, disappear and are recreated, while streams run or between runs.

Our source gives the records that Spark's own source gives.
"""

import contextlib
import uuid

import pytest
from eventually import eventually
from peers.streams import SOURCES, kind_of, outcomes

#: For a query that must notice changes soon, and whose consumers must not recreate a deleted topic. Kafka's
#: admin client asks for the offsets of a deleted topic until its timeout, which is a minute by default.
SOON = {
    "fetchOffset__numRetries": "2",
    "kafka__allow__auto__create__topics": "false",
    "kafka__request__timeout__ms": "5000",
    "kafka__default__api__timeout__ms": "5000",
}


@pytest.fixture
def both(streams):
    """Return a function that starts a query of each source, Spark's own first.

    Several pairs may run at once.
    """

    @contextlib.contextmanager
    def start(topic, **options):
        with contextlib.ExitStack() as stack:
            yield [
                stack.enter_context(streams.running(source, topic, folder=uuid.uuid4().hex, **options))
                for source in SOURCES
            ]

    return start


def same(queries):
    """Check that both queries have returned the same rows, and return them."""
    theirs, ours = (query.settle() for query in queries)
    assert ours == theirs
    return ours


def await_both(queries, expected):
    """Wait until both queries have received this: the sources discover new partitions with a delay."""

    def found():
        return [query.settle() for query in queries]

    eventually(lambda: found() == [expected, expected], lambda: f"{found()} instead of {expected}")


def ends(queries):
    """Wait until both queries have stopped by themselves, and return the kinds of their errors."""
    kinds = []
    for source, running in zip(SOURCES, queries, strict=True):
        query = running.query
        eventually(
            lambda query=query: not query.isActive,
            lambda query=query, source=source: f"the query of {source} does not stop: {query.status}",
        )
        kinds.append(kind_of(query.exception()))
    theirs, ours = kinds
    assert ours == theirs
    return ours


# ---- Added partitions --------------------------------------------------------------------------------------


def test_partitions_added_between_runs_are_read_from_their_first_record(streams, topic):
    options = {"startingOffsets": "latest", "assign": '{"TOPIC": [0, 1, 2, 3]}'}
    topic.send(6)
    assert outcomes(streams.drain, topic, **options) == []
    topic.grow(4)
    topic.send(20, partitions=4)
    batches = outcomes(streams.drain, topic, maxOffsetsPerTrigger="8", **options)
    found = {}
    for batch in batches:
        for (_, partition), offsets in batch.items():
            found.setdefault(partition, []).extend(offsets)
    assert found == {0: [*range(3, 8)], 1: [*range(3, 8)], 2: [*range(5)], 3: [*range(5)]}
    assert len(batches) > 2


def test_each_source_goes_on_from_the_others_checkpoint_with_partitions_it_does_not_name(streams, topic):
    found = {}
    for count, source in enumerate(("kafka", "kafkacore", "kafka")):
        if count:
            topic.grow(2 + count)
        topic.send(6, partitions=2 + count)
        [batch] = streams.drain(source, topic, folder="shared")
        for (_, partition), offsets in batch.items():
            found.setdefault(partition, []).append(offsets)
    assert found == {
        0: [[0, 1, 2], [3, 4], [5, 6]],
        1: [[0, 1, 2], [3, 4], [5, 6]],
        2: [[0, 1], [2]],
        3: [[0]],
    }


def test_partitions_added_to_a_running_stream_are_read_from_their_first_record(both, topic):
    topic.send(6)
    with (
        both(topic, startingOffsets="latest") as named,
        both(topic, startingOffsets="latest", subscribePattern="TOPIC") as found,
        both(topic, startingOffsets="latest", assign='{"TOPIC": [0, 1, 3]}') as assigned,
    ):
        assert [same(queries) for queries in (named, found, assigned)] == [{}, {}, {}]
        topic.grow(4)
        for expected in ([0, 1], [0, 1, 2]):
            topic.send(8 if expected == [0, 1] else 4, partitions=4)
            later = [offset + 3 for offset in expected]
            grown = {("", 0): later, ("", 1): later, ("", 2): expected, ("", 3): expected}
            await_both(named, grown)
            await_both(found, grown)
            del grown["", 2]
            await_both(assigned, grown)


# ---- Topics that appear and disappear ----------------------------------------------------------------------


def test_topics_that_appear_are_found_by_the_pattern_of_a_running_stream(both, topic):
    with both(topic, subscribePattern="TOPIC-.", startingOffsets="latest") as queries:
        assert same(queries) == {}
        expected = {}
        for suffix in ("-a", "-b"):
            topic.create(suffix, partitions=1)
            topic.send(3, suffix, partitions=1)
            expected[suffix, 0] = [0, 1, 2]
            assert same(queries) == expected


def test_a_subscribed_topic_that_is_deleted_ends_a_running_stream(both, topic):
    topic.send(4)
    with both(topic, **SOON) as strict, both(topic, failOnDataLoss="false", **SOON) as lenient:
        assert same(strict) == same(lenient) == {("", 0): [0, 1], ("", 1): [0, 1]}
        topic.delete()
        assert ends(strict) == ends(lenient) == "failure"


def test_one_of_the_topics_of_a_pattern_that_is_deleted_ends_it_or_is_gone_and_comes_back(both, topic):
    topic.create("-gone", partitions=1)
    topic.send(4)
    topic.send(2, "-gone", partitions=1)
    pattern = {"subscribePattern": "TOPIC", **SOON}
    with both(topic, **pattern) as strict, both(topic, failOnDataLoss="false", **pattern) as lenient:
        before = {("", 0): [0, 1], ("", 1): [0, 1], ("-gone", 0): [0, 1]}
        assert same(strict) == same(lenient) == before
        topic.delete("-gone")
        assert ends(strict) == "data loss"
        topic.send(2)
        before = {**before, ("", 0): [0, 1, 2], ("", 1): [0, 1, 2]}
        assert same(lenient) == before
        topic.create("-gone", partitions=1)
        topic.send(3, "-gone", partitions=1)
        assert same(lenient) == {**before, ("-gone", 0): [0, 1, 0, 1, 2]}


def test_a_topic_made_anew_with_more_records_is_read_on_from_where_the_last_one_was(streams, topic):
    # The new topic cannot be distinguished from the old one: a checkpoint contains only offsets.
    topic.send(6)
    outcomes(streams.drain, topic)
    topic.delete()
    topic.create()
    topic.send(10)
    assert outcomes(streams.drain, topic) == [{("", 0): [3, 4], ("", 1): [3, 4]}]
