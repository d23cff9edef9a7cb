"""The output of ``dump_log_segments`` for the files of a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model.golden_batches import golden_cases
from model.log_oracle import NOW_MS, batch, make_log, open_manager
from model.transaction_log import TransactionalProducer

from kafkacore.broker.log.dump import dump_log_segments
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError, IllegalArgumentError
from kafkacore.record import Compression

BASE = "00000000000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    manager = open_manager(Disk(), tmp_path / "data", index_interval_bytes=100)
    log = make_log(manager)
    for index in range(4):
        values = [b"value %d" % index, None, b"\xff"]
        sent = batch(values, NOW_MS + 10 * index, producer=(9, 0, 3 * index), compression=Compression.LZ4)
        log.append(sent, now_ms=NOW_MS)
    manager.close()
    return log.folder


def test_batches_are_given_with_kafkas_names(folder: Path) -> None:
    lines = list(dump_log_segments(folder / f"{BASE}.log"))
    assert len(lines) == 4
    assert lines[1].startswith(
        "baseOffset: 3 lastOffset: 5 count: 3 baseSequence: 3 lastSequence: 5 producerId: 9 producerEpoch: 0 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false position: "
    )
    assert f"CreateTime: {NOW_MS + 12} " in lines[1]
    assert "magic: 2 compresscodec: lz4 crc: " in lines[1]


def test_records_are_given_as_json(folder: Path) -> None:
    lines = [
        json.loads(line) for line in dump_log_segments(folder / f"{BASE}.log", records=True, as_json=True)
    ]
    assert [line["type"] for line in lines] == ["batch", "record", "record", "record"] * 4
    assert lines[1] == {
        "type": "record", "offset": 0, "CreateTime": NOW_MS, "keySize": 3, "valueSize": 7, "headerKeys": [],
        "key": "key", "payload": "value 0",
    }  # fmt: skip
    assert lines[2]["payload"] is None
    assert lines[3]["payload"] == "\\xff"


def test_indexes_and_snapshots_are_given(folder: Path) -> None:
    entries = [json.loads(line) for line in dump_log_segments(folder / f"{BASE}.index", as_json=True)]
    log = [json.loads(line) for line in dump_log_segments(folder / f"{BASE}.log", as_json=True)]
    positions = {line["lastOffset"]: line["position"] for line in log}
    assert entries
    assert all(positions[entry["offset"]] == entry["position"] for entry in entries)
    assert list(dump_log_segments(folder / f"{BASE}.timeindex"))[-1] == f"timestamp: {NOW_MS + 32} offset: 11"
    (producer,) = dump_log_segments(folder / "00000000000000000012.snapshot")
    assert producer == (
        "producerId: 9 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: -1 "
        f"lastTimestamp: {NOW_MS + 32} firstSequence: 9 lastSequence: 11 lastOffset: 11 offsetDelta: 2"
    )


def test_what_stands_before_the_damage_is_given(folder: Path) -> None:
    path = folder / f"{BASE}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    lines = dump_log_segments(path)
    assert [next(lines).split()[1] for _ in range(3)] == ["0", "3", "6"]
    with pytest.raises(CorruptRecordError, match=r"position \d+: CRC mismatch.* \(at offset 9\)"):
        next(lines)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_half_an_entry_is_damage(folder: Path, suffix: str) -> None:
    (path,) = folder.glob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptRecordError):
        list(dump_log_segments(path))


@pytest.mark.parametrize("name", ["x.log", "partition.metadata", f"{BASE}.swap"])
def test_other_files_are_refused_with_a_sentence(folder: Path, name: str) -> None:
    with pytest.raises(
        IllegalArgumentError, match=r"the file name must be one of <offset>\.log, <offset>\.index"
    ):
        list(dump_log_segments(folder / name))


def test_transactions_are_given_as_by_kafka(tmp_path: Path) -> None:
    manager = open_manager(Disk(), tmp_path / "data", flush="os")
    producer = TransactionalProducer(make_log(manager), 7, coordinator_epoch=3)
    for commit in (True, False):
        producer.send(b"value")
        producer.end(commit=commit)
    manager.close()
    folder = tmp_path / "data" / "flights-0"
    lines = list(dump_log_segments(folder / f"{BASE}.log", records=True))
    markers = [line.partition("headerKeys: [] ")[2] for line in lines if "endTxnMarker" in line]
    assert markers == [
        "endTxnMarker: COMMIT coordinatorEpoch: 3",
        "endTxnMarker: ABORT coordinatorEpoch: 3",
    ]
    assert list(dump_log_segments(folder / f"{BASE}.txnindex")) == [
        "version: 0 producerId: 7 firstOffset: 2 lastOffset: 3 lastStableOffset: 4"
    ]


def test_messages_of_old_formats_are_given_too(tmp_path: Path) -> None:
    case = golden_cases()["v0-v1-v2-in-one-log"]
    file = tmp_path / f"{BASE}.log"
    file.write_bytes(case.content)
    lines = [json.loads(line) for line in dump_log_segments(file, records=True, as_json=True)]
    batches = [line for line in lines if line["type"] == "batch"]
    assert [batch["magic"] for batch in batches] == [batch["magic"] for batch in case.batches]
    assert [batch["lastOffset"] for batch in batches] == [batch["last_offset"] for batch in case.batches]
    sizes = [batch["size_in_bytes"] for batch in case.batches]
    assert [batch["position"] for batch in batches] == [sum(sizes[:index]) for index in range(len(sizes))]
    assert [line["offset"] for line in lines if line["type"] == "record"] == [
        record["offset"] for record in case.records
    ]


def test_a_broken_message_of_an_old_format_is_named_by_its_position(tmp_path: Path) -> None:
    content = golden_cases()["v1-none"].content
    file = tmp_path / f"{BASE}.log"
    for broken, reason in (
        (content[:-1] + b"x", "CRC"),
        (content[:-1], "is truncated"),
        (content + b"\1" * 5, "5 bytes"),
    ):
        file.write_bytes(broken)
        with pytest.raises(CorruptRecordError, match=f"position .*{reason}"):
            list(dump_log_segments(file))
