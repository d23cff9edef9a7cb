"""Fetch sizes: how many bytes are requested when reading stops at a given offset."""

import pytest
from model.fetch_log import FetchLog, batch, simple_batch
from model.fetching import collect, fetch, fetch_requests

from kafkacore.consumer.completed_fetch import CompletedFetch, ReadOptions
from kafkacore.consumer.fetch_size import FetchSizes
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.structs import TopicPartition

MOST = 1_000_000
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def answer(*batches, partition=A0, offset=0):
    records = memoryview(b"".join(batches)) if batches else None
    data = FetchResponse.PartitionData(partition_index=partition.partition, records=records)
    return CompletedFetch(partition, data, offset, 17, ReadOptions())


def batches_of(count, records, value=b"x" * 100):
    """Return ``count`` consecutive batches of ``records`` records each."""
    return [
        batch([(base + n, None, value) for n in range(records)], base_offset=base)
        for base in range(0, count * records, records)
    ]


@pytest.fixture
def sizes():
    made = FetchSizes(MOST)
    # Sizes are tracked only for partitions that are read up to an end offset.
    assert made.wanted("a", 0, 10) == MOST
    return made


def test_the_most_is_asked_for_without_an_end_and_of_a_topic_that_is_not_known(sizes):
    sizes.add_response(answer(*batches_of(10, 10)))
    assert sizes.wanted("a", 0, None) == MOST
    assert sizes.wanted("b", 0, 10) == MOST
    assert sizes.wanted("a", 0, 10) < MOST


@pytest.mark.parametrize(("first", "end"), [(0, 40), (13, 27), (95, 100), (50, 51)])
def test_what_is_asked_for_holds_the_range_and_little_more_than_its_first_and_last_batch(sizes, first, end):
    log = batches_of(10, 10)
    sizes.add_response(answer(*log))
    needed = sum(map(len, log[first // 10 : (end - 1) // 10 + 1]))
    assert needed <= sizes.wanted("a", first, end) <= needed * 1.1 + 2 * len(log[0]) + 1


def test_never_more_than_the_most(sizes):
    sizes.add_response(answer(*batches_of(10, 10)))
    assert sizes.wanted("a", 0, 10**12) == MOST


def test_never_less_than_a_broker_waits_for():
    sizes = FetchSizes(MOST, 50_000)
    sizes.wanted("a", 0, 10)
    sizes.add_response(answer(*batches_of(10, 10)))
    assert sizes.wanted("a", 0, 1) == 50_000
    assert sizes.wanted("a", 0, 10**12) == MOST


def test_a_batch_that_has_been_cut_off_does_not_count(sizes):
    whole, cut = batches_of(2, 10)
    sizes.add_response(answer(whole))
    expected = sizes.wanted("a", 10, 20)
    other = FetchSizes(MOST)
    other.wanted("a", 0, 10)
    other.add_response(answer(whole, cut[:-1]))
    assert other.wanted("a", 10, 20) == expected


@pytest.mark.parametrize("nothing", [(), (b"",), (b"\0" * 5,), (b"\0" * 100,), (batches_of(1, 10)[0][:-1],)])
def test_an_answer_without_a_whole_batch_teaches_nothing(sizes, nothing):
    sizes.add_response(answer(*nothing))
    assert sizes.wanted("a", 0, 10) == MOST


def test_larger_records_are_believed_at_once_and_smaller_ones_by_and_by(sizes):
    small, large = batches_of(5, 10), batches_of(5, 10, b"x" * 1_000)
    sizes.add_response(answer(*small))
    of_small = sizes.wanted("a", 0, 50)
    sizes.add_response(answer(*large))
    of_large = sizes.wanted("a", 0, 50)
    assert of_large > 5 * of_small
    sizes.add_response(answer(*small))
    assert of_small < sizes.wanted("a", 0, 50) < of_large
    for _ in range(40):
        sizes.add_response(answer(*small))
    assert sizes.wanted("a", 0, 50) == pytest.approx(of_small, abs=2)


def asked_sizes(parts):
    """Return ``partition_max_bytes`` of each partition in the last fetch request."""
    return {
        asked.partition: asked.partition_max_bytes
        for topic in fetch_requests(parts)[-1].topics
        for asked in topic.partitions
    }


def test_fetches_up_to_an_end_ask_for_less_once_an_answer_has_come(make_fetcher):
    parts = make_fetcher({A0: FetchLog(*batches_of(20, 10))}, max_partition_fetch_bytes=4_000)

    def bounded(end):
        parts.fetcher.send_fetches({A0: end})
        parts.client.poll_no_wakeup()
        parts.client.poll_no_wakeup()
        return asked_sizes(parts)[0]

    assert bounded(40) == 4_000
    assert collect(parts)[A0] == [*range(30)]
    assert bounded(40) < 4_000
    assert collect(parts)[A0][0] == 30
    parts.subscriptions.seek(A0, FetchPosition(50))
    fetch(parts)
    assert asked_sizes(parts)[0] == 4_000


def test_a_range_that_holds_more_than_was_thought_is_read_whole(make_consumer):
    log = FetchLog(*batches_of(5, 10), *(simple_batch(at, 1) for at in range(50, 60)))
    log.append(batch([(60 + n, None, b"y" * 50_000) for n in range(5)], base_offset=60))
    consumer = make_consumer({A0: log}, max_partition_fetch_bytes=8_000)
    consumer.assign([A0])
    found = 0
    while consumer.position(A0) < 63:
        for columns in consumer.poll_arrow(100, columns=["offset"], end_offsets={A0: 63}).values():
            found += len(columns)
    assert found == 63
