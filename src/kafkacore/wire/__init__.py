"""Bytes: a bounds-checked reader, a growing writer, Kafka's varints, CRC-32C.

Buffers in, primitive types out, and the reverse. Does not know: messages, records, sockets.
Cython callers find the readers on raw memory in ``primitives.pxd``.
"""

from kafkacore.wire._crc32c import crc32c
from kafkacore.wire._cursor import Cursor
from kafkacore.wire._file_slice import FileSlice
from kafkacore.wire._writer import Writer

__all__ = ["Cursor", "FileSlice", "Writer", "crc32c"]
