"""Formats the content of a log's file, written by this broker or by Apache Kafka, as text or JSON.

Field names are those of Kafka's ``DumpLogSegments``. The broker need not run, and files are only read.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from kafkacore.broker.log._indexes import OFFSET_ENTRY, TIME_ENTRY
from kafkacore.broker.log.end_transaction_marker import EndTransactionMarker, read_marker
from kafkacore.broker.log.producer_state import SNAPSHOT_SUFFIX, read_snapshot
from kafkacore.broker.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from kafkacore.broker.log.transaction_index import ABORTED_VERSION, read_aborted
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError, IllegalArgumentError
from kafkacore.record import BatchHeader, Record, RecordBatch
from kafkacore.record.segment_file import Damage, SegmentFile
from kafkacore.structs import TimestampType

_Fields = dict[str, object]
#: Returns the fields ``key`` and ``payload`` of a record.
Decoder = Callable[[Record], _Fields]


def dump_log_segments(
    path: Path,
    records: bool = False,
    as_json: bool = False,
    disk: Disk | None = None,
    decoder: Decoder | None = None,
) -> Iterator[str]:
    r"""Yield the content of a file, line by line.

    Parameters
    ----------
    path:
        A ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` or ``.snapshot`` file with its original name.
    records:
        Whether to include the records of a ``.log`` file. Keys and values are decoded as UTF-8, with invalid
        bytes as ``\xff``. For a transaction marker, the record shows the outcome of the transaction instead.
    as_json:
        Whether each line is a JSON object, whose ``type`` is the kind of entry.
    disk:
        File system to use. Default: the real one.
    decoder:
        Function that decodes the key and the value of a record. Default: decode both as UTF-8.

    Yields
    ------
    str
        A batch, record, index entry, aborted transaction or producer.

    Raises
    ------
    CorruptRecordError
        The file is damaged. The lines before the damage have been yielded.
    IllegalArgumentError
        The file name does not consist of an offset and one of these suffixes.
    OSError
        The file cannot be read.
    """
    dumpers = {
        LOG_SUFFIX: _dump_log,
        INDEX_SUFFIX: _dump_offset_index,
        TIME_INDEX_SUFFIX: _dump_time_index,
        TRANSACTION_INDEX_SUFFIX: _dump_transaction_index,
        SNAPSHOT_SUFFIX: _dump_snapshot,
    }
    path = Path(path)
    if path.suffix not in dumpers or not path.stem.isdecimal():
        names = ", ".join(f"<offset>{suffix}" for suffix in dumpers)
        raise IllegalArgumentError(f"cannot dump {path.name}: the file name must be one of {names}")
    base_offset = int(path.stem)
    decode = (decoder or _as_text) if records else None
    file = _File(disk or Disk(), path)
    try:
        for kind, fields in dumpers[path.suffix](file, base_offset, decode):
            yield json.dumps({"type": kind} | fields) if as_json else _text(kind, fields)
    finally:
        file.close()


class _File:
    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        # The path may be a symbolic link, which Disk does not follow.
        self._fd = disk.open_read_only(Path(os.path.realpath(path)))
        self.size = disk.size(self._fd)

    def read(self, size: int, position: int) -> bytes:
        return self._disk.pread(self._fd, size, position)

    def close(self) -> None:
        self._disk.close(self._fd)


def _text(kind: str, fields: _Fields) -> str:
    pairs = (f"{name}: {_text_of(value)}" for name, value in fields.items())
    return ("| " if kind == "record" else "") + " ".join(pairs)


def _text_of(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dump_log(file: _File, base_offset: int, decoder: Decoder | None) -> Iterator[tuple[str, _Fields]]:
    segment = SegmentFile(lambda position, size: file.read(size, position), file.size)
    expected = base_offset
    while (batch := segment.next_batch()) is not None:
        if isinstance(batch, Damage):
            offset = expected if batch.offset is None else batch.offset
            raise CorruptRecordError(f"position {batch.position}: {batch.reason}", offset=offset)
        position = segment.position_of(batch)
        yield "batch", _batch(batch, position)
        if decoder is not None:
            yield from _records(batch, position, decoder)
        expected = batch.next_offset


def _records(batch: RecordBatch, position: int, decoder: Decoder) -> Iterator[tuple[str, _Fields]]:
    try:
        marker = read_marker(batch) if batch.is_control else None
        for record in batch:
            yield "record", _record(record, marker, decoder)
    except CorruptRecordError as error:
        raise CorruptRecordError(f"position {position}: {error.reason}", offset=error.offset) from error


def _batch(header: BatchHeader, position: int) -> _Fields:
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "position": position,
        _TIMESTAMP_NAMES[header.timestamp_type]: header.max_timestamp,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "compresscodec": header.compression.name.lower(),
        "crc": header.crc,
        "isvalid": True,
    }


_TIMESTAMP_NAMES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def _record(record: Record, marker: EndTransactionMarker | None, decoder: Decoder) -> _Fields:
    fields: _Fields = {
        "offset": record.offset,
        _TIMESTAMP_NAMES[record.timestamp_type]: record.timestamp,
        "keySize": record.key_size,
        "valueSize": record.value_size,
        "headerKeys": [key for key, _ in record.headers],
    }
    if marker is not None:
        outcome = "COMMIT" if marker.is_commit else "ABORT"
        return fields | {"endTxnMarker": outcome, "coordinatorEpoch": marker.coordinator_epoch}
    return fields | decoder(record)


def _as_text(record: Record) -> _Fields:
    return {"key": _readable(record.key), "payload": _readable(record.value)}


def _readable(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _entries(file: _File, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    if file.size % entry.size:
        raise CorruptRecordError(f"the file has {file.size} bytes, not a multiple of {entry.size}")
    return entry.iter_unpack(file.read(file.size, 0))


def _dump_offset_index(file: _File, base_offset: int, _: Decoder | None) -> Iterator[tuple[str, _Fields]]:
    for relative, position in _entries(file, OFFSET_ENTRY):
        yield "offset_index_entry", {"offset": base_offset + relative, "position": position}


def _dump_time_index(file: _File, base_offset: int, _: Decoder | None) -> Iterator[tuple[str, _Fields]]:
    for timestamp, relative in _entries(file, TIME_ENTRY):
        yield "time_index_entry", {"timestamp": timestamp, "offset": base_offset + relative}


def _dump_transaction_index(file: _File, _: int, __: Decoder | None) -> Iterator[tuple[str, _Fields]]:
    for one in read_aborted(file.read(file.size, 0)):
        yield (
            "aborted_transaction",
            {
                "version": ABORTED_VERSION,
                "producerId": one.producer_id,
                "firstOffset": one.first_offset,
                "lastOffset": one.last_offset,
                "lastStableOffset": one.last_stable_offset,
            },
        )


def _dump_snapshot(file: _File, _: int, __: Decoder | None) -> Iterator[tuple[str, _Fields]]:
    for entry in read_snapshot(file.read(file.size, 0)):
        fields: _Fields = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.current_txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
        }
        for last in list(entry.batches)[-1:]:
            fields |= {
                "firstSequence": last.first_sequence,
                "lastSequence": last.last_sequence,
                "lastOffset": last.last_offset,
                "offsetDelta": last.last_offset - last.first_offset,
            }
        yield "producer", fields
