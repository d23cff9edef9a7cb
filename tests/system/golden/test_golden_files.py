"""The committed golden files equal the output of Kafka's own classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.golden_batches import FOLDER
from model.golden_group_records import FILE as GROUP_RECORDS
from model.golden_messages import FILE
from peers.jars import run_java


@pytest.mark.integration
def test_committed_messages_are_what_the_program_makes(tmp_path: Path) -> None:
    run_java("GoldenMessages", str(tmp_path / "messages.txt"))
    assert (tmp_path / "messages.txt").read_text() == FILE.read_text()


@pytest.mark.integration
def test_committed_group_records_are_what_the_program_makes(tmp_path: Path) -> None:
    run_java("GoldenGroupRecords", str(tmp_path / "group_records.txt"))
    assert (tmp_path / "group_records.txt").read_text() == GROUP_RECORDS.read_text()


@pytest.mark.integration
def test_committed_batches_are_what_the_program_makes(tmp_path: Path) -> None:
    run_java("GoldenBatches", str(tmp_path))
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in FOLDER.iterdir()}
