"""Transactions in a log: helpers that write them, and a model that recomputes the state from the batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from model.log_oracle import NOW_MS

from kafkacore.broker.log import LogAppendInfo, UnifiedLog
from kafkacore.broker.log.end_transaction_marker import read_marker
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.record import RecordBatch, RecordBatchBuilder, read_batches
from kafkacore.record.control import ControlRecordType, control_type


def batch(
    values: Iterable[bytes],
    producer: tuple[int, int, int],
    *,
    is_transactional: bool = True,
    timestamp: int = NOW_MS,
    key: bytes | None = None,
) -> memoryview:
    """Return a batch of a producer, given as its id, epoch and base sequence."""
    builder = RecordBatchBuilder(1 << 20)
    for value in values:
        builder.append(timestamp, key or b"key of " + value, value)
    producer_id, epoch, sequence = producer
    return builder.close(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


@dataclass
class TransactionalProducer:
    """A producer that writes to one log. It must be continued with :meth:`moved_to` after a restart."""

    log: UnifiedLog
    producer_id: int
    epoch: int = 0
    version: int = 1
    coordinator_epoch: int = 0
    sequence: int = 0

    def send(self, *values: bytes, is_transactional: bool = True, key: bytes | None = None) -> LogAppendInfo:
        producer = (self.producer_id, self.epoch, self.sequence)
        records = batch(values, producer, is_transactional=is_transactional, key=key)
        info = self.log.append(records, now_ms=NOW_MS)
        self.sequence += len(values)
        return info

    def end(self, *, commit: bool) -> LogAppendInfo:
        """Append the marker as a coordinator does with the transaction version of this producer."""
        if self.version >= 2:
            self.epoch += 1
            self.sequence = 0
        return self.log.append_marker(
            self.producer_id,
            self.epoch,
            commit=commit,
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=self.version,
            now_ms=NOW_MS,
        )


@dataclass
class ProducerModel:
    epoch: int = -1
    coordinator_epoch: int = -1
    first_offset: int = -1
    #: First and last sequence number, and first offset, of the last five batches.
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class LogModel:
    """The state of producers and transactions, computed from the batches of a log in the simplest way."""

    def __init__(self, batches: Iterable[RecordBatch]) -> None:
        self.producers: dict[int, ProducerModel] = {}
        self.aborted: list[AbortedTransaction] = []
        #: Offset, producer id and value of the records of committed transactions and without transaction.
        self.committed: list[tuple[int, bytes | None]] = []
        pending: dict[int, list[tuple[int, bytes | None]]] = {}
        for one in batches:
            if one.producer_id < 0:
                self.committed += [(record.offset, record.value) for record in one]
                continue
            producer = self.producers.setdefault(one.producer_id, ProducerModel())
            if one.producer_epoch != producer.epoch:
                producer.epoch, producer.batches = one.producer_epoch, []
            if not one.is_control:
                records = [(record.offset, record.value) for record in one]
                producer.batches.append((one.base_sequence, one.last_sequence, one.base_offset))
                producer.batches = producer.batches[-5:] if one.base_sequence >= 0 else producer.batches[-1:]
                if not one.is_transactional:
                    self.committed += records
                    continue
                pending.setdefault(one.producer_id, []).extend(records)
                if producer.first_offset < 0:
                    producer.first_offset = one.base_offset
                continue
            marker = read_marker(one)
            if marker is None:
                continue
            producer.coordinator_epoch = marker.coordinator_epoch
            records = pending.pop(one.producer_id, [])
            first, producer.first_offset = producer.first_offset, -1
            if first >= 0 and marker.is_commit:
                self.committed += records
            elif first >= 0:
                stable = min([one.last_offset + 1, *self.open_offsets()])
                self.aborted.append(AbortedTransaction(first, one.last_offset, one.producer_id, stable))
        self.last_stable_offset = min(self.open_offsets(), default=None)
        self.committed.sort()

    def open_offsets(self) -> list[int]:
        return [one.first_offset for one in self.producers.values() if one.first_offset >= 0]

    def committed_before(self, offset: int) -> list[tuple[int, bytes | None]]:
        return [record for record in self.committed if record[0] < offset]


def all_batches(log: UnifiedLog) -> list[RecordBatch]:
    """Return all batches in the files of a log, even above the high watermark."""
    return [one for segment in log.segments() for one in read_batches(segment.records(0, segment.size))]


def check_state(log: UnifiedLog, *, offset_step: int = 1) -> LogModel:
    """Compare the state of a log, whose records are all below the high watermark, with the model."""
    model = LogModel(all_batches(log))
    end = log.log_end_offset
    assert log.high_watermark == end
    stable = end if model.last_stable_offset is None else model.last_stable_offset
    assert log.last_stable_offset == max(stable, log.log_start_offset)
    assert log.aborted_transactions(log.log_start_offset, end) == model.aborted
    for start in range(log.log_start_offset, end, offset_step):
        for stop in (start + 1, min(start + 7, end), end):
            found = log.aborted_transactions(start, stop)
            assert [
                one for one in model.aborted if one.first_offset < stop and one.last_offset >= start
            ] == found, (start, stop)
    for entry in log.active_producers():
        producer = model.producers[entry.producer_id]
        assert (entry.producer_epoch, entry.coordinator_epoch, entry.current_txn_first_offset) == (
            producer.epoch,
            producer.coordinator_epoch,
            producer.first_offset,
        )
        batches = [(one.first_sequence, one.last_sequence, one.first_offset) for one in entry.batches]
        assert batches == producer.batches
    assert {entry.producer_id for entry in log.active_producers()} == set(model.producers)
    return model


def read_committed(
    log: UnifiedLog, start_offset: int | None = None, max_bytes: int = 1 << 20
) -> list[tuple[int, bytes | None]]:
    """Read the records that a read-committed consumer returns, as Kafka's consumer finds them."""
    offset = log.log_start_offset if start_offset is None else start_offset
    records: list[tuple[int, bytes | None]] = []
    while offset < (limit := log.last_stable_offset):
        found = log.read(offset, max_bytes, max_offset=limit, with_aborted=True)
        if found.next_offset == offset:
            break
        pending = sorted(found.aborted_transactions)
        aborted: set[int] = set()
        for one in read_batches(found.records):
            while pending and pending[0].first_offset <= one.last_offset:
                aborted.add(pending.pop(0).producer_id)
            if one.is_control:
                first = next(iter(one), None)
                if first is not None and control_type(first.key) == ControlRecordType.ABORT:
                    aborted.discard(one.producer_id)
            elif not (one.is_transactional and one.producer_id in aborted):
                records += [(record.offset, record.value) for record in one if record.offset >= offset]
        offset = found.next_offset
    return records
