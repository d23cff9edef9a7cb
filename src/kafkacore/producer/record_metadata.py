"""Where an acknowledged record lies. Knows nothing; a noun of the producer's."""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.structs import TopicPartition


class RecordMetadata(NamedTuple):
    """What the broker said of one record; fields are kafka-python's.

    ``offset`` is -1 where the broker was not asked (``acks=0``). ``timestamp`` is in milliseconds since the
    epoch: the broker's where the topic uses log append time, else the record's own. ``checksum`` is always
    ``None`` (a batch has one, a record has not). Sizes are in bytes, -1 for none.
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
