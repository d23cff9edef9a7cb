"""Interfaces between a coordinator's log and the state that its records describe.

The state decides which records to write. The log appends them and then applies them to the state, which does
not change in any other way. Both run on the network thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

from kafkacore.record import Compression, RecordBatch
from kafkacore.structs import TopicPartition

#: Callback of an append. It is called once, with 0 or the error code to return to the client.
OnSafe = Callable[[int], None]

LoadedT = TypeVar("LoadedT")
LoadedT_co = TypeVar("LoadedT_co", covariant=True)


#: Producer id of a record that is not part of a transaction.
NO_PRODUCER_ID: Final = -1


class CoordinatorRecord(NamedTuple):
    """One record of a coordinator's topic; ``value`` is ``None`` in a tombstone."""

    key: bytes
    value: bytes | None


class Producer(NamedTuple):
    """The transactional producer on whose behalf a coordinator writes records."""

    producer_id: int
    producer_epoch: int


class EndTransactionMarker(NamedTuple):
    """The end of a transaction in one partition."""

    producer_id: int
    producer_epoch: int
    #: Whether the transaction is committed; otherwise it is aborted.
    commit: bool
    #: Leader epoch of the transaction coordinator's partition.
    coordinator_epoch: int
    #: Version of the protocol: 1, or 2 if the epoch is bumped at the end of each transaction (KIP-890).
    transaction_version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CoordinatorTopic:
    """The internal topic of a coordinator, and how the coordinator writes to it.

    Parameters
    ----------
    name:
        Name of the topic.
    partition_count:
        Number of partitions with which the topic is created.
    configs:
        Configuration with which the topic is created.
    load_buffer_size:
        Maximum bytes of each read while a partition is loaded.
    compression:
        Codec of the batches.
    append_timeout_ms:
        How long a request waits for its records to be safe, in milliseconds. After that time it fails.
    """

    name: str
    partition_count: int
    configs: dict[str, str]
    load_buffer_size: int
    compression: Compression
    append_timeout_ms: int


class Replay(Protocol[LoadedT_co]):
    """Reads the batches of a partition in the order of the log. The loader's thread uses it."""

    def take(self, batch: RecordBatch) -> None:
        """Add the records of a batch.

        Raises
        ------
        CorruptRecordError
            The batch cannot be decoded.
        """

    def finish(self) -> LoadedT_co:
        """Decode the records that are still in effect, and return the state that they describe.

        Raises
        ------
        CorruptRecordError
            A record is not a valid record of the coordinator. The error contains the offset of the record.
        """

    @property
    def record_count(self) -> int:
        """Number of records read."""


class CoordinatorState(Protocol[LoadedT]):
    """The state of a coordinator in memory: the interface that its log uses.

    Partitions are given by their numbers.
    """

    def new_replay(self, topic_partition: TopicPartition) -> Replay[LoadedT]:
        """Return an object that reads a partition. It shares no state with other threads."""

    def apply_loaded(self, partition: int, loaded: LoadedT) -> Iterator[None]:
        """Return an iterator whose steps take over the state that was read from a partition.

        Each step takes a few milliseconds. When the iterator is exhausted, the partition is loaded.
        """

    def apply(self, partition: int, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply a record that was appended to the log at ``offset``.

        A record of a producer other than :data:`NO_PRODUCER_ID` is part of that producer's open transaction.
        """

    def end_transaction(self, partition: int, producer_id: int, commit: bool, offset: int) -> None:
        """Commit or abort the records of a producer's transaction, whose marker is at ``offset``."""

    def unload(self, partition: int) -> None:
        """Forget the state of a partition, without writing records. Waiting requests fail."""
