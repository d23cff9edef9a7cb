"""What a partition knows of its idempotent producers, so that a batch that is sent twice is in the log once.

Source: Kafka's ``ProducerStateManager``; KIP-98.
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
#: Kafka's ``producer.id.expiration.ms``.
PRODUCER_ID_EXPIRATION_MS = 24 * 3600 * 1000
_MAX_SEQUENCE = INT32_MAX

_SNAPSHOT_VERSION = 1
# Version, CRC-32C of all that follows it, number of entries.
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_CRC_START = 2 + 4
# Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first
# offset of the open transaction.
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class ProducerStateManager:
    """Used under its log's lock.

    Parameters
    ----------
    folder:
        The partition's, where snapshots are.
    name:
        The partition's, for errors.

    Attributes
    ----------
    check, update:
        As of :class:`~kafkacore.broker.log._producer_batches.ProducerBatches`, and the same compiled methods:
        every produce request calls both.
    """

    def __init__(self, disk: Disk, folder: Path, name: str) -> None:
        self._disk = disk
        self._folder = folder
        self._name = name
        self._batches = ProducerBatches(name)
        self.check = self._batches.check
        self.update = self._batches.update
        self._last_snapshot_offset = -1
        # Of the latest snapshot that no segment begins at.
        self._passing_offset = -1

    @property
    def map_end_offset(self) -> int:
        """Offset up to which batches have been taken in."""
        return self._batches.map_end_offset

    @map_end_offset.setter
    def map_end_offset(self, offset: int) -> None:
        self._batches.map_end_offset = offset

    def __len__(self) -> int:
        return len(self._batches.entries)

    def entries(self) -> list[ProducerStateEntry]:
        """Every producer as it is now, by its id."""
        by_id = sorted(self._batches.entries.items())
        return [replace(entry, batches=entry.batches.copy()) for _, entry in by_id]

    # ---- Batches --------------------------------------------------------------------------------------

    def replay(self, headers: Iterable[BatchHeader]) -> None:
        """Take in batches as they lie in the log, those that are in already left out."""
        batches = self._batches
        for header in headers:
            if header.base_offset >= batches.map_end_offset:
                batches.update(header, header.base_offset, header.max_timestamp)

    def remember(self, headers: Iterable[BatchHeader]) -> bool:
        """Take in the batches before the last one of each producer, which is all that a snapshot keeps: any
        of the last five may be sent again.

        Parameters
        ----------
        headers:
            The end of the log up to :attr:`map_end_offset`, in order; more may follow, which is passed over.

        Returns
        -------
        Whether that is all of the last five of each producer that wrote there.
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
        """Producer id → epoch, and offset of the last record that it has written, if it is known."""
        return {
            entry.producer_id: (
                entry.producer_epoch,
                entry.batches[-1].last_offset if entry.batches else None,
            )
            for entry in self._batches.entries.values()
        }

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that have been silent for a day."""
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
        """Begin with the latest snapshot that can be read; :meth:`replay` the log from
        :attr:`map_end_offset` on.

        Snapshots outside the log, broken ones, and those that no segment begins at are removed. ``names``:
        what lies in the folder, if that is known.
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
                        "%s: snapshot %d is broken (%s); removed", self._name, offset, error.reason
                    )
                    self.remove_snapshot(offset)
        if is_ahead:
            # It knows of batches that are gone. If a loss of power brought it back once the log has grown to
            # its offset again, it would be believed.
            self._disk.fsync_dir(self._folder)

    def _load_snapshot(self, offset: int) -> None:
        entries = read_snapshot(self._disk.read_file(self._path(offset)))
        self._batches.entries = {entry.producer_id: entry for entry in entries}
        self.map_end_offset = self._last_snapshot_offset = self._passing_offset = offset

    def take_snapshot(self) -> None:
        """Write what is known at :attr:`map_end_offset`, durable on return; nothing if it is written."""
        if self.map_end_offset <= self._last_snapshot_offset or self.map_end_offset == 0:
            return
        self._disk.write_file(self._path(self.map_end_offset), snapshot_bytes(self._batches.entries.values()))
        self._last_snapshot_offset = self.map_end_offset

    def begin_passing_snapshot(self) -> tuple[int, bytes] | None:
        """What :meth:`write_passing_snapshot` is to write; ``None`` if it is written."""
        offset = self.map_end_offset
        if offset <= self._last_snapshot_offset or offset == 0:
            return None
        self._last_snapshot_offset = offset
        return offset, snapshot_bytes(self._batches.entries.values())

    def write_passing_snapshot(self, offset: int, data: bytes, segment_bases: Sequence[int]) -> None:
        """Write a snapshot in the midst of a segment, durable on return, and remove the one before it.

        Needs no lock, but only one thread may be in here.
        """
        self._disk.write_file(self._path(offset), data)
        former, self._passing_offset = self._passing_offset, offset
        if former >= 0 and former not in segment_bases and self._disk.exists(self._path(former)):
            self.remove_snapshot(former)

    def remove_snapshots_before(self, offset: int) -> None:
        """Remove what no recovery will read, the segments before ``offset`` being gone. Keeps the latest."""
        for found in self._snapshot_offsets()[:-1]:
            if found < offset:
                self.remove_snapshot(found)

    def remove_snapshot(self, offset: int) -> None:
        self._disk.unlink(self._path(offset))

    def _path(self, offset: int) -> Path:
        return self._folder / f"{offset:020d}{SNAPSHOT_SUFFIX}"

    def _snapshot_offsets(self, names: Iterable[str] | None = None) -> list[int]:
        found = self._disk.listdir(self._folder) if names is None else names
        stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in found if name.endswith(SNAPSHOT_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())


def snapshot_bytes(entries: Iterable[ProducerStateEntry]) -> bytes:
    """A snapshot file's content, of version 1. It keeps the last batch of each producer."""
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
    """The entries of a snapshot file.

    Raises
    ------
    CorruptRecordError
        Another version, a wrong CRC, or fewer entries than it says.
    """
    if len(data) < _SNAPSHOT_HEAD.size:
        raise CorruptRecordError(f"snapshot of {len(data)} bytes")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptRecordError(f"snapshot of version {version}")
    if crc != crc32c(memoryview(data)[_CRC_START:]):
        raise CorruptRecordError("snapshot with a wrong CRC")
    if count * _SNAPSHOT_ENTRY.size != len(data) - _SNAPSHOT_HEAD.size:
        raise CorruptRecordError(f"snapshot of {count} entries in {len(data)} bytes")
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
