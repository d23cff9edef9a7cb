"""The nouns that every layer shares: topic-partitions, nodes, offsets with what belongs to them.

Names and fields are kafka-python's (``kafka.structs``), so that a program can swap the import.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

#: The largest values of the protocol's types.
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

MAX_TOPIC_NAME_LENGTH: Final = 249
#: The characters of a topic name, for a regular expression.
TOPIC_NAME_CHARACTERS: Final = "[a-zA-Z0-9._-]"
_TOPIC_NAME = re.compile(f"{TOPIC_NAME_CHARACTERS}{{1,{MAX_TOPIC_NAME_LENGTH}}}")


def printable(text: str) -> str:
    """``text`` with its line ends, escape sequences and other characters that print nothing written out.

    What a peer has put into a name or a message becomes no line of a log of its own.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def is_topic_name(name: str) -> bool:
    """Return whether a topic may have this name, by the rule of Kafka's ``Topic`` class.

    Only such a name may become the name of a folder.
    """
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def partition_name(partition: TopicPartition) -> str:
    """As people write it: ``orders-0``."""
    return f"{printable(partition.topic)}-{partition.partition}"


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


class Compression(IntEnum):
    """Codec of a batch; the value is the attribute bits on the wire.

    ``CODECS`` of ``record/compression.py`` has everything else about a codec.
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


#: Names of the codecs in settings, without ``none``.
CODEC_NAMES: Final = tuple(codec.name.lower() for codec in Compression if codec is not Compression.NONE)


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


class ResourceType(IntEnum):
    """What an access control entry is about; ``ANY`` is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLResourcePatternType(IntEnum):
    """How the name of an entry's resource is meant (KIP-290); ``ANY`` and ``MATCH`` are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ACLOperation(IntEnum):
    """What an entry allows or denies to be done; ``ANY`` is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ACLPermissionType(IntEnum):
    """Whether an entry allows or denies; ``ANY`` is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(IntEnum):
    """The mechanisms that passwords of users are kept for."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """As :mod:`hashlib` calls it."""
        return {1: "sha256", 2: "sha512"}[self]
