"""Types that every layer uses, such as topic-partitions, nodes, offsets and enumerations.

Names and fields are those of kafka-python (``kafka.structs``).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, Final, NamedTuple, Self

#: Maximum values of the protocol's integer types.
INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

MAX_TOPIC_NAME_LENGTH: Final = 249
#: Valid characters of a topic name. The last one would form a range in a regular expression elsewhere.
TOPIC_NAME_CHARACTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#: A set, because compiling a regular expression would take a part of the time in which a process starts.
_VALID: Final = frozenset(TOPIC_NAME_CHARACTERS)


def printable(text: str) -> str:
    """Return ``text`` with line ends, escape sequences and other unprintable characters escaped.

    Without this, text from a peer could forge a log line.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def is_topic_name(name: str) -> bool:
    """Return whether a topic may have this name, by the rule of Kafka's ``Topic`` class.

    Only a valid name may be used as the name of a directory.
    """
    is_short = 1 <= len(name) <= MAX_TOPIC_NAME_LENGTH
    return is_short and _VALID.issuperset(name) and name not in (".", "..")


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def partition_name(partition: TopicPartition) -> str:
    """Return the usual notation of a topic-partition, such as ``orders-0``."""
    return f"{printable(partition.topic)}-{partition.partition}"


class TopicPartitionReplica(NamedTuple):
    """A replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int


class Node(NamedTuple):
    """A broker in the metadata of the cluster.

    A negative ``node_id`` stands for an address in ``bootstrap_servers`` whose broker is not yet known.
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None


class OffsetAndMetadata(NamedTuple):
    """A committed position: the offset of the *next* record to read, and a text of the application."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first offset whose timestamp (ms since the epoch) is at or after a requested time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class MemberState:
    """States of a consumer in its group: the values of :attr:`ConsumerGroupMetadata.state`."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """The identity of a consumer in its group at one moment.

    A producer passes the first four fields to the broker when a transaction commits offsets (KIP-447).
    ``group_id`` is ``None`` for a consumer without a group.
    """

    group_id: str | None = None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    state: str = MemberState.UNJOINED


class EnumHelper(Enum):
    """Base of the enumerations whose members may be given by value or by name."""

    @classmethod
    def build_from(cls, val: object) -> Self:
        """Return the member that is given as a member, a value or a name.

        Case does not matter in a name, and ``-`` equals ``_``.

        Raises
        ------
        ValueError
            The enumeration has no such member.
        """
        try:
            return cls(val)
        except ValueError:
            pass
        try:
            return cls[str(val).strip().upper().replace("-", "_")]
        except KeyError:
            names = ", ".join(each.name for each in cls)
            raise ValueError(f"{cls.__name__} has no member {val!r}; its members are {names}") from None

    @classmethod
    def value_for(cls, val: object) -> Any:
        """Return the value of the member that :meth:`build_from` returns."""
        return cls.build_from(val).value


class Compression(IntEnum):
    """Codec of a batch. A member's value is the number that the codec bits of the batch's attributes contain.

    Everything else about codecs is in ``CODECS`` of ``record/compression.py``.
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


#: Names of the codecs in settings, except ``none``.
CODEC_NAMES: Final = tuple(codec.name.lower() for codec in Compression if codec is not Compression.NONE)


class TimestampType(IntEnum):
    """The origin of a record's timestamp: the producer's clock, the broker's clock, or none (format 0)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(EnumHelper, IntEnum):
    """Whether a consumer reads records of open and aborted transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(EnumHelper, IntEnum):
    """Named offsets. Each value is the special timestamp that requests the offset in ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
