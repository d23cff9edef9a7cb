"""A stream follows the changes of a topic as Spark's own source does: the same batches, or both fail.

Each source can also resume from the other's checkpoint.
"""

import pytest
from peers.streams import outcomes


@pytest.fixture
def drain(streams):
    return streams.drain


def test_available_now_reads_the_same_batches_within_the_limits(drain, topic):
    topic.send(50)
    limits = {"maxOffsetsPerTrigger": "20", "minOffsetsPerTrigger": "15"}
    first = outcomes(drain, topic, **limits)
    assert [sum(map(len, batch.values())) for batch in first] == [20, 20]
    # Records below minOffsetsPerTrigger end the run, and are the first batch of the next run.
    second = outcomes(drain, topic, **limits)
    assert second == [{("", 0): [*range(20, 25)], ("", 1): [*range(20, 25)]}]


def test_topic_deleted_and_made_anew_with_fewer_records_has_the_same_outcome(drain, topic):
    topic.send(20)
    outcomes(drain, topic)
    topic.delete()
    assert outcomes(drain, topic, failOnDataLoss="false") == "failure"
    topic.create()
    topic.send(6)
    assert outcomes(drain, topic) == "data loss"
    assert outcomes(drain, topic, failOnDataLoss="false") == []
    topic.send(4)
    assert outcomes(drain, topic) == [{("", 0): [3, 4], ("", 1): [3, 4]}]


def test_topic_that_goes_while_another_of_the_pattern_comes_has_the_same_outcome(drain, topic):
    topic.create("-a", partitions=1)
    topic.send(4)
    topic.send(3, "-a", partitions=1)
    [before] = outcomes(drain, topic, subscribePattern="TOPIC")
    assert before == {("", 0): [0, 1], ("", 1): [0, 1], ("-a", 0): [0, 1, 2]}
    topic.delete("-a")
    topic.create("-b", partitions=1)
    topic.send(2, "-b", partitions=1)
    assert outcomes(drain, topic, subscribePattern="TOPIC") == "data loss"
    after = outcomes(drain, topic, subscribePattern="TOPIC", failOnDataLoss="false")
    assert after == [{("-b", 0): [0, 1]}]


def test_a_start_behind_the_end_has_the_same_outcome(drain, topic):
    topic.send(10)
    start = {"startingOffsets": '{"TOPIC":{"0":700,"1":0}}'}
    assert outcomes(drain, topic, **start) == "data loss"
    assert outcomes(drain, topic, failOnDataLoss="false", **start) == [{("", 1): [*range(5)]}]


@pytest.mark.parametrize("order", [("kafka", "kafkacore", "kafka"), ("kafkacore", "kafka")])
def test_one_checkpoint_serves_both_sources_in_turn(drain, topic, order):
    found = {0: [], 1: []}
    for source in order:
        topic.send(10)
        for batch in drain(source, topic, folder="shared", maxOffsetsPerTrigger="6"):
            for (_, partition), offsets in batch.items():
                found[partition] += offsets
    count = 5 * len(order)
    assert found == {0: [*range(count)], 1: [*range(count)]}
