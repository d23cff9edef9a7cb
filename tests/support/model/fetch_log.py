"""A model of a partition's log with arbitrary offsets, gaps, markers and damage.

It is slow and simple, and supports only record batch format 2.
"""

import struct

from kafkacore.wire import crc32c

COMMIT, ABORT = 1, 0


def _varint(value):
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _sized(data):
    return _varint(-1) if data is None else _varint(len(data)) + data


def _record(offset_delta, key, value, headers):
    body = b"\0" + _varint(0) + _varint(offset_delta) + _sized(key) + _sized(value) + _varint(len(headers))
    body += b"".join(_varint(len(name.encode())) + name.encode() + _sized(data) for name, data in headers)
    return _varint(len(body)) + body


def batch(
    records,
    base_offset=None,
    last_offset=None,
    leader_epoch=0,
    producer_id=-1,
    transactional=False,
    control=False,
    timestamp=1000,
):
    """Return one batch of ``records``: ``(offset, key, value)`` or ``(offset, key, value, headers)``."""
    records = [record if len(record) == 4 else (*record, ()) for record in records]
    base = records[0][0] if base_offset is None else base_offset
    last = records[-1][0] if last_offset is None else last_offset
    attributes = (0x10 if transactional else 0) | (0x20 if control else 0)
    body = struct.pack(
        ">hiqqqhii",
        attributes,
        last - base,
        timestamp,
        timestamp,
        producer_id,
        0 if producer_id >= 0 else -1,
        0 if producer_id >= 0 else -1,
        len(records),
    )
    body += b"".join(_record(offset - base, *rest) for offset, *rest in records)
    after_crc = struct.pack(">ibI", leader_epoch, 2, crc32c(body)) + body
    return struct.pack(">qi", base, len(after_crc)) + after_crc


def simple_batch(base_offset, count, **options):
    """Return ``count`` records from ``base_offset`` on, with key ``k<offset>`` and value ``v<offset>``."""
    offsets = range(base_offset, base_offset + count)
    return batch([(offset, b"k%d" % offset, b"v%d" % offset) for offset in offsets], **options)


def marker(offset, producer_id, kind):
    """Return the marker that ends a transaction: :data:`COMMIT` or :data:`ABORT`."""
    key = struct.pack(">hh", 0, kind)
    return batch(
        [(offset, key, struct.pack(">hi", 0, 0))], producer_id=producer_id, transactional=True, control=True
    )


def with_bad_crc(data):
    """Return the same batch with one bit of its last byte flipped."""
    return data[:-1] + bytes([data[-1] ^ 1])


def with_bad_record(data, index_at):
    """Return a batch with a correct CRC and a wrong byte at ``index_at``, counted from the first record."""
    body = bytearray(data)
    body[61 + index_at] ^= 0x7F
    body[17:21] = struct.pack(">I", crc32c(bytes(body[21:])))
    return bytes(body)


class FetchLog:
    """Batches in order, and the data that a broker returns from a fetch."""

    def __init__(self, *batches):
        self.batches = []
        self.start_offset = 0
        self.aborted = []
        for one in batches:
            self.append(one)

    @staticmethod
    def _range(data):
        base = struct.unpack_from(">q", data)[0]
        return base, base + struct.unpack_from(">i", data, 23)[0]

    def append(self, data):
        self.batches.append(data)

    @property
    def end_offset(self):
        return self._range(self.batches[-1])[1] + 1 if self.batches else self.start_offset

    def read(self, offset, max_bytes=1 << 30):
        """Return at least the batch that contains ``offset``, then more up to ``max_bytes``."""
        found = [one for one in self.batches if self._range(one)[1] >= offset]
        taken, size = [], 0
        for one in found:
            if taken and size + len(one) > max_bytes:
                break
            taken.append(one)
            size += len(one)
        return b"".join(taken)
