"""State of the idempotent and transactional producers of a partition (KIP-98), and its snapshots.

The code follows Kafka's ``ProducerStateManager``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kafkacore.broker.log._producer_batches import ProducerBatches, batch_metadata
from kafkacore.broker.log.end_transaction_marker import EndTransactionMarker, read_marker
from kafkacore.broker.log.producer_entries import (
    BATCHES_TO_RETAIN,
    NO_SEQUENCE,
    BatchMetadata,
    ProducerStateEntry,
)
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError
from kafkacore.logs import logger_of
from kafkacore.record import BatchHeader, RecordBatch
from kafkacore.structs import INT32_MAX, INT64_MAX
from kafkacore.wire import crc32c

logger = logger_of(__name__)

SNAPSHOT_SUFFIX = ".snapshot"
MAX_OFFSET = INT64_MAX
_MAX_SEQUENCE = INT32_MAX

_SNAPSHOT_VERSION = 1
# Header of a snapshot: version, CRC-32C of the rest of the file, number of entries.
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_CRC_START = 2 + 4
# Entry of a snapshot: producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator
# epoch, first offset of the open transaction.
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class ProducerStateManager:
    """The state of each producer, and its snapshot files. Callers hold the lock of the log.

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
    batches:
        Batches and transactions of the producers.
    check, update:
        Methods of ``batches``. They are attributes here to save a lookup per batch.
    """

    def __init__(self, disk: Disk, folder: Path, name: str) -> None:
        self._disk = disk
        self._folder = folder
        self._name = name
        self.batches = ProducerBatches(name)
        self.check = self.batches.check
        self.update = self.batches.update
        self._last_snapshot_offset = -1
        # Offset of the latest interim snapshot. Interim snapshots are taken within a segment. All other
        # snapshots are taken when a segment is rolled.
        self._interim_offset = -1

    @property
    def map_end_offset(self) -> int:
        """Offset after the last batch that the state includes."""
        return self.batches.map_end_offset

    @map_end_offset.setter
    def map_end_offset(self, offset: int) -> None:
        self.batches.map_end_offset = offset

    def __len__(self) -> int:
        return len(self.batches.entries)

    def entries(self) -> list[ProducerStateEntry]:
        """Return a copy of the state of each producer, sorted by producer id."""
        by_id = sorted(self.batches.entries.items())
        return [replace(entry, batches=entry.batches.copy()) for _, entry in by_id]

    # ---- Batches --------------------------------------------------------------------------------------

    def replay(
        self, headers: Iterable[BatchHeader], read_batch: Callable[[BatchHeader], RecordBatch]
    ) -> list[AbortedTransaction]:
        """Add batches of the log in order. Batches that the state already includes are skipped.

        Parameters
        ----------
        headers:
            Headers of the batches.
        read_batch:
            Function that returns the whole batch of a header. It is called for the markers of transactions.

        Returns
        -------
        list[AbortedTransaction]
            The transactions that the batches have aborted.
        """
        batches = self.batches
        aborted = []
        for header in headers:
            if header.base_offset < batches.map_end_offset:
                continue
            if not header.is_control:
                batches.update(header, header.base_offset, header.max_timestamp)
                continue
            marker = self._marker(header, read_batch) if header.producer_id >= 0 else None
            if marker is not None:
                one = batches.aborted_by(header.producer_id, header.base_offset)
                if one is not None and not marker.is_commit:
                    aborted.append(one)
                batches.end_transaction(
                    header.producer_id,
                    header.producer_epoch,
                    marker.coordinator_epoch,
                    header.base_offset,
                    header.max_timestamp,
                )
            batches.map_end_offset = header.last_offset + 1
        return aborted

    def _marker(
        self, header: BatchHeader, read_batch: Callable[[BatchHeader], RecordBatch]
    ) -> EndTransactionMarker | None:
        try:
            return read_marker(read_batch(header))
        except CorruptRecordError as error:
            # Consumers cannot read the damaged marker either, so its transaction stays open.
            logger.error(
                "%s: the marker at offset %d is damaged, so the outcome of a transaction of producer %d is "
                "unknown: %s",
                self._name,
                header.base_offset,
                header.producer_id,
                error.reason,
            )
            return None

    def restore_recent_batches(self, headers: Iterable[BatchHeader]) -> bool:
        """Restore the last five batches of each producer, because a producer may retry any of them.

        A snapshot has only the last batch of each producer.

        Parameters
        ----------
        headers:
            Headers of the batches before :attr:`map_end_offset`, in order. Headers of later batches are
            ignored.

        Returns
        -------
        bool
            Whether all five batches were found, for each producer that occurs in ``headers``.
        """
        found: dict[int, deque[BatchMetadata]] = {}
        for header in headers:
            entry = self.batches.entries.get(header.producer_id)
            if header.base_offset >= self.map_end_offset:
                break
            if entry is None or header.producer_epoch != entry.producer_epoch or header.base_sequence < 0:
                # Markers and the batches of the group coordinator have no sequence number.
                continue
            batches = found.setdefault(header.producer_id, deque(maxlen=BATCHES_TO_RETAIN))
            batches.append(batch_metadata(header, header.base_offset, header.max_timestamp))
        is_complete = True
        for producer_id, batches in found.items():
            entry = self.batches.entries[producer_id]
            if entry.batches and batches[-1].last_offset == entry.batches[-1].last_offset:
                entry.batches = batches
                is_complete &= len(batches) == BATCHES_TO_RETAIN or batches[0].first_sequence == 0
        return is_complete

    def last_offsets(self) -> dict[int, tuple[int, int | None]]:
        """Return the epoch of each producer, and the offset of the producer's last record if it is known."""
        return {
            entry.producer_id: (
                entry.producer_epoch,
                entry.batches[-1].last_offset if entry.batches else None,
            )
            for entry in self.batches.entries.values()
        }

    def remove_expired(self, now_ms: int, after_ms: int) -> None:
        """Remove producers that have not written for ``after_ms`` milliseconds.

        A producer with an open transaction stays.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        after_ms:
            ``producer.id.expiration.ms``.
        """
        expired = [
            entry.producer_id
            for entry in self.batches.entries.values()
            if entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= after_ms
        ]
        for producer_id in expired:
            del self.batches.entries[producer_id]
        self.batches.forget_lowest_sequences()

    # ---- Snapshots ------------------------------------------------------------------------------------

    def load(
        self,
        log_start_offset: int,
        log_end_offset: int,
        segment_bases: Iterable[int],
        names: Iterable[str] | None = None,
        max_offset: int = MAX_OFFSET,
    ) -> None:
        """Load the latest valid snapshot. The caller must then :meth:`replay` from :attr:`map_end_offset` on.

        Snapshots that are damaged or outside of the log are removed. All interim snapshots except the loaded
        snapshot are removed as well.

        Parameters
        ----------
        log_start_offset, log_end_offset:
            Bounds of the log.
        segment_bases:
            Base offsets of the segments.
        names:
            Names of the files in the folder. Default: list the folder.
        max_offset:
            Offset above which snapshots are not used.
        """
        self.map_end_offset = log_start_offset
        offsets = self._snapshot_offsets(names)
        bases = set(segment_bases)
        is_ahead = bool(offsets) and offsets[-1] > log_end_offset
        for offset in reversed(offsets):
            is_outside = not log_start_offset < offset <= log_end_offset
            is_unused = self._last_snapshot_offset >= 0 or offset > max_offset
            if is_outside or (is_unused and offset not in bases):
                self.remove_snapshot(offset)
            elif not is_unused:
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
            # Make the removal durable. Otherwise a loss of power could bring back a snapshot that includes
            # lost batches. Recovery would use this snapshot after the log has grown to the snapshot's offset
            # again.
            self._disk.fsync_dir(self._folder)

    def _load_snapshot(self, offset: int) -> None:
        self.batches.restore(read_snapshot(self._disk.read_file(self._path(offset))), offset)
        self._last_snapshot_offset = self._interim_offset = offset

    def take_snapshot(self) -> None:
        """Write a durable snapshot at :attr:`map_end_offset`, unless it exists already."""
        if self.map_end_offset <= self._last_snapshot_offset or self.map_end_offset == 0:
            return
        self._disk.write_file(self._path(self.map_end_offset), snapshot_bytes(self.batches.entries.values()))
        self._last_snapshot_offset = self.map_end_offset

    def begin_interim_snapshot(self) -> tuple[int, bytes] | None:
        """Return the offset and content of a new interim snapshot, or ``None`` if none is needed."""
        offset = self.map_end_offset
        if offset <= self._last_snapshot_offset or offset == 0:
            return None
        self._last_snapshot_offset = offset
        return offset, snapshot_bytes(self.batches.entries.values())

    def write_interim_snapshot(self, offset: int, data: bytes, segment_bases: Sequence[int]) -> None:
        """Write a durable interim snapshot, and remove the previous interim snapshot.

        The lock of the log is not needed, but only one thread at a time may call this.

        Parameters
        ----------
        offset, data:
            Result of :meth:`begin_interim_snapshot`.
        segment_bases:
            Base offsets of the segments. A snapshot at a base offset is not an interim snapshot and is kept.
        """
        self._disk.write_file(self._path(offset), data)
        former, self._interim_offset = self._interim_offset, offset
        if former >= 0 and former not in segment_bases and self._disk.exists(self._path(former)):
            self.remove_snapshot(former)

    def remove_snapshots_before(self, offset: int) -> None:
        """Remove the snapshots below ``offset``, except the latest snapshot. Recovery does not need them."""
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
            first_sequence = (last_sequence - delta) & _MAX_SEQUENCE if last_sequence >= 0 else NO_SEQUENCE
            entry.batches.append(
                BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            )
        entries.append(entry)
    return entries
