"""State of the idempotent producers of a partition, by which the broker detects duplicate batches (KIP-98).

Follows Kafka's ``ProducerStateManager``.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kafkacore.broker.log._producer_batches import ProducerBatches, batch_metadata
from kafkacore.broker.log.producer_entries import (
    BATCHES_TO_RETAIN,
    NO_SEQUENCE,
    BatchMetadata,
    ProducerStateEntry,
)
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader
from kafkacore.structs import INT32_MAX
from kafkacore.wire import crc32c

logger = logging.getLogger(__name__)

SNAPSHOT_SUFFIX = ".snapshot"
#: Default of Kafka's ``producer.id.expiration.ms``.
PRODUCER_ID_EXPIRATION_MS = 24 * 3600 * 1000
_MAX_SEQUENCE = INT32_MAX

_SNAPSHOT_VERSION = 1
# Version, CRC-32C of the rest of the file, number of entries.
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_CRC_START = 2 + 4
# Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first
# offset of the open transaction.
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class ProducerStateManager:
    """The recent batches of each producer, and their snapshot files. Callers hold the lock of the log.

    Parameters
    ----------
    disk:
        File system to use.
    folder:
        Folder of the partition, which contains the snapshots.
    name:
        Name of the partition, for messages.

    Attributes
    ----------
    check, update:
        Compiled methods of :class:`~kafkacore.broker.log._producer_batches.ProducerBatches`, for speed.
    """

    def __init__(self, disk: Disk, folder: Path, name: str) -> None:
        self._disk = disk
        self._folder = folder
        self._name = name
        self._batches = ProducerBatches(name)
        self.check = self._batches.check
        self.update = self._batches.update
        self._last_snapshot_offset = -1
        # Offset of the latest interim snapshot, which was taken within a segment and not when one was rolled.
        self._interim_offset = -1

    @property
    def map_end_offset(self) -> int:
        """Offset after the last batch that the state includes."""
        return self._batches.map_end_offset

    @map_end_offset.setter
    def map_end_offset(self, offset: int) -> None:
        self._batches.map_end_offset = offset

    def __len__(self) -> int:
        return len(self._batches.entries)

    def entries(self) -> list[ProducerStateEntry]:
        """Return a copy of the state of each producer, sorted by producer id."""
        by_id = sorted(self._batches.entries.items())
        return [replace(entry, batches=entry.batches.copy()) for _, entry in by_id]

    # ---- Batches --------------------------------------------------------------------------------------

    def replay(self, headers: Iterable[BatchHeader]) -> None:
        """Add batches of the log, in order, except those that are already included."""
        batches = self._batches
        for header in headers:
            if header.base_offset >= batches.map_end_offset:
                batches.update(header, header.base_offset, header.max_timestamp)

    def restore_recent_batches(self, headers: Iterable[BatchHeader]) -> bool:
        """Add the last five batches of each producer, any of which may be sent again.

        A snapshot has only the last batch of each producer.

        Parameters
        ----------
        headers:
            Headers of the batches before :attr:`map_end_offset`, in order. Later ones are ignored.

        Returns
        -------
        bool
            Whether all five batches were found, for each producer that occurs in ``headers``.
        """
        found: dict[int, deque[BatchMetadata]] = {}
        for header in headers:
            entry = self._batches.entries.get(header.producer_id)
            if header.base_offset >= self.map_end_offset:
                break
            if entry is None or header.producer_epoch != entry.producer_epoch or header.base_sequence < 0:
                continue
            batches = found.setdefault(header.producer_id, deque(maxlen=BATCHES_TO_RETAIN))
            batches.append(batch_metadata(header, header.base_offset, header.max_timestamp))
        is_complete = True
        for producer_id, batches in found.items():
            entry = self._batches.entries[producer_id]
            if entry.batches and batches[-1].last_offset == entry.batches[-1].last_offset:
                entry.batches = batches
                is_complete &= len(batches) == BATCHES_TO_RETAIN or batches[0].first_sequence == 0
        return is_complete

    def last_offsets(self) -> dict[int, tuple[int, int | None]]:
        """Return the epoch of each producer id, and the offset of its last record if that is known."""
        return {
            entry.producer_id: (
                entry.producer_epoch,
                entry.batches[-1].last_offset if entry.batches else None,
            )
            for entry in self._batches.entries.values()
        }

    def remove_expired(self, now_ms: int) -> None:
        """Remove producers that have not written for :data:`PRODUCER_ID_EXPIRATION_MS`.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        """
        expired = [
            entry.producer_id
            for entry in self._batches.entries.values()
            if now_ms - entry.last_timestamp >= PRODUCER_ID_EXPIRATION_MS
        ]
        for producer_id in expired:
            del self._batches.entries[producer_id]

    # ---- Snapshots ------------------------------------------------------------------------------------

    def load(
        self,
        log_start_offset: int,
        log_end_offset: int,
        segment_bases: Iterable[int],
        names: Iterable[str] | None = None,
    ) -> None:
        """Load the latest valid snapshot. The caller must then :meth:`replay` from :attr:`map_end_offset` on.

        Snapshots that are damaged or outside of the log are removed, and so are interim snapshots other than
        the latest.

        Parameters
        ----------
        log_start_offset, log_end_offset:
            Bounds of the log.
        segment_bases:
            Base offsets of the segments.
        names:
            Names of the files in the folder. Default: list the folder.
        """
        self.map_end_offset = log_start_offset
        offsets = self._snapshot_offsets(names)
        bases = set(segment_bases)
        is_ahead = bool(offsets) and offsets[-1] > log_end_offset
        for offset in reversed(offsets):
            is_outside = not log_start_offset < offset <= log_end_offset
            if is_outside or (self._last_snapshot_offset >= 0 and offset not in bases):
                self.remove_snapshot(offset)
            elif self._last_snapshot_offset < 0:
                try:
                    self._load_snapshot(offset)
                except CorruptRecordError as error:
                    logger.warning(
                        "%s: removed the damaged producer snapshot at offset %d: %s",
                        self._name,
                        offset,
                        error.reason,
                    )
                    self.remove_snapshot(offset)
        if is_ahead:
            # Make the removal durable. If a loss of power brought a snapshot with lost batches back, it would
            # be used once the log has grown to its offset again.
            self._disk.fsync_dir(self._folder)

    def _load_snapshot(self, offset: int) -> None:
        entries = read_snapshot(self._disk.read_file(self._path(offset)))
        self._batches.entries = {entry.producer_id: entry for entry in entries}
        self.map_end_offset = self._last_snapshot_offset = self._interim_offset = offset

    def take_snapshot(self) -> None:
        """Write a snapshot at :attr:`map_end_offset`, unless it exists already. Durable on return."""
        if self.map_end_offset <= self._last_snapshot_offset or self.map_end_offset == 0:
            return
        self._disk.write_file(self._path(self.map_end_offset), snapshot_bytes(self._batches.entries.values()))
        self._last_snapshot_offset = self.map_end_offset

    def begin_interim_snapshot(self) -> tuple[int, bytes] | None:
        """Return the offset and content of an interim snapshot, or ``None`` if it exists already."""
        offset = self.map_end_offset
        if offset <= self._last_snapshot_offset or offset == 0:
            return None
        self._last_snapshot_offset = offset
        return offset, snapshot_bytes(self._batches.entries.values())

    def write_interim_snapshot(self, offset: int, data: bytes, segment_bases: Sequence[int]) -> None:
        """Write an interim snapshot and remove the previous one. Durable on return.

        The lock of the log is not needed, but only one thread at a time may call this.

        Parameters
        ----------
        offset, data:
            Result of :meth:`begin_interim_snapshot`.
        segment_bases:
            Base offsets of the segments. A snapshot at one of these is not an interim one and is kept.
        """
        self._disk.write_file(self._path(offset), data)
        former, self._interim_offset = self._interim_offset, offset
        if former >= 0 and former not in segment_bases and self._disk.exists(self._path(former)):
            self.remove_snapshot(former)

    def remove_snapshots_before(self, offset: int) -> None:
        """Remove the snapshots below ``offset``, which recovery does not read. Keep the latest snapshot."""
        for found in self._snapshot_offsets()[:-1]:
            if found < offset:
                self.remove_snapshot(found)

    def remove_snapshot(self, offset: int) -> None:
        """Remove the snapshot at ``offset``."""
        self._disk.unlink(self._path(offset))

    def _path(self, offset: int) -> Path:
        return self._folder / f"{offset:020d}{SNAPSHOT_SUFFIX}"

    def _snapshot_offsets(self, names: Iterable[str] | None = None) -> list[int]:
        found = self._disk.listdir(self._folder) if names is None else names
        stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in found if name.endswith(SNAPSHOT_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())


def snapshot_bytes(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return the content of a snapshot file, version 1, with the last batch of each producer."""
    packed = []
    for entry in sorted(entries, key=lambda entry: entry.producer_id):
        last = entry.batches[-1] if entry.batches else None
        packed.append(
            _SNAPSHOT_ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else -1,
                last.last_offset - last.first_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = b"".join(packed)
    crc = crc32c(struct.pack(">i", len(packed)) + body)
    return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc, len(packed)) + body


def read_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Parse a snapshot file.

    Raises
    ------
    CorruptRecordError
        The version is unknown, the CRC is wrong, or the number of entries does not match the size.
    """
    if len(data) < _SNAPSHOT_HEAD.size:
        raise CorruptRecordError(f"the snapshot has only {len(data)} bytes")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptRecordError(f"the snapshot has unknown version {version}")
    if crc != crc32c(memoryview(data)[_CRC_START:]):
        raise CorruptRecordError("the snapshot has a wrong CRC")
    if count * _SNAPSHOT_ENTRY.size != len(data) - _SNAPSHOT_HEAD.size:
        raise CorruptRecordError(f"the snapshot claims {count} entries but has {len(data)} bytes")
    entries = []
    for fields in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, txn_first = fields
        entry = ProducerStateEntry(producer_id, epoch, timestamp, coordinator, txn_first)
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & _MAX_SEQUENCE
            entry.batches.append(
                BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            )
        entries.append(entry)
    return entries
