"""What stands in a file of a log, line by line: ours or Apache Kafka's.

A file's path in, lines of text or JSON out. Needs no broker and changes nothing. Does not know: logs,
other files. Names of the fields are those of Kafka's ``DumpLogSegments``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from kafkacore.broker.disk import Disk
from kafkacore.broker.log._batches import BATCH_OVERHEAD, walk_batches
from kafkacore.broker.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from kafkacore.broker.log.producer_state import SNAPSHOT_SUFFIX, read_snapshot
from kafkacore.broker.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from kafkacore.errors import CorruptRecordError, IllegalArgumentError
from kafkacore.record import BatchHeader, Record, RecordBatch, read_batches
from kafkacore.structs import TimestampType

_CHUNK = 1 << 20
# Of every format: offset and length come first, and the magic has one place.
_LOG_OVERHEAD = 12
_MAGIC_AT = 16
_Fields = dict[str, object]


def dump_log_segments(
    path: Path, records: bool = False, as_json: bool = False, disk: Disk | None = None
) -> Iterator[str]:
    """The content of one file.

    Parameters
    ----------
    path:
        A ``.log``, ``.index``, ``.timeindex`` or ``.snapshot`` file, under the name that its broker gave it.
    records:
        Of a ``.log``, also each record. Keys and values as UTF-8; other bytes as ``\\\\xff``.
    as_json:
        One JSON object a line; its ``type`` says what it is of.

    Raises
    ------
    CorruptRecordError
        The file is damaged; what stands before the damage has been given.
    IllegalArgumentError
        The name is of no such file.
    OSError
        It cannot be read.
    """
    dumpers = {
        LOG_SUFFIX: _dump_log,
        INDEX_SUFFIX: _dump_offset_index,
        TIME_INDEX_SUFFIX: _dump_time_index,
        SNAPSHOT_SUFFIX: _dump_snapshot,
    }
    path = Path(path)
    if path.suffix not in dumpers or not path.stem.isdecimal():
        raise IllegalArgumentError(f"{path.name} is none of {', '.join(f'<offset>{s}' for s in dumpers)}")
    base_offset = int(path.stem)
    file = _File(disk or Disk(), path)
    try:
        for kind, fields in dumpers[path.suffix](file, base_offset, records):
            yield json.dumps({"type": kind} | fields) if as_json else _text(kind, fields)
    finally:
        file.close()


class _File:
    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._fd = disk.open_read_only(path)
        self.size = disk.size(self._fd)

    def read(self, size: int, position: int) -> bytes:
        return self._disk.pread(self._fd, size, position)

    def close(self) -> None:
        self._disk.close(self._fd)


def _text(kind: str, fields: _Fields) -> str:
    pairs = (f"{name}: {str(v).lower() if isinstance(v, bool) else v}" for name, v in fields.items())
    return ("| " if kind == "record" else "") + " ".join(pairs)


def _dump_log(file: _File, base_offset: int, records: bool) -> Iterator[tuple[str, _Fields]]:
    position, needed, expected = 0, BATCH_OVERHEAD, base_offset
    while position < file.size:
        start = position
        chunk = file.read(max(needed, _CHUNK), start)
        headers, position, needed, damage = walk_batches(chunk, start, file.size, True)
        for header in headers:
            yield "batch", _batch(header, header.position)
            expected = header.last_offset + 1
            if records:
                at = header.position - start
                for batch in read_batches(chunk[at : at + header.size_in_bytes], check_crcs=False):
                    for record in batch:
                        yield "record", _record(record)
        if damage is not None:
            old = _old_batch(file, position)
            if old is not None:
                yield "batch", _batch(old, position)
                if records:
                    for record in old:
                        yield "record", _record(record)
                position += old.size_in_bytes
                needed, expected = BATCH_OVERHEAD, old.next_offset
                continue
            raise CorruptRecordError(f"position {position}: {damage}", offset=expected)


def _old_batch(file: _File, position: int) -> RecordBatch | None:
    """The message of format 0 or 1 at ``position``, with the set in it; ``None`` if there is none."""
    head = file.read(_MAGIC_AT + 1, position)
    if len(head) <= _MAGIC_AT or head[_MAGIC_AT] > 1:
        return None
    size = _LOG_OVERHEAD + int.from_bytes(head[8:_LOG_OVERHEAD], "big", signed=True)
    if not _LOG_OVERHEAD < size <= file.size - position:
        return None
    try:
        return next(read_batches(file.read(size, position)), None)
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


def _record(record: Record) -> _Fields:
    return {
        "offset": record.offset,
        _TIMESTAMP_NAMES[record.timestamp_type]: record.timestamp,
        "keySize": record.key_size,
        "valueSize": record.value_size,
        "headerKeys": [key for key, _ in record.headers],
        "key": _readable(record.key),
        "payload": _readable(record.value),
    }


def _readable(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _entries(file: _File, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    if file.size % entry.size:
        raise CorruptRecordError(f"{file.size} bytes are no whole number of entries of {entry.size}")
    return entry.iter_unpack(file.read(file.size, 0))


def _dump_offset_index(file: _File, base_offset: int, _: bool) -> Iterator[tuple[str, _Fields]]:
    for relative, position in _entries(file, OFFSET_ENTRY):
        yield "offset_index_entry", {"offset": base_offset + relative, "position": position}


def _dump_time_index(file: _File, base_offset: int, _: bool) -> Iterator[tuple[str, _Fields]]:
    for timestamp, relative in _entries(file, TIME_ENTRY):
        yield "time_index_entry", {"timestamp": timestamp, "offset": base_offset + relative}


def _dump_snapshot(file: _File, _: int, __: bool) -> Iterator[tuple[str, _Fields]]:
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
