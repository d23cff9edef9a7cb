"""The file of the metadata log: records in, durable on return; all that it has out, at a start.

One file of record batches in Kafka's format. A change is one batch: after a crash it is there as a whole or
not at all. A mark beside it says how far it was answered, so that a start tells what a crash has cut short
from what was damaged. When most of it says what is true no more, it is written anew and takes the old one's
place at once. Does not know: what records mean, threads. Source of the format: Kafka's
``__cluster_metadata``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kafkacore.broker.metadata import end_offset_checkpoint
from kafkacore.broker.metadata.records import MetadataRecord, decode_record, encode_record
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.identity import KeptMetadata
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError, MalformedMessageError
from kafkacore.record import RecordBatch, RecordBatchBuilder, read_batches
from kafkacore.record._layout import (
    BATCH_OVERHEAD,
    CURRENT_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_FIELDS_OVERHEAD,
)

logger = logging.getLogger(__name__)

FILE_NAME: Final = "cluster-metadata.log"
#: Of a batch of a log that is written anew.
_RECORDS_OF_A_BATCH: Final = 1000
_LEADER_EPOCH: Final = 0


class MetadataLog:
    """One call at a time, on any thread.

    Parameters
    ----------
    path:
        The file; made by the first append.
    note:
        Made when the first records are durable; of a log that has some at the start, then.
    """

    def __init__(self, path: Path, disk: Disk, clock: Clock, note: KeptMetadata | None = None) -> None:
        self.path = path
        self._disk = disk
        self._clock = clock
        self._note = note
        self._checkpoint = end_offset_checkpoint.EndOffsetCheckpoint(
            path.with_name(end_offset_checkpoint.FILE_NAME), disk
        )
        self._fd: int | None = None
        self._end = 0
        self._next_offset = 0
        #: Records in the file.
        self.record_count = 0
        #: Why nothing can be appended until the next start; empty if it can.
        self.failure = ""

    # ---- A start --------------------------------------------------------------------------------------

    def load(self, *, was_clean: bool) -> Iterator[MetadataRecord]:
        """All records, in their order. Take them all before anything else is done.

        Parameters
        ----------
        was_clean:
            Whether the last broker came to its end: where there is no mark, no write can have been cut short
            then.

        Raises
        ------
        KafkaStorageError
            The file is damaged, or has what this version does not know; where.
        """
        marked, durable = self._checkpoint.read(), 0
        data = self._disk.read_file(self.path) if self._disk.exists(self.path) else b""
        for batch, end in self._sound_batches(data):
            yield from self._records_of(batch)
            self._end, self._next_offset = end, batch.last_offset + 1
            if self._next_offset <= marked:
                durable = end
        if self._end < len(data) or self._next_offset < marked:
            self._cut(data, marked, was_clean)
        if self._next_offset > marked:
            self._confirm(data[durable : self._end], durable)
        if self._next_offset and self._note is not None:
            self._note.prepare()
            self._note.set()

    def _sound_batches(self, data: bytes) -> Iterator[tuple[RecordBatch, int]]:
        batches = read_batches(data)
        expected: int | None = None
        while True:
            try:
                batch = next(batches, None)
            except CorruptRecordError:
                return
            if batch is None or (expected is not None and batch.base_offset != expected):
                return
            expected = batch.last_offset + 1
            yield batch, batches.position

    def _records_of(self, batch: RecordBatch) -> Iterator[MetadataRecord]:
        for record in batch:
            self.record_count += 1
            try:
                yield decode_record(record.value or b"")
            except MalformedMessageError as error:
                raise KafkaStorageError(
                    f"{self.path} has a record at offset {record.offset} that cannot be read: "
                    f"{error.args[0]}; start the version of the broker that wrote it, or restore the file"
                ) from None

    def _cut(self, data: bytes, marked: int, was_clean: bool) -> None:
        """Truncate a change that a crash has left half written; raise an error for damage."""
        behind = f", behind offset {self._next_offset - 1}" if self._next_offset else ""
        where = f"{self.path} is damaged at byte {self._end}{behind}"
        was_acknowledged = self._next_offset < marked if marked else was_clean
        if was_acknowledged or _has_sound_batch(data, self._end):
            raise KafkaStorageError(
                f"{where}; restore it, or, to go on without the access control entries, users and quotas "
                f"that were changed later, cut it there and remove {self._checkpoint.path.name}"
            )
        logger.warning("%s: the last change was half written when the broker ended, and is taken back", where)
        fd = self._disk.open(self.path)
        try:
            self._disk.truncate(fd, self._end)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)

    def _confirm(self, data: bytes, position: int) -> None:
        """Make durable a change that was not acknowledged, because it is in force from now on."""
        fd = self._disk.open(self.path)
        try:
            # Written again: a sync that has failed lets the system take for clean what is not on the disk.
            self._disk.pwritev(fd, [data], position)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)
        self._checkpoint.prepare(self._next_offset)
        self._checkpoint.set()

    # ---- Changes --------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord]) -> None:
        """Add records as one batch; durable on return.

        Raises
        ------
        OSError
            The disk refuses; nothing has been added, but a failed sync may come true with the next start.
        KafkaStorageError
            It has refused before in a way that leaves open what is on it.
        """
        if self.failure:
            raise KafkaStorageError(self.failure)
        batch = self._batch(records, self._next_offset)
        note = None if self._next_offset else self._note
        if note is not None:
            note.prepare()
        self._checkpoint.prepare(self._next_offset + len(records))
        fd = self._open()
        try:
            self._disk.pwritev(fd, [batch], self._end)
        except OSError:
            self._take_back(fd)
            raise
        try:
            self._disk.fdatasync(fd)
            self._checkpoint.set()
        except OSError as error:
            # The kernel forgets what it could not write: a second sync would succeed and mean nothing.
            self._fail(f"could not be synced: {error}")
            raise
        self._end += len(batch)
        self._next_offset += len(records)
        self.record_count += len(records)
        if note is not None:
            note.set()

    def rewrite(self, records: Sequence[MetadataRecord]) -> None:
        """Let ``records``, which are all that is true, take the place of what is in the file. At once.

        Raises
        ------
        OSError
            The disk refuses; the file is as it was, or no more is appended until the next start.
        """
        offset = self._next_offset
        parts = [records[at : at + _RECORDS_OF_A_BATCH] for at in range(0, len(records), _RECORDS_OF_A_BATCH)]
        written = []
        for part in parts:
            written.append(self._batch(part, offset))
            offset += len(part)
        temporary = self.path.with_name(self.path.name + ".tmp")
        fd = self._disk.open(temporary, create=True)
        try:
            self._disk.truncate(fd, 0)
            self._disk.pwritev(fd, [b"".join(written)], 0)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)
        # A log without a record says nothing of offsets, and must not be taken for one that has lost them.
        self._checkpoint.prepare(offset if written else 0)
        try:
            if not written:
                self._checkpoint.set()
            self._disk.rename(temporary, self.path)
            self._disk.fsync_dir(self.path.parent)
            if written:
                self._checkpoint.set()
        except OSError as error:
            self._fail(f"could not be replaced: {error}")
            raise
        self.close()
        self._end, self._next_offset = sum(map(len, written)), offset
        self.record_count = len(records)

    def close(self) -> None:
        if self._fd is not None:
            self._disk.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            # Its name is synced with that of the mark.
            self._fd = self._disk.open(self.path, create=True)
        return self._fd

    def _take_back(self, fd: int) -> None:
        try:
            self._disk.truncate(fd, self._end)
        except OSError as error:
            self._fail(f"could not be cut: {error}")

    def _fail(self, why: str) -> None:
        self.failure = f"{self.path.name} {why}; nothing in it is changed until the broker has been restarted"
        logger.error("%s", self.failure)

    def _batch(self, records: Sequence[MetadataRecord], base_offset: int) -> bytes:
        values = [encode_record(record) for record in records]
        size = BATCH_OVERHEAD + sum(len(value) + MAX_FIELDS_OVERHEAD for value in values)
        builder = RecordBatchBuilder(size)
        now_ms = self._clock.wall_ms()
        for value in values:
            index = builder.append(now_ms, None, value)
            assert index >= 0, "there is room for all"
        return bytes(builder.close(base_offset=base_offset, partition_leader_epoch=_LEADER_EPOCH))


def _has_sound_batch(data: bytes, position: int) -> bool:
    """Whether a sound batch lies where the log can be read no more, or behind, which no crash can leave."""
    at = data.find(CURRENT_MAGIC, position + MAGIC_AT)
    while at >= 0:
        start = at - MAGIC_AT
        size = LOG_OVERHEAD + int.from_bytes(data[start + LENGTH_AT : start + LOG_OVERHEAD])
        if BATCH_OVERHEAD <= size <= len(data) - start:
            try:
                if any(True for _ in read_batches(data[start : start + size])):
                    return True
            except CorruptRecordError:
                logger.debug("no batch at byte %d", start)
        at = data.find(CURRENT_MAGIC, at + 1)
    return False
