"""Locations of segment files, and the topic and partition in their paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.segment_bytes import file_of
from model.segment_reads import offsets, reader, rows

from kafkacore.errors import KafkaConfigurationError
from kafkacore.record import read_batches
from kafkacore.security.references import ALLOWED_VARIABLES
from kafkacore.spark.log_files.files import LogFile, Storage, log_files, place_of
from kafkacore.spark.log_files.options import parse_log_options

NAME = "00000000000000000000.log"
LATER = "00000000000000000009.log"
TIERED = "-YkT9i3EnQOy7Y0GmiQzGcQ"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (f"/data/flights-7/{LATER}", ("flights", 7, 9)),
        (f"/data/a-b.c_d-0/{LATER}", ("a-b.c_d", 0, 9)),
        (f"/data/flights-7{TIERED}/00000000000000000009-x_Y.log", ("flights", 7, 9)),
        (f"/data/flights{TIERED}/7/00000000000000000009-x_Y.log", ("flights", 7, 9)),
        (f"/data/{LATER}", (None, None, 9)),
        ("/data/flights-7/some.log", ("flights", 7, None)),
        (f"/data/flights-99999999999/{LATER}", (None, None, 9)),
        (LATER, (None, None, 9)),
    ],
)
def test_a_path_says_topic_partition_and_offset(
    path: str, place: tuple[str | None, int | None, int | None]
) -> None:
    assert place_of(path) == place


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a broker's data directory, including the other files and folders of a real one."""
    for folder in (
        "a-0", "a-1", "b-0", "__consumer_offsets-3", ".trash",
        f"a-0.{'0' * 32}-delete", f"a-0.{'0' * 32}-future", f"a-0.{'0' * 32}-stray",
    ):  # fmt: skip
        (tmp_path / folder).mkdir()
        (tmp_path / folder / NAME).write_bytes(file_of([2]))
    (tmp_path / "a-0" / LATER).write_bytes(file_of([1], 9))
    for other in ("00000000000000000000.index", "leader-epoch-checkpoint", f"{NAME}.deleted", "server.log"):
        (tmp_path / "a-0" / other).write_bytes(b"x")
    return tmp_path


def found(path: Path | str, **options: object) -> list[tuple[str, int, int]]:
    return [
        (row["topic"], row["partition"], row["offset"])
        for row in rows(path, "topic partition offset", **options).to_pylist()
    ]


def test_a_data_directory_gives_its_partitions_and_nothing_else(data: Path) -> None:
    assert found(data) == [
        ("a", 0, 0),
        ("a", 0, 1),
        ("a", 0, 9),
        ("a", 1, 0),
        ("a", 1, 1),
        ("b", 0, 0),
        ("b", 0, 1),
    ]


def test_internal_topics_come_when_they_are_named(data: Path) -> None:
    assert found(data / "__consumer_offsets-3") == [
        ("__consumer_offsets", 3, 0),
        ("__consumer_offsets", 3, 1),
    ]


def test_globs_and_several_paths_are_read(data: Path) -> None:
    assert {row[:2] for row in found(f"{data}/a-*")} == {("a", 0), ("a", 1)}
    assert found(f"{data}/*/{LATER}") == [("a", 0, 9)]
    paths = f'["{data}/b-0", "{data}/a-1/{NAME}", "{data}/b-0/{NAME}"]'
    assert found("", paths=paths) == [("a", 1, 0), ("a", 1, 1), ("b", 0, 0), ("b", 0, 1)]


def test_links_are_followed_and_no_folder_is_read_twice(tmp_path: Path) -> None:
    elsewhere, data = tmp_path / "elsewhere" / "t-0", tmp_path / "data"
    elsewhere.mkdir(parents=True)
    data.mkdir()
    (elsewhere / NAME).write_bytes(file_of([2]))
    (data / "t-0").symlink_to(elsewhere)
    (data / "t-1").symlink_to(data)
    assert offsets(data) == [0, 1]


def test_a_file_url_is_a_local_path(data: Path) -> None:
    assert offsets(f"file://{data}/b-0") == offsets(f"file:{data}/b-0") == [0, 1]


def test_topics_are_subscribed_to(data: Path) -> None:
    assert {row[0] for row in found(data, subscribe="b, c")} == {"b"}
    assert {row[0] for row in found(data, subscribePattern="[ac]")} == {"a"}
    with pytest.raises(KafkaConfigurationError, match="topics of the files: a, b"):
        found(data, subscribe="nothing")


def test_only_the_last_segment_of_a_log_may_be_cut() -> None:
    found = [
        (f"/x/a-0/{LATER}", 1),
        (f"/x/a-0/{NAME}", 1),
        (f"/y/{NAME}", 1),
        (f"/y/{LATER}", 1),
        ("/x/b-0/z.log", 1),
    ]
    assert [(file.path, file.is_last) for file in log_files(found)] == [
        (f"/y/{NAME}", False), (f"/y/{LATER}", True),
        (f"/x/a-0/{NAME}", False), (f"/x/a-0/{LATER}", True), ("/x/b-0/z.log", True),
    ]  # fmt: skip


# ---- fsspec ------------------------------------------------------------------------------------------------
@pytest.fixture
def bucket():
    """Return a folder in a storage that is accessible only through fsspec."""
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bucket/t-4/" + NAME, file_of([3, 200, 5]))
    memory.pipe_file(f"/bucket/t-4/{208:020}.log", file_of([1, 1], 208))
    memory.pipe_file("/bucket/_t-0/" + NAME, file_of([1]))
    yield "memory://bucket"
    memory.rm("/bucket", recursive=True)


def test_other_storage_is_read_by_fsspec(bucket: str) -> None:
    whole = list(range(210))
    assert [row[2] for row in found(bucket)] == whole
    assert found(f"{bucket}/t-*/{208:020}.log") == [("t", 4, 208), ("t", 4, 209)]
    assert (
        offsets(f"{bucket}/t-4", startingOffsets='{"t":{"4":200}}', isolation="read_committed") == whole[200:]
    )
    with pytest.raises(KafkaConfigurationError, match="no segment file found at memory://nothing"):
        found("memory://nothing")


def test_other_storage_is_divided_by_its_indexes_alone(bucket: str) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    whole = list(range(210))
    assert offsets(bucket, maxBytesPerPartition=100) == whole
    assert len(reader(bucket, maxBytesPerPartition=100).partitions()) == 2
    first = memory.cat_file("/bucket/t-4/" + NAME)
    entries = [(batch.last_offset, batch.position) for batch in list(read_batches(first))[1:]]
    index = b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in entries)
    memory.pipe_file("/bucket/t-4/00000000000000000000.index", index)
    assert len(reader(bucket, maxBytesPerPartition=100).partitions()) == 4
    assert offsets(bucket, maxBytesPerPartition=100) == whole


def test_headers_of_other_storage_are_read_many_at_a_time(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    memory, asked = type(fsspec.filesystem("memory")), []
    cat_file = memory.cat_file

    def counted(self: object, path: str, **given: object) -> bytes:
        asked.append(path)
        return cat_file(self, path, **given)  # type: ignore[no-any-return, arg-type]

    monkeypatch.setattr(memory, "cat_file", counted)
    reader(bucket, isolation="read_committed").partitions()
    assert len(asked) == 2


def test_storage_options_reach_fsspec_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse_log_options(
        {
            "path": "s3://b",
            "storage.secret": "${env:LOG_SECRET}",
            "storage.anon": "false",
            "storage.client_kwargs": '{"a":1}',
        }
    )
    assert options.storage == {"secret": "${env:LOG_SECRET}", "anon": False, "client_kwargs": {"a": 1}}
    assert "p4ss" not in repr(options) + repr(Storage(options.storage))
    asked = {}
    monkeypatch.setenv(ALLOWED_VARIABLES, "LOG_SECRET")
    monkeypatch.setenv("LOG_SECRET", "p4ss")

    def url_to_fs(path: str, **given: object) -> tuple[object, str]:
        asked.update(given, path=path)
        raise ValueError("p4ss")

    monkeypatch.setattr("fsspec.core.url_to_fs", url_to_fs)
    with pytest.raises(KafkaConfigurationError) as error:
        Storage(options.storage).find(["s3://user:w0rd@b"])
    assert asked["secret"] == "p4ss"
    assert "p4ss" not in str(error.value) + repr(error.value.__cause__)
    assert "w0rd" not in str(error.value) + LogFile("s3://user:p@w0rd@b/x.log", 1).shown
