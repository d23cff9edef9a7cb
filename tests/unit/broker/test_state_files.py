"""State files besides the logs: producer ids never repeat, and the cluster id is stable."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.topics_file import read_topics
from kafkacore.broker.storage.checked_json import read_checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.identity import (
    SALT_KEY_NAME,
    SALT_KEY_SIZE,
    load_or_create_cluster_id,
    load_or_create_salt_key,
)
from kafkacore.broker.storage.producer_ids import BLOCK_SIZE, FILE_NAME, ProducerIdManager
from kafkacore.errors import KafkaConfigurationError, KafkaStorageError
from kafkacore.testing import VirtualClock


def test_producer_ids_never_repeat_over_crashes(tmp_path: Path) -> None:
    given: list[int] = []
    for count in (1, 3, BLOCK_SIZE, BLOCK_SIZE + 1, 2):
        manager = ProducerIdManager(tmp_path, Disk())  # The previous one was not closed.
        given += [manager.next_producer_id() for _ in range(count)]
    assert given == sorted(set(given))
    assert given[0] == 0


def test_id_is_not_given_out_when_its_block_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = ProducerIdManager(tmp_path, Disk())

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write_file", fail)
        with pytest.raises(OSError, match="no space"):
            manager.next_producer_id()
    assert manager.next_producer_id() == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"next_block_start": -1}', '{"next_block_start": "7"}', "{}"),
        # Found by fuzzing: an id that does not fit into a message, and a RecursionError.
        *('{"next_block_start": 9223372036854775000}', '{"next_block_start": ' + "[" * 100_000),
    ],
)
def test_damaged_producer_id_file_is_refused_rather_than_started_over(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(KafkaStorageError):
        ProducerIdManager(tmp_path, Disk())


def test_cluster_id_is_made_once(tmp_path: Path) -> None:
    first = load_or_create_cluster_id(tmp_path, 1, VirtualClock(seed=1), Disk())
    assert len(first) == 22
    assert load_or_create_cluster_id(tmp_path, 1, VirtualClock(seed=2), Disk()) == first
    assert f"cluster.id={first}" in (tmp_path / "meta.properties").read_text()


def test_key_of_salts_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = load_or_create_salt_key(tmp_path, Disk())
    assert len(first) == SALT_KEY_SIZE
    assert load_or_create_salt_key(tmp_path, Disk()) == first
    assert (tmp_path / SALT_KEY_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(1 << 20)])
def test_key_of_salts_that_is_none_is_made_anew_with_a_warning(
    tmp_path: Path, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / SALT_KEY_NAME).write_bytes(damaged)
    found = load_or_create_salt_key(tmp_path, Disk())
    assert len(found) == SALT_KEY_SIZE
    assert load_or_create_salt_key(tmp_path, Disk()) == found
    assert [record.message for record in caplog.records] == [
        f"{tmp_path / SALT_KEY_NAME} is damaged; replacing it by a new key"
    ]


def test_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    load_or_create_cluster_id(tmp_path, 1, VirtualClock(), Disk())
    with pytest.raises(KafkaConfigurationError, match=r"node\.id 1"):
        load_or_create_cluster_id(tmp_path, 2, VirtualClock(), Disk())


# ---- Found by fuzzing -------------------------------------------------------------------------------------
@pytest.mark.parametrize("line", [b"a=1\n", b"\n", b"# a=1\n", b"=1\n", b"name\n"])
def test_meta_properties_of_many_lines_take_no_more_memory_than_one(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "meta.properties"
    path.write_bytes(line * 10_000 + b"cluster.id=kept\nnode.id=1\n")
    with little_memory_for(path):
        assert load_or_create_cluster_id(tmp_path, 1, VirtualClock(), Disk()) == "kept"


@pytest.mark.parametrize("line", [b"0 1\n", b"\n", b"7", b"a b c d e f\n", b"     "])
def test_checkpoint_that_is_none_takes_little_memory(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / checkpoints.RECOVERY_POINT_FILE
    path.write_bytes(b"0\n10000\n" + line * 10_000)
    with little_memory_for(path):
        assert checkpoints.read_offsets(Disk(), path) == {}
    with little_memory_for(path), pytest.raises(ValueError, match=r"of 10000|not after"):
        checkpoints.parse_leader_epochs(path.read_bytes())


@contextlib.contextmanager
def little_memory_for(path: Path) -> Iterator[None]:
    """Check that memory stays below five times the file size.

    That allows for its bytes, its text, a line, and the line without leading blanks.
    """
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * path.stat().st_size + 16 * 1024


def test_meta_properties_that_no_broker_has_written_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_bytes(b"cluster.id=kept\n" + b"#" * (1 << 20))
    with pytest.raises(KafkaConfigurationError, match=r"1048592 bytes.*: restore it, or"):
        load_or_create_cluster_id(tmp_path, 1, VirtualClock(), Disk())


@pytest.mark.parametrize(
    "line",
    ["a 0 9223372036854775808", "a 2147483648 0", "a 0 -2", "a 0 " + "9" * 4000, "a 0 1\x0b2", "a 0 0 \n"],
)
def test_checkpoint_of_numbers_that_no_log_has_is_passed_over(
    tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_text(f"0\n1\n{line}\n")
    assert checkpoints.read_offsets(Disk(), path) == {}
    (record,) = caplog.records
    assert record.getMessage().isprintable()
    assert len(record.getMessage()) < 1000


def test_state_file_that_is_nested_without_end_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        read_checked_json(b'{"a": ' * 100_000)
    (tmp_path / "topics.json").write_bytes(b"[" * 100_000)
    with pytest.raises(KafkaStorageError, match=r"topics.json cannot be read: it is nested too deep"):
        read_topics(Disk(), tmp_path)
