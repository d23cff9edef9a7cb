"""The metadata of an acknowledged record."""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.structs import TopicPartition


class RecordMetadata(NamedTuple):
    """The position of an acknowledged record. Fields are those of kafka-python.

    ``offset`` is -1 with ``acks=0``, because the broker does not report the offset. ``timestamp`` is in
    milliseconds since the epoch. It is the broker's timestamp if the topic uses log append time, otherwise
    the record's timestamp. ``checksum`` is always ``None``, because only batches have a checksum. Sizes are
    in bytes; the size of ``None`` is -1.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    checksum: None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int
