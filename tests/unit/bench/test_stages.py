"""The times of records in each stage, from the stamps of a producer and a consumer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacore.bench.stages import (
    ACKNOWLEDGED,
    RECEIVED,
    StagesError,
    Stamp,
    TraceStage,
    figures,
    read_stamps,
    received_records,
    sent_records,
    write_stamps,
)

SEND, SEALED, WRITTEN = TraceStage.SEND_CALLED, TraceStage.BATCH_SEALED, TraceStage.REQUEST_WRITTEN
WAIT, READ, COMPLETED = TraceStage.WAIT_ENDED, TraceStage.RESPONSE_READ, TraceStage.BATCH_COMPLETED


def request(api_key: int, correlation_id: int) -> int:
    """Return the first 8 bytes of a request of version 9 as an integer."""
    return api_key << 48 | 9 << 32 | correlation_id


PRODUCE, FETCH, METADATA = 0, 1, 3
#: A batch of two records, then one of a single record that is sent before the first is acknowledged.
PRODUCER = [
    Stamp(WRITTEN, 1, request(METADATA, 4)),
    Stamp(READ, 2, 4),
    Stamp(SEND, 10, 0),
    Stamp(SEND, 11, 0),
    Stamp(SEALED, 12, 2),
    Stamp(WRITTEN, 13, request(PRODUCE, 5)),
    Stamp(SEND, 14, 0),
    Stamp(SEALED, 15, 1),
    Stamp(WRITTEN, 16, request(PRODUCE, 6)),
    Stamp(WAIT, 17, 1),
    Stamp(READ, 18, 5),
    Stamp(COMPLETED, 19, 100),
    Stamp(WAIT, 20, 1),
    Stamp(READ, 21, 6),
    Stamp(COMPLETED, 22, 102),
]
#: A fetch with two records, and the next one with another.
CONSUMER = [
    Stamp(WRITTEN, 5, request(FETCH, 7)),
    Stamp(WAIT, 20, 1),
    Stamp(READ, 21, 7),
    Stamp(WRITTEN, 22, request(FETCH, 8)),
    Stamp(WAIT, 24, 1),
    Stamp(READ, 25, 8),
]


def test_records_of_a_batch_share_the_times_of_its_request():
    assert sent_records(PRODUCER) == [
        (10, 12, 13, 17, 18, 19),
        (11, 12, 13, 17, 18, 19),
        (14, 15, 16, 20, 21, 22),
    ]


@pytest.mark.parametrize("number", [3, 4, 5, 10, 11])
def test_missing_stamp_is_an_error(number):
    with pytest.raises(StagesError, match="retried"):
        sent_records(PRODUCER[:number] + PRODUCER[number + 1 :])


def test_record_came_with_the_last_response_before_it_was_returned():
    assert received_records(CONSUMER, [23, 23, 26]) == [
        (5, 20, 21, 22, 23),
        (5, 20, 21, 22, 23),
        # No fetch follows, so this stage takes no time.
        (22, 24, 25, 26, 26),
    ]


def test_record_before_any_response_is_an_error():
    with pytest.raises(StagesError, match="before the response"):
        received_records(CONSUMER, [20])


def test_stages_of_a_path_add_up_to_its_total():
    due = [9_000.0, 10_000.0, 14_000.0]
    sent = [tuple(at * 1000 for at in record) for record in sent_records(PRODUCER)]
    received = [tuple(at * 1000 for at in record) for record in received_records(CONSUMER, [23, 23, 26])]
    found = figures(due, sent, received)
    assert [*found["acknowledged"]] == [*ACKNOWLEDGED, "total"]
    assert [*found["received"]] == [*RECEIVED, "total"]
    for stages in found.values():
        for name in ("typical", "slowest"):
            parts = [each[name] for stage, each in stages.items() if stage != "total"]
            assert sum(parts) == pytest.approx(stages["total"][name])
    assert found["acknowledged"]["total"]["slowest"] == 10.0
    assert found["acknowledged"]["batch sealed"]["p99"] == 2.0
    # The first fetch waited before the records were written, and the second was written 6 µs too late.
    waits = found["received"]["consumer's fetch at the broker"]
    assert (waits["p50"], waits["p99"]) == (0.0, 6.0)


def test_event_that_was_stamped_late_takes_no_time():
    found = figures([0.0], [(1_000, 3_000, 2_000, 4_000, 4_000, 5_000)], [(0, 9_000, 9_000, 9_000, 9_000)])
    assert found["acknowledged"]["request written"]["p50"] == 0.0
    assert found["acknowledged"]["producer's wait ended"]["p50"] == 1.0


def test_stamps_survive_a_file(tmp_path: Path):
    write_stamps(tmp_path / "stamps", PRODUCER)
    assert read_stamps(tmp_path / "stamps") == PRODUCER
