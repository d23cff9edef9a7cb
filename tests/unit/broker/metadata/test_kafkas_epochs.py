"""Leader epochs of a folder that Apache Kafka has written: the broker begins with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from model.broker_in_hand import broker_in_hand
from model.kafkas_metadata import TOPIC_ID, begun, led_by, metadata_batch

from kafkacore.broker.metadata.kafkas_epochs import leader_epochs
from kafkacore.broker.storage.disk import Disk
from kafkacore.protocol.generated.metadata import MetadataRequest

SNAPSHOT = "00000000000000000100-0000000003.checkpoint"
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (found := tmp_path / "__cluster_metadata-0").mkdir()
    return found


def epochs(folder: Path) -> dict[int, int]:
    return {partition: epoch for (_, partition), epoch in leader_epochs(folder, Disk()).items()}


def test_each_change_of_the_leader_begins_an_epoch(folder: Path) -> None:
    (folder / SEGMENT).write_bytes(
        metadata_batch(begun(0, 0), begun(1, 4))
        + metadata_batch(led_by(0, -1), led_by(1, -2), base_offset=2)
        + metadata_batch(led_by(0, 1), base_offset=4)
    )
    assert epochs(folder) == {0: 2, 1: 4}


def test_records_of_the_snapshot_count_once(folder: Path) -> None:
    (folder / "00000000000000000050-0000000003.checkpoint").write_bytes(
        metadata_batch(begun(0, 3), begun(9, 3))
    )
    (folder / SNAPSHOT).write_bytes(metadata_batch(begun(0, 5)))
    (folder / SEGMENT).write_bytes(
        metadata_batch(led_by(0, -1), led_by(0, 1), base_offset=98)
        + metadata_batch(led_by(0, -1), base_offset=100)
    )
    assert epochs(folder) == {0: 6}


def test_records_about_other_things_are_skipped(folder: Path) -> None:
    other = b"\x01\x02\x00what only Kafka can read"
    (folder / SEGMENT).write_bytes(
        metadata_batch(b"\0\0\0\0", is_control=True)
        + metadata_batch(begun(0, 1), other, led_by(0, -1), base_offset=1)
    )
    (folder / "00000000000000000000.index").write_bytes(b"damaged")
    assert epochs(folder) == {0: 2}


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 80,
        metadata_batch(b"\x01\x05\x09", base_offset=2),
        metadata_batch(b"\x01\x05\x02", base_offset=2),
        metadata_batch(b"\x02\x05\x02", base_offset=2),
        metadata_batch(b"", base_offset=2),
        metadata_batch(begun(1, 2**31 - 1), led_by(1, -1), base_offset=2),
    ],
)
def test_damage_leaves_what_was_before_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    (folder / SEGMENT).write_bytes(metadata_batch(begun(0, 1), led_by(0, -1)) + damage)
    assert epochs(folder)[0] == 2
    assert "restart them" in caplog.text


def test_a_batch_that_is_not_complete_was_never_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / SEGMENT).write_bytes(
        metadata_batch(begun(0, 1)) + metadata_batch(led_by(0, -1), base_offset=1)[:-1]
    )
    assert epochs(folder) == {0: 1}
    assert not caplog.text


def test_a_folder_without_the_log_has_no_epochs(tmp_path: Path) -> None:
    assert leader_epochs(tmp_path / "__cluster_metadata-0", Disk()) == {}


# ---- The broker ------------------------------------------------------------------------------------------
@pytest.fixture
def kafkas(tmp_path: Path) -> Iterator[Path]:
    """Return a folder of Apache Kafka with a topic of two partitions, whose broker has been stopped twice."""
    (tmp_path / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAABA\n"
    )
    for partition in range(2):
        (one := tmp_path / f"moved-{partition}").mkdir()
        (one / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw")
    (log := tmp_path / "__cluster_metadata-0").mkdir()
    changes = [begun(0, 0), begun(1, 0), led_by(0, -1), led_by(0, 1), led_by(0, -1)]
    changes += [begun(2, 9), begun(-1, 9)]
    (log / SEGMENT).write_bytes(metadata_batch(*changes))
    return tmp_path


def shown_epochs(folder: Path) -> dict[int, int]:
    with broker_in_hand(folder, node_id=1) as broker:
        (topic,) = broker.ask(MetadataRequest(topics=None)).topics
        assert topic.topic_id == TOPIC_ID
        return {each.partition_index: each.leader_epoch for each in topic.partitions}


def test_a_broker_continues_with_the_epochs_that_clients_know(kafkas: Path) -> None:
    assert shown_epochs(kafkas) == {0: 3, 1: 0}
    # The epochs are in the folder now, so another start begins none.
    assert shown_epochs(kafkas) == {0: 3, 1: 0}
