"""Record batches: read them as records or columns, build them, and check them.

Cython modules cimport ``_builder`` and ``_batch``.
"""

from kafkacore.record._batch import Record, RecordBatch, read_batches
from kafkacore.record._builder import RecordBatchBuilder
from kafkacore.record._columns import ColumnBuilder, RecordColumns
from kafkacore.record._encoding import encode
from kafkacore.record._header import BatchHeader, assign_offset, read_batch_headers
from kafkacore.record._legacy_builder import LegacyBatchBuilder, down_convert
from kafkacore.record._source import RecordSource
from kafkacore.record._validation import first_at_time, scan_records, validate_batch, with_codec
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.record.decoding import decode
from kafkacore.structs import Compression

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_SIZE",
    "BatchHeader",
    "ColumnBuilder",
    "Compression",
    "LegacyBatchBuilder",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordColumns",
    "RecordSource",
    "assign_offset",
    "decode",
    "down_convert",
    "encode",
    "first_at_time",
    "read_batch_headers",
    "read_batches",
    "scan_records",
    "validate_batch",
    "with_codec",
]
