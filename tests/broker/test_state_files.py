"""What the broker keeps beside the logs: producer ids that never repeat, a cluster id that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacore.broker.disk import Disk
from kafkacore.broker.identity import load_or_create_cluster_id
from kafkacore.broker.producer_ids import BLOCK_SIZE, FILE_NAME, ProducerIdManager
from kafkacore.errors import KafkaConfigurationError, KafkaStorageError
from kafkacore.testing import VirtualClock


def test_producer_ids_never_repeat_over_crashes(tmp_path: Path) -> None:
    given: list[int] = []
    for count in (1, 3, BLOCK_SIZE, BLOCK_SIZE + 1, 2):
        manager = ProducerIdManager(tmp_path, Disk())  # every life ends without a goodbye
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
    "text", ["", "{", "[]", '{"next_block_start": -1}', '{"next_block_start": "7"}', "{}"]
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


def test_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    load_or_create_cluster_id(tmp_path, 1, VirtualClock(), Disk())
    with pytest.raises(KafkaConfigurationError, match=r"node\.id 1"):
        load_or_create_cluster_id(tmp_path, 2, VirtualClock(), Disk())
