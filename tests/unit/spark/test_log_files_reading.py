"""Reading rows from segment files through Spark's reader interface, without a session."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from model.golden_batches import golden_cases
from model.segment_bytes import file_of
from model.segment_reads import offsets, reader, rows, struct

from kafkacore.errors import CorruptRecordError, KafkaConfigurationError
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.spark.log_files.source import KafkaCoreLogDataSource

NAME = "00000000000000000000.log"
COUNTS = [3, 5, 2, 40]
LAST = sum(COUNTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a partition's folder with a segment of four batches."""
    made = tmp_path / "flights-7"
    made.mkdir()
    (made / NAME).write_bytes(file_of(COUNTS))
    return made


# ---- Rows --------------------------------------------------------------------------------------------------
def test_a_segment_gives_the_columns_of_kafka(folder: Path) -> None:
    table = rows(folder / NAME, "key value topic partition offset timestamp timestampType")
    assert table.num_rows == LAST
    first, last = table.slice(0, 1).to_pylist()[0], table.slice(LAST - 1).to_pylist()[0]
    assert (first["topic"], first["partition"], first["offset"], first["timestampType"]) == (
        "flights",
        7,
        0,
        0,
    )
    assert first["timestamp"].timestamp() == 1.0
    assert (first["key"], first["value"]) == (b"key 0", b"value 0 " + b"v" * 40)
    assert (last["offset"], last["key"]) == (LAST - 1, b"key %d" % (LAST - 1))


@pytest.mark.parametrize("target", [1, 200, 1 << 20])
def test_ranges_of_any_size_give_every_record_once(folder: Path, target: int) -> None:
    assert offsets(folder, maxBytesPerPartition=target) == list(range(LAST))
    tasks = len(reader(folder, maxBytesPerPartition=target).partitions())
    assert tasks == {1: 4, 200: 3, 1 << 20: 1}[target]


def test_more_tasks_come_for_the_asking(folder: Path) -> None:
    (folder / NAME).write_bytes(file_of([5] * 9))
    assert len(reader(folder, minPartitions=3).partitions()) == 3
    assert offsets(folder, minPartitions=3) == list(range(45))


def test_small_files_share_a_task(folder: Path) -> None:
    for number in range(1, 20):
        (folder / f"{LAST + number:020}.log").write_bytes(file_of([1], LAST + number))
    assert len(reader(folder).partitions()) == 1
    assert offsets(folder) == [*range(LAST), *range(LAST + 1, LAST + 20)]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_read(tmp_path: Path, codec: Compression) -> None:
    file = tmp_path / NAME
    file.write_bytes(file_of(COUNTS, compression=codec))
    table = rows(file, maxBytesPerPartition=300)
    assert table["offset"].to_pylist() == list(range(LAST))
    assert table["value"][9].as_py() == b"value 9 " + b"v" * 40


def test_old_formats_are_read(tmp_path: Path) -> None:
    case = golden_cases()["v0-v1-v2-in-one-log"]
    (tmp_path / NAME).write_bytes(case.content)
    table = rows(tmp_path, "offset timestampType", maxBytesPerPartition=1)
    assert table["offset"].to_pylist() == [one["offset"] for one in case.records]
    assert set(table["timestampType"].to_pylist()) == {-1, 0}


def test_many_rows_come_in_batches_that_end_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkacore.spark.log_files.reading.BATCH_ROWS", 7)
    for codec in (Compression.NONE, Compression.ZSTD):
        (tmp_path / NAME).write_bytes(file_of(COUNTS, compression=codec))
        made = reader(tmp_path, "offset")
        sizes = [batch.num_rows for task in made.partitions() for batch in made.read(task)]
        assert sum(sizes) == LAST
        assert max(sizes) == 7
        assert offsets(tmp_path) == list(range(LAST))


def test_a_column_is_full_at_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacore.spark.log_files.reading.MAX_COLUMN_BYTES", 100)
    (tmp_path / NAME).write_bytes(file_of(COUNTS))
    made = reader(tmp_path, "value")
    batches = [batch for task in made.partitions() for batch in made.read(task)]
    assert sum(batch.num_rows for batch in batches) == LAST
    assert max(batch.num_rows for batch in batches) <= 2


def test_control_batches_are_no_records(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(file_of([2]) + transactional(2, 9, "commit") + file_of([1], 3))
    assert offsets(tmp_path) == [0, 1, 3]


# ---- Topic and partition -----------------------------------------------------------------------------------
def test_a_lone_file_has_no_topic_unless_an_option_says_it(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(file_of([1]))
    columns = "topic partition offset"
    assert rows(tmp_path / "x.log", columns).to_pylist() == [{"topic": None, "partition": None, "offset": 0}]
    named = rows(tmp_path / "x.log", columns, topic="t", partition=3).to_pylist()
    assert named == [{"topic": "t", "partition": 3, "offset": 0}]


# ---- Offset and time ranges --------------------------------------------------------------------------------
@pytest.mark.parametrize("target", [1, 1 << 20])
def test_offsets_begin_and_end_within_batches(folder: Path, target: int) -> None:
    options = {
        "startingOffsets": '{"flights":{"7":5}}', "endingOffsets": '{"flights":{"7":31}}',
        "maxBytesPerPartition": target,
    }  # fmt: skip
    assert offsets(folder, **options) == list(range(5, 31))


def test_named_offsets_are_those_of_the_files(folder: Path) -> None:
    assert offsets(folder, startingOffsets="earliest", endingOffsets="latest") == list(range(LAST))
    numbers = {"startingOffsets": '{"flights":{"7":-2}}', "endingOffsets": '{"flights":{"7":-1}}'}
    assert offsets(folder, **numbers) == list(range(LAST))


def test_timestamps_are_those_of_the_first_record_that_has_them(folder: Path) -> None:
    # Batches begin at offsets 0, 3, 8 and 10. A record's timestamp is 1000 plus its batch's first offset.
    assert offsets(folder, startingTimestamp=1_004) == list(range(8, LAST))
    assert offsets(folder, endingTimestamp=1_008) == list(range(8))
    assert offsets(folder, startingTimestamp=1_003, endingTimestamp=1_009) == list(range(3, 10))
    assert offsets(folder, startingTimestamp=5_000) == []
    assert offsets(folder, endingTimestamp=5_000) == list(range(LAST))


def test_segments_outside_the_offsets_are_not_opened(folder: Path) -> None:
    (folder / f"{LAST:020}.log").write_bytes(file_of([4], LAST))
    (folder / f"{LAST + 4:020}.log").write_bytes(file_of([4], LAST + 4))
    wanted = {
        "startingOffsets": f'{{"flights":{{"7":{LAST}}}}}',
        "endingOffsets": f'{{"flights":{{"7":{LAST + 4}}}}}',
    }
    tasks = reader(folder, **wanted).partitions()
    assert [Path(one.file.path).name for task in tasks for one in task.ranges] == [f"{LAST:020}.log"]  # type: ignore[attr-defined]
    assert offsets(folder, **wanted) == list(range(LAST, LAST + 4))


# ---- Damage ------------------------------------------------------------------------------------------------
def damage(path: Path, batch: int, at: int = 70) -> int:
    """Flip a byte of a batch, and return the position of the batch."""
    data = bytearray(path.read_bytes())
    position = [one.position for one in read_batches(bytes(data))][batch]
    data[position + at] ^= 0xFF
    path.write_bytes(data)
    return position


def test_a_corrupt_batch_fails_with_file_and_position(folder: Path) -> None:
    position = damage(folder / NAME, 1)
    with pytest.raises(
        CorruptRecordError, match=rf"flights-7/{NAME}, position {position}: CRC mismatch: .* mode to PERM"
    ):
        rows(folder)


def test_dropping_what_is_malformed_goes_on_behind_the_batch(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    position = damage(folder / NAME, 1)
    with caplog.at_level(logging.WARNING):
        assert offsets(folder, mode="dropMalformed") == [0, 1, 2, *range(8, LAST)]
    assert f"position {position}: CRC mismatch" in caplog.text


def test_a_permissive_read_has_a_row_for_the_corrupt_batch(folder: Path) -> None:
    position = damage(folder / NAME, 1)
    table = rows(folder, "offset _corrupt_record topic", mode="PERMISSIVE")
    assert table["offset"].to_pylist() == [0, 1, 2, None, *range(8, LAST)]
    sentences = [text for text in table["_corrupt_record"].to_pylist() if text is not None]
    assert len(sentences) == 1
    assert f"position {position}: CRC mismatch" in sentences[0]
    assert table["topic"].to_pylist() == ["flights"] * 3 + [None] + ["flights"] * (LAST - 8)
    assert offsets(folder, mode="PERMISSIVE") == [0, 1, 2, *range(8, LAST)]


def test_records_that_are_broken_behind_a_right_crc_are_a_corrupt_batch(tmp_path: Path) -> None:
    builder = RecordBatchBuilder(1_000)
    for _ in range(3):
        builder.append(5, None, b"value")
    batch = bytearray(builder.close())
    batch[57:61] = (2).to_bytes(4, "big")
    (tmp_path / NAME).write_bytes(with_crc(batch) + file_of([2], 3))
    with pytest.raises(CorruptRecordError, match="position 0: "):
        rows(tmp_path)
    assert offsets(tmp_path, mode="DROPMALFORMED") == [3, 4]


def test_a_file_that_is_being_written_ends_in_front_of_its_last_batch(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / NAME).write_bytes((folder / NAME).read_bytes()[:-5])
    with caplog.at_level(logging.WARNING):
        assert offsets(folder) == list(range(10))
    assert "copied while it was written" in caplog.text
    (folder / NAME).write_bytes(file_of(COUNTS) + bytes(3_000))
    assert offsets(folder) == list(range(LAST))


def test_a_segment_in_the_middle_of_its_log_is_damaged_when_it_is_cut(folder: Path) -> None:
    (folder / NAME).write_bytes((folder / NAME).read_bytes()[:-5])
    (folder / f"{LAST:020}.log").write_bytes(file_of([4], LAST))
    with pytest.raises(CorruptRecordError, match="is truncated after"):
        rows(folder)
    assert offsets(folder, mode="DROPMALFORMED") == [*range(10), *range(LAST, LAST + 4)]


@pytest.mark.parametrize("target", [100, 1 << 20])
def test_no_flipped_byte_fails_otherwise_or_takes_other_batches_with_it(tmp_path: Path, target: int) -> None:
    data = file_of([1, 2, 1])
    ends = [batch.position for batch in read_batches(data)] + [len(data)]
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        (tmp_path / NAME).write_bytes(flipped)
        found = offsets(tmp_path, mode="DROPMALFORMED", maxBytesPerPartition=target)
        hit = next(index for index, end in enumerate(ends[1:]) if at < end)
        # The CRC does not cover the base offset, so a flipped byte there changes offsets undetected.
        kept = [offset for index, part in enumerate(([0], [1, 2], [3])) if index != hit for offset in part]
        assert set(kept) <= set(found) or at - ends[hit] < 8


# ---- Indexes -----------------------------------------------------------------------------------------------
def write_index(folder: Path, shift: int = 0, zeros: int = 0) -> list[int]:
    batches = list(read_batches((folder / NAME).read_bytes()))
    entries = [(batch.last_offset, batch.position + shift) for batch in batches[1:]]
    data = b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in entries)
    (folder / NAME).with_suffix(".index").write_bytes(data + bytes(zeros))
    return [batch.position for batch in batches]


def cuts(folder: Path, **options: object) -> list[int]:
    tasks = reader(folder, **options).partitions()
    return [one.start for task in tasks for one in task.ranges]  # type: ignore[attr-defined]


@pytest.mark.parametrize("zeros", [0, 8, 8_000])
def test_an_index_divides_its_file(folder: Path, zeros: int, monkeypatch: pytest.MonkeyPatch) -> None:
    positions = write_index(folder, zeros=zeros)
    monkeypatch.setattr("kafkacore.spark.log_files.planning.read_headers", None)
    assert cuts(folder, maxBytesPerPartition=1) == positions
    assert offsets(folder, maxBytesPerPartition=1) == list(range(LAST))


@pytest.mark.parametrize("content", [b"x", b"abcdefgh" * 3, b"\0\0\0\1\0\0\1\0" * 2, b""])
def test_an_index_of_another_file_is_not_believed(folder: Path, content: bytes) -> None:
    positions = write_index(folder)
    (folder / NAME).with_suffix(".index").write_bytes(content)
    assert cuts(folder, maxBytesPerPartition=1) == positions
    write_index(folder, shift=3)
    assert cuts(folder, maxBytesPerPartition=1) == positions


# ---- Transactions ------------------------------------------------------------------------------------------
def with_crc(batch: bytearray) -> bytes:
    from kafkacore.wire import crc32c

    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def transactional(offset: int, producer_id: int, marker: str | None = None, count: int = 1) -> bytes:
    """Return a transactional batch, or the marker of a transaction."""
    builder = RecordBatchBuilder(1_000)
    for _ in range(count):
        key = b"k" if marker is None else b"\0\0\0" + (b"\1" if marker == "commit" else b"\0")
        builder.append(offset, key, b"\0\0\0\0\0\0")
    sealed = builder.close(
        producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True,
        is_control=marker is not None, base_offset=offset, partition_leader_epoch=0,
    )  # fmt: skip
    return bytes(sealed)


def log_of(*batches: bytes) -> bytes:
    return b"".join(batches)


@pytest.mark.parametrize("target", [1, 1 << 20])
def test_aborted_records_are_left_out_when_reading_committed(tmp_path: Path, target: int) -> None:
    data = log_of(
        transactional(0, 1, count=2), transactional(2, 2), transactional(3, 1, "abort"), file_of([1], 4),
        transactional(5, 2, "commit"), transactional(6, 1), transactional(7, 1, "commit"),
    )  # fmt: skip
    (tmp_path / NAME).write_bytes(data)
    committed = {"isolation": "read_committed", "maxBytesPerPartition": target}
    assert offsets(tmp_path, **committed) == [2, 4, 6]
    assert offsets(tmp_path, maxBytesPerPartition=target) == [0, 1, 2, 4, 6]


def test_reading_committed_ends_where_a_transaction_is_open(tmp_path: Path) -> None:
    data = log_of(
        file_of([1]), transactional(1, 1), file_of([1], 2), transactional(3, 2), transactional(4, 2, "commit")
    )
    (tmp_path / NAME).write_bytes(data)
    assert offsets(tmp_path, isolation="read_committed") == [0]


def test_a_transaction_may_end_in_the_next_segment(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / NAME).write_bytes(log_of(transactional(0, 1), transactional(1, 2)))
    (folder / f"{2:020}.log").write_bytes(log_of(transactional(2, 1, "abort"), transactional(3, 2, "commit")))
    assert offsets(folder, isolation="read_committed") == [1]


def test_a_committed_record_whose_marker_was_compacted_away_is_there(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log_of(transactional(0, 1), file_of([2], 2)))
    assert offsets(tmp_path, isolation="read_committed") == [0, 2, 3]


def test_what_follows_damage_is_not_taken_for_compacted(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log_of(transactional(0, 1), b"\xff" * 80, file_of([2], 2)))
    assert offsets(tmp_path, isolation="read_committed", mode="DROPMALFORMED") == []


def test_damage_that_may_hide_how_a_transaction_ended_is_told_when_planning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).write_bytes(log_of(file_of([1]), transactional(1, 1), b"\xff" * 80, file_of([2], 3)))
    with pytest.raises(CorruptRecordError, match=r"log, position \d+: .* starts at offset 1 .*all records"):
        offsets(tmp_path, isolation="read_committed")
    assert offsets(tmp_path, isolation="read_committed", mode="PERMISSIVE") == [0]
    assert "the transaction that starts at offset 1 was committed; all records" in caplog.text
    with pytest.raises(CorruptRecordError, match="length -1 is less than"):
        offsets(tmp_path)


@pytest.mark.parametrize("with_right_crc", [True, False])
def test_a_transaction_whose_marker_cannot_be_read_is_not_committed(
    tmp_path: Path, with_right_crc: bool
) -> None:
    marker = bytearray(transactional(3, 1, "commit"))
    marker[61] = 0xFF
    marker[62] = 0xFF
    marker = with_crc(marker) if with_right_crc else marker
    (tmp_path / NAME).write_bytes(log_of(file_of([1]), transactional(1, 1, count=2), marker, file_of([1], 4)))
    committed = {"isolation": "read_committed"}
    with pytest.raises(CorruptRecordError, match=r"the transaction that starts at offset 1 was committed"):
        offsets(tmp_path, **committed)
    assert offsets(tmp_path, **committed, mode="DROPMALFORMED") == [0, 4]
    before = {"topic": "t", "partition": 0, "endingOffsets": '{"t":{"0":1}}'}
    assert offsets(tmp_path, **committed, **before) == [0]


def test_damage_elsewhere_leaves_no_doubt_of_a_transaction(tmp_path: Path) -> None:
    damaged = b"\xff" * 80
    data = log_of(
        transactional(0, 1), damaged, transactional(3, 1, "commit"), transactional(4, 2), file_of([1], 5)
    )
    (tmp_path / NAME).write_bytes(data)
    with pytest.raises(CorruptRecordError, match="length -1 is less than"):
        offsets(tmp_path, isolation="read_committed")
    assert offsets(tmp_path, isolation="read_committed", mode="DROPMALFORMED") == [0]


# ---- Options -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffset": "1"}, "did you mean startingOffsets"),
        ({"kafka.bootstrap.servers": "h:1"}, "kafkacore-log reads files"),
        ({"kafka.isolation.level": "read_committed"}, "use the option isolation"),
        ({"isolation": "x"}, "read_uncommitted, read_committed"),
        ({"mode": "x"}, "PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ({"startingOffsets": "latest"}, 'must be "earliest" or JSON'),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets of t-0 must be at least 0"),
        ({"partition": "-1"}, "partition must be"),
        ({"minPartitions": "0"}, "minPartitions must be above 0"),
        ({"subscribe": "a", "subscribePattern": "b"}, "not both"),
        ({"subscribePattern": "("}, "not a valid regular expression"),
        ({"paths": "x"}, "load"),
        ({"storage.a": "{"}, "storage.a starts like JSON"),
    ],
)
def test_a_mistake_is_a_sentence(folder: Path, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=sentence):
        rows(folder, **options)


def test_offsets_need_to_know_the_partition(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(file_of([4]))
    with pytest.raises(KafkaConfigurationError, match="set the options topic and partition"):
        rows(tmp_path / "x.log", startingOffsets='{"t":{"0":2}}')
    assert offsets(tmp_path / "x.log", startingOffsets='{"t":{"0":2}}', topic="t", partition=0) == [2, 3]


def test_a_read_needs_a_path_with_something_at_it(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match="no path is set"):
        KafkaCoreLogDataSource({}).reader(struct("value"))
    with pytest.raises(KafkaConfigurationError, match="no segment file found at"):
        rows(tmp_path / "nothing")
    with pytest.raises(KafkaConfigurationError, match="no segment file found at"):
        rows(tmp_path)
