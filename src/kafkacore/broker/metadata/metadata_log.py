"""The file of the metadata log: record batches in the format of Kafka's ``__cluster_metadata``.

Each change is one batch. After a crash, the file has either the whole batch or nothing of it. A checkpoint
file has the end offset of the acknowledged changes, so that a starting broker can distinguish an incomplete
write from damage. The file is replaced atomically when most of its records are outdated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kafkacore.broker.metadata import end_offset_checkpoint
from kafkacore.broker.metadata.records import MetadataRecord, decode_record, encode_record
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.identity import KeptMetadata
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError, MalformedMessageError
from kafkacore.logs import logger_of
from kafkacore.record import RecordBatch, RecordBatchBuilder, read_batches
from kafkacore.record._layout import (
    BATCH_OVERHEAD,
    CURRENT_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_FIELDS_OVERHEAD,
)

logger = logger_of(__name__)

FILE_NAME: Final = "cluster-metadata.log"
#: Maximum number of records in a batch when the log is rewritten.
_RECORDS_OF_A_BATCH: Final = 1000
_LEADER_EPOCH: Final = 0


class MetadataLog:
    """The metadata log. Any thread may use it, but only one at a time.

    Parameters
    ----------
    path:
        Path of the file, which the first append creates.
    disk:
        Access to the file system.
    clock:
        Source of the records' timestamps.
    note:
        Property in ``meta.properties`` which records that this log exists. It is set when the first records
        are durable.
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
        #: Number of records in the file.
        self.record_count = 0
        #: The reason why no records can be appended until the broker restarts; empty if records can be
        #: appended.
        self.failure = ""

    @property
    def end_offset(self) -> int:
        """Offset of the next record. All earlier records are durable, unless :attr:`failure` is set."""
        return self._next_offset

    # ---- Load -----------------------------------------------------------------------------------------

    def load(self, *, was_clean: bool) -> Iterator[MetadataRecord]:
        """Yield all records in their order. Exhaust the iterator before calling any other method.

        Parameters
        ----------
        was_clean:
            Whether the previous broker was shut down cleanly. If so, an incomplete batch means damage even
            without a checkpoint.

        Raises
        ------
        KafkaStorageError
            The file is damaged, or has a record that this version does not support.
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
                    f"cannot decode the record at offset {record.offset} of {self.path}: {error.args[0]}; "
                    f"use the broker version that wrote it, or restore the file from a backup"
                ) from None

    def _cut(self, data: bytes, marked: int, was_clean: bool) -> None:
        """Truncate an incomplete batch that a crash has left; raise an error if the file is damaged."""
        behind = f", after offset {self._next_offset - 1}" if self._next_offset else ""
        where = f"{self.path} is damaged at byte {self._end}{behind}"
        was_acknowledged = self._next_offset < marked if marked else was_clean
        if was_acknowledged or _has_sound_batch(data, self._end):
            raise KafkaStorageError(
                f"{where}; restore it from a backup. To continue without later changes of ACLs, users, "
                f"quotas and configurations, truncate the file at that byte and remove "
                f"{self._checkpoint.path.name}"
            )
        logger.warning("%s: removing the last change, which was not complete when the broker stopped", where)
        fd = self._disk.open(self.path)
        try:
            self._disk.truncate(fd, self._end)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)

    def _confirm(self, data: bytes, position: int) -> None:
        """Make a complete but unacknowledged change durable, because the broker now applies the change."""
        fd = self._disk.open(self.path)
        try:
            # Write the data again: after a failed sync, the kernel may treat pages as clean although they are
            # not on the disk.
            self._disk.pwritev(fd, [data], position)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)
        self._checkpoint.prepare(self._next_offset)
        self._checkpoint.set()

    # ---- Changes --------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord]) -> None:
        """Append records as one batch. They are durable on return.

        Raises
        ------
        OSError
            The write or the sync has failed. After a failed sync, the next start may load the records.
        KafkaStorageError
            An earlier write has failed, so the content of the file is unknown.
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
            # The kernel drops pages that it could not write, so a second sync could succeed without writing
            # these pages.
            self._fail(f"could not be synced: {error}")
            raise
        self._end += len(batch)
        self._next_offset += len(records)
        self.record_count += len(records)
        if note is not None:
            note.set()

    def rewrite(self, records: Sequence[MetadataRecord]) -> None:
        """Replace the content of the file atomically with ``records``, which are all current records.

        Raises
        ------
        OSError
            A disk operation has failed. Either the file is unchanged, or no records can be appended until the
            broker restarts (see :attr:`failure`).
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
        # An empty log has no offsets, so the checkpoint must be 0. Any other value would make the next start
        # report that the log is damaged.
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
            # The sync of the checkpoint's folder also makes the name of this file durable.
            self._fd = self._disk.open(self.path, create=True)
        return self._fd

    def _take_back(self, fd: int) -> None:
        try:
            self._disk.truncate(fd, self._end)
        except OSError as error:
            self._fail(f"could not be truncated: {error}")

    def _fail(self, why: str) -> None:
        self.failure = (
            f"{self.path.name} {why}; ACLs, users, quotas and configurations of groups and client metrics "
            f"cannot be changed until the broker is restarted"
        )
        logger.error("%s", self.failure)

    def _batch(self, records: Sequence[MetadataRecord], base_offset: int) -> bytes:
        values = [encode_record(record) for record in records]
        size = BATCH_OVERHEAD + sum(len(value) + MAX_FIELDS_OVERHEAD for value in values)
        builder = RecordBatchBuilder(size)
        now_ms = self._clock.wall_ms()
        for value in values:
            index = builder.append(now_ms, None, value)
            assert index >= 0, "the batch is too small for all records"
        return bytes(builder.close(base_offset=base_offset, partition_leader_epoch=_LEADER_EPOCH))


def _has_sound_batch(data: bytes, position: int) -> bool:
    """Return whether a valid batch begins at or after ``position``.

    A crash cannot cause an invalid batch before a valid batch. If the file has both, it is damaged.
    """
    at = data.find(CURRENT_MAGIC, position + MAGIC_AT)
    while at >= 0:
        start = at - MAGIC_AT
        size = LOG_OVERHEAD + int.from_bytes(data[start + LENGTH_AT : start + LOG_OVERHEAD])
        if BATCH_OVERHEAD <= size <= len(data) - start:
            try:
                if any(True for _ in read_batches(data[start : start + size])):
                    return True
            except CorruptRecordError:
                logger.debug("found no valid batch at byte %d", start)
        at = data.find(CURRENT_MAGIC, at + 1)
    return False
