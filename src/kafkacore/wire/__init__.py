"""Kafka's primitive types: a bounds-checked reader, a growing writer, ids, varints and CRC-32C.

Cython modules use the functions of ``primitives.pxd``, which work on raw memory.
"""

from kafkacore.wire._crc32c import crc32c
from kafkacore.wire._cursor import Cursor
from kafkacore.wire._file_slice import FileSlice
from kafkacore.wire._uuid import Uuid, as_uuid
from kafkacore.wire._writer import Writer

__all__ = ["Cursor", "FileSlice", "Uuid", "Writer", "as_uuid", "crc32c"]
