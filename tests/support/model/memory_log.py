"""A model of the broker's storage as a list in memory, the slow and simple ``kafkacore.broker.log``.

``sync`` advances the high watermark, so that a test can run code between an append and its flush.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from kafkacore.broker.log.producer_entries import ProducerStateEntry
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.storage.disk import DiskSpace
from kafkacore.broker.transaction.transaction_metadata import EPOCH_BUMP_VERSION
from kafkacore.errors import InvalidProducerEpochError, KafkaError
from kafkacore.record import RecordBatchBuilder, assign_offset, read_batches
from kafkacore.structs import TopicPartition


class Topic(NamedTuple):
    name: str
    topic_id: UUID
    partition_count: int
    configs: dict[str, str]


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False


class Fetched(NamedTuple):
    records: memoryview
    next_offset: int
    aborted_transactions: tuple[AbortedTransaction, ...] = ()


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class Place(NamedTuple):
    segment: object
    position: int
    offset: int


class Found(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class MemoryEpochs(list[tuple[int, int]]):
    """Leader epochs and their start offsets."""

    @property
    def latest(self) -> int:
        return self[-1][0]


class MemoryLog:
    """One partition. ``failure`` is the reason why it is offline."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.fetched_bytes = 0
        self.failure: str | None = None
        self.producers: list[ProducerStateEntry] = []
        #: Last epoch of each transactional producer, and the producers with an open transaction.
        self.producer_epochs: dict[int, int] = {}
        self.open_transactions: set[int] = set()
        self.epochs = MemoryEpochs([(0, 0)])
        self.sync_at_once = True
        self.is_closed = False
        #: Error of all appends, for example because the disk is full.
        self.refusal: KafkaError | None = None
        #: First offset of the first open transaction, if there is one.
        self.unstable_offset: int | None = None
        self.aborted: list[AbortedTransaction] = []
        self.read_count = 0
        #: Reads wait for this, so that a test can hold the thread that loads the partition.
        self.is_readable = threading.Event()
        self.is_readable.set()
        #: (producer id, epoch, sequence number) of each call of :meth:`update_lowest_sequence`.
        self.lowest_sequences: list[tuple[int, int, int]] = []
        #: Called while a batch of a client is validated on another thread. ``None`` to validate at once.
        self.on_validate: Callable[[], object] | None = None

    @property
    def last_stable_offset(self) -> int:
        unstable = self.unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def high_watermark_metadata(self) -> Place:
        size = sum(len(batch) for _, last, batch in self.batches if last < self.high_watermark)
        return Place(self, size, self.high_watermark)

    @property
    def leader_epoch(self) -> int:
        return self.epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        self.epochs.append((epoch, self.log_end_offset))

    def epoch_at(self, offset: int) -> int:
        return max((epoch for epoch, start in self.epochs if start <= offset), default=-1)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        if epoch == self.leader_epoch:
            return EpochEnd(epoch, self.log_end_offset)
        later = [start for known, start in self.epochs if known > epoch]
        before = [known for known, _ in self.epochs if known <= epoch]
        if epoch < 0 or not later:
            return EpochEnd(-1, -1)
        return EpochEnd(before[-1] if before else epoch, later[0])

    def sync(self) -> None:
        self.high_watermark = self.log_end_offset

    def flush(self) -> None:
        self.sync()

    def append(self, records: memoryview, *, now_ms: int, budget: object = None) -> Appended | None:
        if budget is not None and self.on_validate is not None:
            return None
        return self._append(records)

    def validate(self, records: memoryview, *, now_ms: int) -> memoryview:
        assert self.on_validate is not None
        self.on_validate()
        return records

    def append_validated(self, records: memoryview, now_ms: int) -> Appended:
        return self._append(records)

    def _append(self, records: memoryview) -> Appended:
        if self.refusal is not None:
            raise self.refusal
        batch = bytearray(records)
        assign_offset(batch, self.log_end_offset, self.leader_epoch)
        (written,) = read_batches(bytes(batch))
        if written.is_transactional and not written.is_control:
            self._check_epoch(written.producer_id, written.producer_epoch)
            self.open_transactions.add(written.producer_id)
        first, last = self.log_end_offset, written.last_offset
        self.batches.append((first, last, bytes(batch)))
        self.log_end_offset = last + 1
        if self.sync_at_once:
            self.sync()
        return Appended(first, last, -1, self.log_start_offset)

    def append_from_coordinator(self, records: memoryview, *, now_ms: int) -> Appended:
        (batch,) = read_batches(bytes(records))
        assert batch.is_transactional
        return self._append(records)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        if (
            transaction_version >= EPOCH_BUMP_VERSION
            and producer_id in self.open_transactions
            and producer_epoch == self.producer_epochs[producer_id]
        ):
            raise InvalidProducerEpochError
        if self.refusal is not None:
            raise self.refusal
        self._check_epoch(producer_id, producer_epoch)
        self.open_transactions.discard(producer_id)
        builder = RecordBatchBuilder(1000)
        builder.append(now_ms, bytes([0, 0, 0, commit]), b"\0\0" + coordinator_epoch.to_bytes(4, "big"))
        marker = builder.close(producer_id, producer_epoch, is_transactional=True, is_control=True)
        return self._append(memoryview(marker))

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return producer_id in self.open_transactions and self.producer_epochs[producer_id] == producer_epoch

    def update_lowest_sequence(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        self.lowest_sequences.append((producer_id, producer_epoch, sequence))

    def _check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        if producer_epoch < self.producer_epochs.get(producer_id, -1):
            raise InvalidProducerEpochError
        self.producer_epochs[producer_id] = producer_epoch

    def lose_unsynced(self) -> None:
        """Remove the batches that were not flushed, as a loss of power does."""
        self.batches = [each for each in self.batches if each[1] < self.high_watermark]
        self.log_end_offset = self.high_watermark
        self.producer_epochs.clear()
        self.open_transactions.clear()
        for _, _, data in self.batches:
            for batch in read_batches(data):
                if batch.is_transactional:
                    self.producer_epochs[batch.producer_id] = batch.producer_epoch
                    change = (
                        self.open_transactions.discard if batch.is_control else self.open_transactions.add
                    )
                    change(batch.producer_id)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        min_one_message: bool = True,
        max_offset: int | None = None,
        may_slice: bool = False,
        with_aborted: bool = False,
    ) -> Fetched:
        assert self.is_readable.wait(timeout=30), "the test does not let the partition be read"
        limit = self.high_watermark if max_offset is None else max_offset
        self.read_count += 1
        taken, next_offset = b"", start_offset
        for _, last, batch in self.batches:
            if last < start_offset or last >= limit:
                continue
            if len(taken) + len(batch) > max_bytes and not (min_one_message and not taken):
                break
            taken += batch
            next_offset = last + 1
        if not with_aborted:
            return Fetched(memoryview(taken), next_offset)
        aborted = tuple(
            one for one in self.aborted if one.first_offset < next_offset and one.last_offset >= start_offset
        )
        return Fetched(memoryview(taken), next_offset, aborted)

    def delete_records(self, before_offset: int) -> int:
        self.log_start_offset = max(self.log_start_offset, before_offset)
        return self.log_start_offset

    @property
    def size_in_bytes(self) -> int:
        return sum(len(batch) for _, _, batch in self.batches)

    def active_producers(self) -> list[ProducerStateEntry]:
        return self.producers

    def _records(self) -> list[tuple[int, int]]:
        return [
            (record.timestamp, record.offset)
            for _, _, batch in self.batches
            for whole in read_batches(batch)
            for record in whole
        ]

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        return next((Found(t, o, self.epoch_at(o)) for t, o in self._records() if t >= timestamp), None)

    def offset_of_max_timestamp(self) -> Found | None:
        records = [
            (timestamp, offset) for timestamp, offset in self._records() if offset < self.high_watermark
        ]
        best = max((t for t, _ in records), default=None)
        return next((Found(t, o, self.epoch_at(o)) for t, o in records if t == best), None)


class MemoryLogManager:
    """All partitions, with the interface of ``LogManager``."""

    def __init__(self) -> None:
        self.default_config: dict[str, str] = {}
        self.topic_states: dict[str, Topic] = {}
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.on_high_watermark: Callable[[TopicPartition, int], None] | None = None
        self.failure: OSError | None = None

    def delete_records(self, topic_partition: TopicPartition, before_offset: int) -> int:
        return self.logs[topic_partition].delete_records(before_offset)

    def topics(self) -> dict[str, Any]:
        return self.topic_states

    def create_topic(self, name: str, partition_count: int, topic_id: UUID, configs: dict[str, str]) -> None:
        if self.failure is not None:
            raise self.failure
        self.topic_states[name] = Topic(name, topic_id, partition_count, dict(configs))
        for partition in range(partition_count):
            self.logs[TopicPartition(name, partition)] = MemoryLog()

    def create_partitions(self, name: str, count: int) -> None:
        topic = self.topic_states[name]
        self.topic_states[name] = topic._replace(partition_count=count)
        for partition in range(topic.partition_count, count):
            self.logs[TopicPartition(name, partition)] = MemoryLog()

    def update_topic_configs(self, name: str, configs: dict[str, str]) -> None:
        if self.failure is not None:
            raise self.failure
        self.topic_states[name] = self.topic_states[name]._replace(configs=dict(configs))

    def disk_space(self) -> DiskSpace:
        if self.failure is not None:
            raise self.failure
        return DiskSpace(1000, 400)

    def update_defaults(self, default_config: dict[str, str]) -> None:
        self.default_config = default_config

    def delete_topic(self, name: str) -> None:
        for partition in range(self.topic_states.pop(name).partition_count):
            self.logs.pop(TopicPartition(name, partition)).is_closed = True

    def log(self, topic_partition: TopicPartition) -> MemoryLog | None:
        return self.logs.get(topic_partition)

    def close(self) -> None:
        pass
