"""Batches exchanged with the independent codecs of kafka-python and aiokafka."""

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaReader
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaWriter
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonReader
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonWriter
from model.records_v2 import ModelRecord, read_all

from kafkacore.record import Compression, RecordBatchBuilder, read_batches, validate_batch

RECORDS = [
    ModelRecord(0, 1_700_000_000_000, b"key", b"value", [("header", b"one"), ("header", None)]),
    ModelRecord(1, 1_699_999_999_000, None, b"", []),
    ModelRecord(2, 1_700_000_000_500, b"", None, []),
    *[
        ModelRecord(number, 1_700_000_001_000 + number, b"k%d" % number, b"v" * number)
        for number in range(3, 200)
    ],
]
# kafka-python's snappy needs the package python-snappy. The golden files have snappy of Kafka's client.
CODECS = [Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD]
every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
WRITERS = {"kafka-python": KafkaPythonWriter, "aiokafka": AiokafkaWriter}
READERS = {"kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader}


@every_codec
@pytest.mark.parametrize("peer", WRITERS)
def test_we_read_what_peers_write(peer: str, codec: Compression) -> None:
    make: Callable[..., Any] = WRITERS[peer]
    writer = make(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=9,
        producer_epoch=1,
        base_sequence=3,
        batch_size=1 << 20,
    )
    for record in RECORDS:
        writer.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    data = bytes(writer.build())
    assert read_all(read_batches(data)) == RECORDS
    batch = validate_batch(data)
    assert (batch.compression, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (
        codec,
        9,
        1,
        3,
    )


@every_codec
@pytest.mark.parametrize("peer", READERS)
def test_peers_read_what_we_write(peer: str, codec: Compression) -> None:
    builder = RecordBatchBuilder(1 << 20, codec)
    for record in RECORDS:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    make: Callable[..., Any] = READERS[peer]
    reader = make(bytearray(builder.close(producer_id=9, producer_epoch=1, base_sequence=3)))
    assert reader.validate_crc()
    assert (reader.producer_id, reader.producer_epoch, reader.base_sequence) == (9, 1, 3)
    read = [
        ModelRecord(record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for record in reader
    ]
    assert read == RECORDS


@pytest.mark.parametrize("peer", WRITERS)
def test_uncompressed_bytes_are_the_same(peer: str) -> None:
    make: Callable[..., Any] = WRITERS[peer]
    writer = make(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=9,
        producer_epoch=1,
        base_sequence=3,
        batch_size=1 << 20,
    )
    builder = RecordBatchBuilder(1 << 20)
    for record in RECORDS:
        writer.append(record.offset, record.timestamp, record.key, record.value, record.headers)
        builder.append(record.timestamp, record.key, record.value, record.headers)
    ours = bytes(builder.close(producer_id=9, producer_epoch=1, base_sequence=3))
    theirs = bytes(writer.build())
    # The broker sets the leader epoch. These peers write 0; Kafka's Java client and ours write -1.
    assert ours[:12] + ours[16:] == theirs[:12] + theirs[16:]
