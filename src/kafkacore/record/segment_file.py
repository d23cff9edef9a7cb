"""Read the batches of a log segment file, a chunk at a time, and continue after damage.

The file is read at positions and not mapped: it is no slower, works for remote storage, and a file that a
live broker truncates is an end of file instead of SIGBUS. After damage, reading continues at the next batch
whose header and CRC are right and whose offset is not below what has been read. A value may contain a batch
too, but one that its producer made begins at offset 0. A file that ends within a batch, or in zeros, was
copied while a broker wrote it.
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

#: ``read(position, size)`` gives bytes of the file, fewer than ``size`` only at its end.
ReadAt = Callable[[int, int], "Buffer"]

#: Bytes read at once: they stay in the processor's second cache until they have been copied into columns.
CHUNK_BYTES = 1 << 20
#: Bytes read first where damage may end soon; each further read doubles them. The work for a file full of
#: small damage is then proportional to the file, and not to a whole chunk for each.
_FIRST_BYTES = 1 << 10
#: Of one batch, read into memory whole. Kafka's own limit (max.message.bytes) is a megabyte unless raised.
MAX_BATCH_BYTES = 1 << 28

#: Where batches are as large as this, their headers are read one by one and not with what lies between.
_LARGE_BATCH_BYTES = 1 << 13
_HEADERS_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no batch.

    Parameters
    ----------
    position, next_position:
        Where they begin in the file, and where reading can go on; in bytes.
    reason:
        What is wrong, in numbers.
    offset:
        Of the batch, where its header says so; it may be damaged too.
    is_cut:
        Whether the file ends within a batch: copied while it was written, or not copied whole.
    """

    position: int
    next_position: int
    reason: str
    offset: int | None = None
    is_cut: bool = False


class SegmentFile:
    """The batches of ``[start, end)`` of a file, in order.

    Parameters
    ----------
    read:
        See :data:`ReadAt`.
    size:
        Bytes of the whole file.
    start, end:
        Positions at which a batch begins; by default all of the file.
    check_crcs:
        Compare each batch with its checksum.
    chunk_bytes:
        How much is read at once.
    max_decompressed_size:
        The most that one compressed batch may grow to, in bytes.
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
        #: The offset that the next batch has at least; whoever takes batches off :attr:`batches` keeps it.
        self.next_offset = 0
        self._chunk_at = start
        #: Batches of the chunk that is held; a caller that takes some leaves the rest to :meth:`next_batch`.
        self.batches = read_batches(b"")

    def go_on(self, position: int) -> None:
        """Read from ``position`` on, where a batch begins, after damage."""
        self._chunk_at = position
        self._read_bytes = self._first_bytes
        self.batches = read_batches(b"")

    @property
    def position(self) -> int:
        """Where the next batch begins, in bytes from the start of the file."""
        return self._chunk_at + self.batches.position

    def position_of(self, batch: BatchHeader) -> int:
        """Where the batch begins that :meth:`next_batch` has just given."""
        return self._chunk_at + batch.position

    def next_batch(self) -> RecordBatch | Damage | None:
        """The next batch, ``None`` behind the last. Behind a :class:`Damage` the caller has to
        :meth:`go_on`.
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
        """Read the chunk that begins with the next batch, all of which is in it."""
        position = self.position
        left = self._end - position
        chunk = memoryview(self._read(position, min(self._read_bytes, left)))
        self._read_bytes = min(2 * self._read_bytes, self._chunk_bytes)
        size = _size_of_batch(chunk)
        if len(chunk) < LOG_OVERHEAD or size > left:
            return self._cut(position, size, left)
        if size > MAX_BATCH_BYTES:
            return self._behind(position, f"batch of {size} bytes exceeds {MAX_BATCH_BYTES}", None)
        if size > len(chunk):
            chunk = memoryview(self._read(position, size))
            if len(chunk) < size:
                return self._cut(position, size, len(chunk))
        self._chunk_at = position
        self.batches = read_batches(chunk, self._check_crcs, self._max_decompressed_size)
        return None

    # ---- Damage ------------------------------------------------------------------------------------------
    def _damage(self, reason: str, offset: int | None) -> Damage | None:
        position = self.position
        if self._is_unwritten():
            return None
        size = _size_of_batch(memoryview(self._read(position, LOG_OVERHEAD)))
        if size > LOG_OVERHEAD and self._may_go_on_at(position + size):
            return Damage(position, position + size, reason, offset)
        return self._behind(position, reason, offset)

    def _cut(self, position: int, size: int, left: int) -> Damage:
        what = f"{left} bytes are no batch" if left < LOG_OVERHEAD else f"batch of {size} bytes is cut"
        reason = what if left < LOG_OVERHEAD else f"{what} after {left}"
        found = self._behind(position, reason, None)
        is_cut = found.next_position == self._end == self._size
        return Damage(position, found.next_position, reason, None, is_cut)

    def _behind(self, position: int, reason: str, offset: int | None) -> Damage:
        """Damage up to the next bytes that are a batch: header, offset and CRC are right."""
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

    def _may_go_on_at(self, position: int) -> bool:
        if position >= self._end:
            return position == self._end
        headers, _, _ = walk_headers(self._read(position, BATCH_OVERHEAD), position)
        return bool(headers) or self._is_zeros(position)

    def _is_unwritten(self) -> bool:
        """Whether the file ends here: a broker may take its space beforehand, which is zeros."""
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
    """As its header says, which need not be true; at least that of offset and length."""
    length = int.from_bytes(chunk[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)
    return LOG_OVERHEAD + max(length, 0)


def read_headers(read: ReadAt, size: int, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Headers of the whole batches from ``start`` to the end of a file, and on behind what is damaged.

    Parameters
    ----------
    read, size:
        As of :class:`SegmentFile`. Of large batches nothing but the headers is read.
    """
    position, chunk_bytes = start, _HEADERS_CHUNK_BYTES
    while position < size:
        headers, behind, wrong = walk_headers(read(position, min(chunk_bytes, size - position)), position)
        for header in headers:
            if header.position + header.size_in_bytes <= size:
                yield header
        if wrong is not None or behind > size or not headers:
            file = SegmentFile(read, size)
            file.go_on(headers[-1].position if behind > size else behind)
            found = file.next_batch()
            if not isinstance(found, Damage):
                # Only the file's end is left: a header in part, or space that nothing was written to.
                return
            yield found
            behind = found.next_position
            chunk_bytes = _FIRST_BYTES
        elif (behind - position) // len(headers) >= _LARGE_BATCH_BYTES:
            chunk_bytes = BATCH_OVERHEAD
        else:
            chunk_bytes = min(max(2 * chunk_bytes, _FIRST_BYTES), _HEADERS_CHUNK_BYTES)
        position = behind
