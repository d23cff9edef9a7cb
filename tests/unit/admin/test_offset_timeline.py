"""The time of an offset, estimated from end offsets at earlier times."""

from __future__ import annotations

import pytest

from kafkacore.admin.offset_timeline import MAX_POINTS, OffsetTimeline


def timeline(*ends: tuple[int, float]) -> OffsetTimeline:
    made = OffsetTimeline()
    for offset, now_ms in ends:
        made.ended_at(offset, now_ms)
    return made


def test_time_between_two_samples_is_interpolated() -> None:
    made = timeline((100, 1000.0), (200, 2000.0))
    assert [made.written_ms(offset) for offset in (100, 150, 199)] == [1000.0, 1500.0, 1990.0]


def test_record_after_a_quiet_time_is_as_new_as_its_sample() -> None:
    made = timeline((100, 0.0), (100, 60_000.0), (101, 61_000.0))
    assert made.written_ms(100) == 60_000.0


def test_record_that_is_not_written_has_no_time() -> None:
    assert timeline((100, 0.0)).written_ms(100) is None
    assert OffsetTimeline().written_ms(0) is None


def test_older_record_has_at_least_the_age_of_the_first_sample() -> None:
    made = timeline((100, 5000.0))
    assert made.written_ms(7) == 5000.0
    assert not made.covers(7)


def test_past_is_filled_in() -> None:
    made = timeline((100, 10_000.0))
    made.learn(0, 1000, 0)
    made.learn(50, 6000, 6000)
    assert made.covers(0)
    assert [made.written_ms(offset) for offset in (0, 25, 50)] == [1000.0, 3500.0, 6000.0]


def test_answer_has_two_times_if_no_record_is_between_them() -> None:
    made = timeline((100, 10_000.0))
    made.learn(0, 1000, 0)
    made.learn(50, 8000, 3000)
    assert made.written_ms(25) == 2000.0, "all records before offset 50 are older than 3000 ms"
    assert made.written_ms(75) == 9000.0


def test_last_record_of_a_quiet_topic_has_its_own_age() -> None:
    made = timeline((100, 100_000.0))
    made.learn(98, 1000, 500)
    made.learn(-1, -1, 3000)
    assert made.written_ms(99) == 2000.0


@pytest.mark.parametrize(("offset", "time_ms"), [(50, 20_000), (150, 500), (150, 20_000)])
def test_timestamp_that_contradicts_the_samples_is_ignored(offset: int, time_ms: int) -> None:
    made = timeline((100, 1000.0), (200, 2000.0))
    made.learn(offset, time_ms, time_ms)
    assert made.written_ms(150) == 1500.0


@pytest.mark.parametrize("target", [0, 1, 500, 700, 998, 999])
@pytest.mark.parametrize("pause_at", [0, 300, 700, 999])
def test_lookups_find_the_time_of_a_record(target: int, pause_at: int) -> None:
    """1,000 records of one hour, with a pause of 30 days in which nothing is written."""
    hour, pause = 3_600_000, 30 * 86_400_000
    written = [1_000_000 + n * hour // 1000 + (pause if n >= pause_at else 0) for n in range(1000)]
    now = written[-1] + hour
    made = timeline((1000, float(now)))
    time_ms: int | None = 0
    lookups = 0
    while time_ms is not None:
        first = next((n for n in range(1000) if written[n] >= time_ms), -1)
        made.learn(first, written[first] if first >= 0 else -1, time_ms)
        time_ms = made.next_lookup_ms(target, halves=lookups % 2 == 1)
        lookups += 1
    assert lookups <= 16
    found = made.written_ms(target)
    assert found is not None
    assert abs(found - written[target]) <= max(1000, 0.02 * (now - written[target]))


@pytest.mark.parametrize(("end", "now_ms"), [(5, 3000.0), (300, 1500.0)])
def test_topic_that_was_created_again_or_clock_that_went_back_starts_afresh(end: int, now_ms: float) -> None:
    made = timeline((100, 1000.0), (200, 2000.0))
    made.has_history = True
    made.ended_at(end, now_ms)
    assert made.written_ms(0) == now_ms
    assert not made.has_history


def test_number_of_points_is_limited_and_the_newest_stay_exact() -> None:
    made = timeline(*((offset, offset * 10.0) for offset in range(10 * MAX_POINTS)))
    assert len(made._points) <= MAX_POINTS
    assert all(made.written_ms(offset) == offset * 10.0 for offset in range(10 * MAX_POINTS - 1))
