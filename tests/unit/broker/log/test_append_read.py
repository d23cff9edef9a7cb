"""Appends and reads of one log, compared with a list of records."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.log_oracle import NOW_MS, TP, OracleLog, batch, make_log, open_manager, read_all, records_of

from kafkacore.broker.log import UnifiedLog
from kafkacore.errors import OffsetOutOfRangeError
from kafkacore.record import Compression
from kafkacore.testing.disk import SimulatedDisk
from kafkacore.wire import crc32c


@pytest.fixture
def log() -> UnifiedLog:
    return make_log(open_manager(SimulatedDisk(), flush="os", segment_bytes=2000, index_interval_bytes=300))


def test_offsets_are_given_in_order(log: UnifiedLog) -> None:
    first = log.append(batch([b"a", b"b"]), now_ms=NOW_MS)
    second = log.append(batch([b"c"]), now_ms=NOW_MS)
    assert (first.first_offset, first.last_offset) == (0, 1)
    assert (second.first_offset, second.last_offset) == (2, 2)
    assert (second.log_append_time_ms, second.log_start_offset, second.duplicate) == (-1, 0, False)
    assert log.log_end_offset == log.high_watermark == log.last_stable_offset == 3


def test_batches_are_served_as_they_came_but_for_offset_and_epoch(log: UnifiedLog) -> None:
    sent = bytes(batch([b"a", b"b"], compression=Compression.LZ4))
    log.append(batch([b"first"]), now_ms=NOW_MS)
    log.append(memoryview(sent), now_ms=NOW_MS)
    served = bytes(log.read(1, 1000).records)
    assert served[:8] == (1).to_bytes(8, "big")
    assert served[12:16] == bytes(4)
    assert served[8:12] + served[16:] == sent[8:12] + sent[16:]


def test_bytes_of_the_sender_are_left_alone(log: UnifiedLog) -> None:
    log.append(batch([b"first"]), now_ms=NOW_MS)
    sent = bytearray(batch([b"second"]))
    before = bytes(sent)
    log.append(memoryview(sent), now_ms=NOW_MS)
    assert sent == before


def test_read_gives_whole_batches_up_to_the_limit(log: UnifiedLog) -> None:
    size = len(batch([b"x"]))
    for _ in range(5):
        log.append(batch([b"x"]), now_ms=NOW_MS)
    assert len(log.read(0, 3 * size).records) == 3 * size
    assert len(log.read(0, 3 * size + size - 1).records) == 3 * size
    assert log.read(0, 3 * size).next_offset == 3


def test_first_batch_is_given_though_it_is_larger_than_asked_for(log: UnifiedLog) -> None:
    log.append(batch([b"x" * 500]), now_ms=NOW_MS)
    assert len(log.read(0, 10).records) > 500
    assert len(log.read(0, 10, min_one_message=False).records) == 0
    assert log.read(0, 10, min_one_message=False).next_offset == 0


def test_read_from_the_middle_of_a_batch_gives_the_whole_batch(log: UnifiedLog) -> None:
    log.append(batch([b"a", b"b", b"c"]), now_ms=NOW_MS)
    assert [record.offset for record in records_of(log.read(1, 1000).records)] == [0, 1, 2]


def test_read_stops_before_the_offset_it_may_not_reach(log: UnifiedLog) -> None:
    for _ in range(4):
        log.append(batch([b"a", b"b"]), now_ms=NOW_MS)
    found = log.read(0, 1 << 20, max_offset=5)
    assert found.next_offset == 4
    assert log.read(4, 1 << 20, max_offset=4).next_offset == 4


def test_read_at_the_end_is_empty_and_beyond_it_an_error(log: UnifiedLog) -> None:
    log.append(batch([b"a"]), now_ms=NOW_MS)
    assert len(log.read(1, 1000).records) == 0
    with pytest.raises(
        OffsetOutOfRangeError,
        match=r"offset 2 of flights-0 is out of range: log start offset 0, log end offset 1",
    ):
        log.read(2, 1000)


def test_unsynced_records_are_not_read_in_ack_mode() -> None:
    manager = open_manager(SimulatedDisk())
    log = make_log(manager)
    moved = []
    manager.on_high_watermark = lambda tp, offset: moved.append((tp, offset))
    log.append(batch([b"a", b"b"]), now_ms=NOW_MS)
    assert (log.log_end_offset, log.high_watermark) == (2, 0)
    assert len(log.read(0, 1000).records) == 0
    manager.flush_dirty()
    assert moved == [(TP, 2)]
    assert len(read_all(log)) == 2
    manager.flush_dirty()
    assert moved == [(TP, 2)]


def test_one_sync_serves_all_appends_before_it() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    manager.flush_dirty()
    syncs = []
    disk.fault = lambda call, verb, path: syncs.append(path) if verb == "fdatasync" else None
    for _ in range(10):
        log.append(batch([b"a"]), now_ms=NOW_MS)
    manager.flush_dirty()
    assert len(syncs) == 1
    assert log.high_watermark == 10


def test_timestamp_lookup_finds_nothing_later_than_the_last_record(log: UnifiedLog) -> None:
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None
    log.append(batch([b"a"], timestamp=500), now_ms=NOW_MS)
    assert log.offset_for_timestamp(501) is None
    assert log.offset_for_timestamp(500) == (500, 0, 0)


appends = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.integers(0, 300),
        st.integers(-2000, 2000),
        st.sampled_from([Compression.NONE, Compression.GZIP, Compression.LZ4]),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(appends, st.integers(1, 3000), st.sampled_from(["reopen", "kill", None]))
def test_log_answers_as_a_list_would(
    steps: list[tuple[int, int, int, Compression]], max_bytes: int, end: str | None
) -> None:
    disk = SimulatedDisk()
    config = {"segment_bytes": 2500, "index_interval_bytes": 200, "flush": "os"}
    manager = open_manager(disk, **config)
    log, oracle = make_log(manager), OracleLog()
    for count, size, offset_ms, compression in steps:
        values = [bytes([65 + index]) * size for index in range(count)]
        sent = batch(values, NOW_MS + offset_ms, compression=compression)
        assert log.append(sent, now_ms=NOW_MS).first_offset == oracle.append(values, NOW_MS + offset_ms)
    if end == "reopen":
        manager.close()
        log = make_log(open_manager(disk, **config))
    elif end == "kill":
        log = make_log(open_manager(disk.kill_process(), **config))
    assert log.log_end_offset == log.high_watermark == oracle.end
    assert read_all(log, max_bytes) == oracle.records()
    for offset in range(oracle.end):
        found = records_of(log.read(offset, max_bytes).records)
        assert found[0].offset <= offset <= found[-1].offset
    for timestamp in range(NOW_MS - 2001, NOW_MS + 2008, 97):
        found = log.offset_for_timestamp(timestamp)
        assert (None if found is None else found[:2]) == oracle.offset_for_timestamp(timestamp)
    latest = log.offset_of_max_timestamp()
    assert (None if latest is None else latest[:2]) == oracle.offset_of_max_timestamp()


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 300), st.integers(-2000, 2000)), max_size=40),
    st.data(),
)
def test_largest_timestamp_is_of_what_may_be_read(
    steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    manager = open_manager(SimulatedDisk(), segment_bytes=2500, index_interval_bytes=200)
    log, readable = make_log(manager), OracleLog()
    flushed = data.draw(st.integers(0, len(steps)))
    for number, (count, size, offset_ms) in enumerate(steps):
        if number == flushed:
            manager.flush_dirty()
        values: list[bytes | None] = [b"x" * size] * count
        log.append(batch(values, NOW_MS + offset_ms), now_ms=NOW_MS)
        if number < flushed:
            readable.append(values, NOW_MS + offset_ms)
    if flushed == len(steps):
        manager.flush_dirty()
    assert log.high_watermark == readable.end
    latest = log.offset_of_max_timestamp()
    assert (None if latest is None else latest[:2]) == readable.offset_of_max_timestamp()


def test_timestamp_lookup_passes_over_a_batch_whose_header_promises_too_much(log: UnifiedLog) -> None:
    """The max timestamp in a batch header written by another broker may be larger than that of any record."""
    sent = bytearray(batch([b"a"], timestamp=500, compression=Compression.GZIP))
    log.append(memoryview(bytes(sent)), now_ms=NOW_MS)
    log.append(batch([b"b", b"c"], timestamp=700), now_ms=NOW_MS)
    segment = log.segments()[0]
    size = len(sent)
    placed = bytearray(segment.read_bytes(size, 0))
    struct.pack_into(">q", placed, 35, 900)
    struct.pack_into(">I", placed, 17, crc32c(memoryview(placed)[21:]))
    segment._file.pwritev([placed], 0)
    assert log.offset_for_timestamp(600) == (700, 1, 0)
    assert log.offset_for_timestamp(701) == (701, 2, 0)
    assert log.offset_for_timestamp(800) is None
