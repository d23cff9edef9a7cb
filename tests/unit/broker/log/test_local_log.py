"""The list of segments: search by offset, adding, removing and replacing."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.log_oracle import NOW_MS, batch

from kafkacore.broker.log import LogConfig
from kafkacore.broker.log._local_log import LocalLog
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.segment import LogSegment
from kafkacore.record import read_batches
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/flights-0")


class Segments:
    """A log with segments of three records each."""

    def __init__(self) -> None:
        disk = SimulatedDisk()
        disk.mkdir(FOLDER)
        self.files = OpenFiles(disk)
        self.log = LocalLog([self.segment(0)], 0)

    def segment(self, base_offset: int, ending: str = "") -> LogSegment:
        return LogSegment(self.files, FOLDER, base_offset, LogConfig(), NOW_MS, ending)

    def append(self, leader_epoch: int = 0) -> None:
        found = next(read_batches(batch([b"a", b"b", b"c"])))
        self.log.append(found, leader_epoch, False, NOW_MS, 0)

    def fill(self, count: int) -> LocalLog:
        for number in range(count):
            if number:
                self.log.roll(self.segment(self.log.log_end_offset))
            self.append()
        return self.log


@pytest.fixture
def segments() -> Segments:
    return Segments()


def test_append_moves_the_end_of_the_active_segment(segments: Segments) -> None:
    log = segments.fill(2)
    active = log.segments[-1]
    assert (log.log_end_offset, log.appended_bytes) == (6, sum(each.size for each in log.segments))
    assert log.log_end_metadata == (active, active.size, 6)


def test_rolled_segment_is_the_active_one(segments: Segments) -> None:
    log = segments.fill(1)
    new = segments.segment(3)
    log.roll(new)
    assert log.log_end_metadata == (new, 0, 3)
    segments.append()
    assert (log.segments[0].size, new.size) == (log.appended_bytes // 2, log.appended_bytes // 2)


def test_offset_is_in_the_last_segment_that_does_not_begin_after_it(segments: Segments) -> None:
    log = segments.fill(3)
    assert log.base_offsets == [0, 3, 6]
    assert [log.index_of(offset) for offset in (0, 2, 3, 5, 6, 100)] == [0, 0, 1, 1, 2, 2]
    assert [log.end_of(index) for index in range(3)] == [3, 6, 9]


def test_segments_below_an_offset_never_include_the_active_one(segments: Segments) -> None:
    log = segments.fill(3)
    assert [log.count_below(offset) for offset in (0, 2, 3, 6, 9)] == [0, 0, 1, 2, 2]
    log.remove_first(2)
    assert log.base_offsets == [6]
    for count in (1, -1):
        with pytest.raises(ValueError, match="cannot remove"):
            log.remove_first(count)


def test_replacement_takes_the_place_of_several_segments(segments: Segments) -> None:
    log = segments.fill(4)
    new = segments.segment(3, ".cleaned")
    log.replace(log.segments[1:3], new)
    assert log.base_offsets == [0, 3, 9]
    assert log.segments[1] is new
    assert log.log_end_metadata.segment is log.segments[-1]
