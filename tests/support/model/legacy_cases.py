"""Records, codecs and formats shared by the tests that read and write formats 0 and 1."""

from __future__ import annotations

import pytest
from model.records_v2 import ModelRecord

from kafkacore.record import Compression

RECORDS = [
    ModelRecord(70, 1000, b"k", b"v"),
    ModelRecord(71, 900, None, b"x" * 300),
    ModelRecord(75, 1100, b"", None),
]
OLD_CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
both_formats = pytest.mark.parametrize("magic", [0, 1])
every_codec = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())
