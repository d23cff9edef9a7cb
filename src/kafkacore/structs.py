"""The nouns that every layer shares: topic-partitions, nodes, offsets with what belongs to them.

Names and fields are kafka-python's (``kafka.structs``), so that a program can swap the import.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def partition_name(partition: TopicPartition) -> str:
    """As people write it: ``orders-0``."""
    return f"{partition.topic}-{partition.partition}"


class TopicPartitionReplica(NamedTuple):
    topic: str
    partition: int
    broker_id: int


class Node(NamedTuple):
    """A broker as the cluster describes it. ``node_id`` below 0 is a bootstrap address not yet identified."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class OffsetAndMetadata(NamedTuple):
    """A committed position: the offset of the *next* record to read, and the committer's note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first offset whose timestamp (ms since the epoch) is at or after the one asked for."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class MemberState:
    """Where a consumer stands in its group; values of :attr:`ConsumerGroupMetadata.state`."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """Who a consumer is in its group, as of one moment; a group without name is none.

    The first four say to a broker on whose behalf a transaction commits offsets (KIP-447).
    """

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED


class TimestampType(IntEnum):
    """Whose clock a record's timestamp is: the producer's, the broker's, or nobody's (magic 0)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(IntEnum):
    """Offsets that have a name; the value is the timestamp that asks for them in ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
