"""Read the batches of a log segment file, a chunk at a time, and continue after damage.

The file is read with positional reads instead of a memory map, which is equally fast and also works for
remote storage. If a running broker truncates the file, a read returns the end of the file. With a memory map,
the process would get SIGBUS.

After damage, reading continues at the next batch whose header and CRC are valid and whose offset is not below
the offsets already read. The value of a record may itself contain a batch, which must not be taken for a
batch of the log. A batch from a producer has offset 0, which is too low once a batch of the log has been
read.

A file that ends within a batch or in zeros was copied while a broker wrote to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.errors import CorruptRecordError
from kafkacore.record._batch import RecordBatch, read_batches
from kafkacore.record._header import BatchHeader
from kafkacore.record._layout import BATCH_OVERHEAD, CURRENT_MAGIC, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT
from kafkacore.record._walk import walk_headers
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Function ``read(position, size)`` that returns ``size`` bytes of the file, or fewer at the end of the file.
ReadAt = Callable[[int, int], "Buffer"]

#: Size of a chunk in bytes. A chunk fits in the processor's second-level cache, so its records are still in
#: the cache when they are copied into columns.
CHUNK_BYTES = 1 << 20
#: Bytes read first after damage; each further read doubles the size. So the work for a file with many small
#: damaged ranges is proportional to the file's size. Otherwise a whole chunk would be read for each range.
_FIRST_BYTES = 1 << 10
#: Maximum size of a batch in bytes. Kafka's own limit (max.message.bytes) is 1 MiB unless it is raised.
MAX_BATCH_BYTES = 1 << 28

#: If the average batch size in bytes is at least this, headers are read one by one, without the records
#: between them.
_LARGE_BATCH_BYTES = 1 << 13
_HEADERS_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of bytes in a file that is not a valid batch.

    Parameters
    ----------
    position, next_position:
        Start of the range, and the position at which reading can continue; in bytes.
    reason:
        Description of the damage.
    offset:
        Offset of the batch according to its header, which may be damaged too; ``None`` if unknown.
    is_cut:
        Whether the file ends within a batch, because it was copied while it was written or was not copied
        completely.
    """

    position: int
    next_position: int
    reason: str
    offset: int | None = None
    is_cut: bool = False


class SegmentFile:
    """The batches of the range ``[start, end)`` of a file, in order.

    Parameters
    ----------
    read:
        Function that reads the file; see :data:`ReadAt`.
    size:
        Size of the whole file in bytes.
    start, end:
        Positions at which a batch starts. The default is the whole file.
    check_crcs:
        Whether to verify the checksum of each batch.
    chunk_bytes:
        Number of bytes that are read at once.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.
    """

    def __init__(
        self,
        read: ReadAt,
        size: int,
        start: int = 0,
        end: int | None = None,
        *,
        check_crcs: bool = True,
        chunk_bytes: int = CHUNK_BYTES,
        max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE,
    ) -> None:
        self._read = read
        self._size = size
        self._end = size if end is None else min(end, size)
        self._check_crcs = check_crcs
        self._chunk_bytes = max(chunk_bytes, BATCH_OVERHEAD)
        self._first_bytes = min(_FIRST_BYTES, self._chunk_bytes)
        self._read_bytes = self._chunk_bytes
        self._max_decompressed_size = max_decompressed_size
        #: Minimum offset of the next batch. A caller that takes batches from :attr:`batches` must update this
        #: offset.
        self.next_offset = 0
        self._chunk_at = start
        #: Batches of the current chunk. A caller may take batches from this iterator; :meth:`next_batch`
        #: returns the remaining batches.
        self.batches = read_batches(b"")

    def resume_at(self, position: int) -> None:
        """Continue after damage at ``position``, where a batch starts."""
        self._chunk_at = position
        self._read_bytes = self._first_bytes
        self.batches = read_batches(b"")

    @property
    def position(self) -> int:
        """Position of the next batch, in bytes from the start of the file."""
        return self._chunk_at + self.batches.position

    def position_of(self, batch: BatchHeader) -> int:
        """Return the position in the file of the batch that :meth:`next_batch` has just returned."""
        return self._chunk_at + batch.position

    def next_batch(self) -> RecordBatch | Damage | None:
        """Return the next batch, or ``None`` at the end of the range.

        After a :class:`Damage` the caller must call :meth:`resume_at` to continue.
        """
        while True:
            try:
                batch = next(self.batches, None)
            except CorruptRecordError as error:
                return self._damage(error.reason, error.offset)
            if batch is not None:
                self.next_offset = batch.next_offset
                return batch
            if self.position >= self._end:
                return None
            damage = self._load()
            if damage is not None:
                return None if self._is_unwritten() else damage

    # ---- Chunks ------------------------------------------------------------------------------------------
    def _load(self) -> Damage | None:
        """Read the chunk that starts with the next batch. The chunk contains this batch completely."""
        position = self.position
        left = self._end - position
        chunk = memoryview(self._read(position, min(self._read_bytes, left)))
        self._read_bytes = min(2 * self._read_bytes, self._chunk_bytes)
        size = _size_of_batch(chunk)
        if len(chunk) < LOG_OVERHEAD or size > left:
            return self._truncated(position, size, left)
        if size > MAX_BATCH_BYTES:
            return self._damage_up_to_next_batch(
                position, f"batch size {size} exceeds the limit of {MAX_BATCH_BYTES} bytes", None
            )
        if size > len(chunk):
            chunk = memoryview(self._read(position, size))
            if len(chunk) < size:
                return self._truncated(position, size, len(chunk))
        self._chunk_at = position
        self.batches = read_batches(chunk, self._check_crcs, self._max_decompressed_size)
        return None

    # ---- Damage ------------------------------------------------------------------------------------------
    def _damage(self, reason: str, offset: int | None) -> Damage | None:
        position = self.position
        if self._is_unwritten():
            return None
        size = _size_of_batch(memoryview(self._read(position, LOG_OVERHEAD)))
        if size > LOG_OVERHEAD and self._may_resume_at(position + size):
            return Damage(position, position + size, reason, offset)
        return self._damage_up_to_next_batch(position, reason, offset)

    def _truncated(self, position: int, size: int, left: int) -> Damage:
        if left < LOG_OVERHEAD:
            reason = f"the last {left} bytes are too short for a batch"
        else:
            reason = f"batch of {size} bytes is truncated after {left} bytes"
        found = self._damage_up_to_next_batch(position, reason, None)
        is_cut = found.next_position == self._end == self._size
        return Damage(position, found.next_position, reason, None, is_cut)

    def _damage_up_to_next_batch(self, position: int, reason: str, offset: int | None) -> Damage:
        """Return the damage from ``position`` to the next batch with a valid header, offset and CRC."""
        at, overlap, size = position + 1, BATCH_OVERHEAD - 1, self._first_bytes
        while self._end - at >= BATCH_OVERHEAD:
            chunk = bytes(self._read(at, min(size + overlap, self._end - at)))
            size = min(2 * size, self._chunk_bytes)
            found = chunk.find(CURRENT_MAGIC, MAGIC_AT)
            while found >= 0:
                begin = found - MAGIC_AT
                if len(chunk) - begin < BATCH_OVERHEAD:
                    break
                if self._is_batch(chunk[begin : begin + BATCH_OVERHEAD], at + begin):
                    return Damage(position, at + begin, reason, offset)
                found = chunk.find(CURRENT_MAGIC, found + 1)
            if len(chunk) <= overlap:
                break
            at += len(chunk) - overlap
        return Damage(position, self._end, reason, offset)

    def _is_batch(self, head: bytes, position: int) -> bool:
        headers, _, _ = walk_headers(head, position)
        if not headers or headers[0].base_offset < self.next_offset:
            return False
        size = headers[0].size_in_bytes
        if size > min(self._end - position, MAX_BATCH_BYTES):
            return False
        try:
            return next(read_batches(self._read(position, size)), None) is not None
        except CorruptRecordError:
            return False

    def _may_resume_at(self, position: int) -> bool:
        if position >= self._end:
            return position == self._end
        headers, _, _ = walk_headers(self._read(position, BATCH_OVERHEAD), position)
        return bool(headers) or self._is_zeros(position)

    def _is_unwritten(self) -> bool:
        """Return whether the rest of the file contains only zeros. A broker may have preallocated it."""
        return self._end == self._size and self._is_zeros(self.position)

    def _is_zeros(self, position: int) -> bool:
        size = self._first_bytes
        while position < self._end:
            chunk = bytes(self._read(position, min(size, self._end - position)))
            if not chunk or chunk.count(0) != len(chunk):
                return not chunk
            position += len(chunk)
            size = min(2 * size, self._chunk_bytes)
        return True


def _size_of_batch(chunk: memoryview) -> int:
    """Return the size of a batch according to its header, which may be wrong.

    The result is at least the size of the offset and length fields.
    """
    length = int.from_bytes(chunk[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)
    return LOG_OVERHEAD + max(length, 0)


def read_headers(read: ReadAt, size: int, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Yield the headers of the complete batches from ``start`` on, and a :class:`Damage` per damaged range.

    Parameters
    ----------
    read, size:
        As for :class:`SegmentFile`. The records of large batches are not read.
    start:
        Position at which a batch starts.
    """
    position, chunk_bytes = start, _HEADERS_CHUNK_BYTES
    while position < size:
        headers, behind, wrong = walk_headers(read(position, min(chunk_bytes, size - position)), position)
        for header in headers:
            if header.position + header.size_in_bytes <= size:
                yield header
        if wrong is not None or behind > size or not headers:
            file = SegmentFile(read, size)
            file.resume_at(headers[-1].position if behind > size else behind)
            found = file.next_batch()
            if not isinstance(found, Damage):
                # Only the end of the file is left: a partial header, or preallocated space.
                return
            yield found
            behind = found.next_position
            chunk_bytes = _FIRST_BYTES
        elif (behind - position) // len(headers) >= _LARGE_BATCH_BYTES:
            chunk_bytes = BATCH_OVERHEAD
        else:
            chunk_bytes = min(max(2 * chunk_bytes, _FIRST_BYTES), _HEADERS_CHUNK_BYTES)
        position = behind
