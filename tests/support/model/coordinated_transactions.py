"""A transaction coordinator on logs in memory, with one call per request of a producer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from eventually import eventually
from model.memory_log import MemoryLog, MemoryLogManager

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.topics.cluster_state import BrokerNode, ClusterState
from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.broker.transaction import records
from kafkacore.broker.transaction.services import TransactionServices
from kafkacore.broker.transaction.transaction_coordinator import NO_PRODUCER, ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata
from kafkacore.errors import KafkaError
from kafkacore.record import RecordBatchBuilder, read_batches
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

NODE, OTHER_NODE = 1, 2
#: The transactional id of all calls without one.
ID = "x"
TIMEOUT_MS = 60_000
T0, T1, T2 = [TopicPartition("t", partition) for partition in range(3)]


@cache
def decoded(data: bytes) -> list[tuple[str, TransactionMetadata | None, int]]:
    """Return the transactional id, the state and the offset of each record of a batch."""
    found = []
    for batch in read_batches(data):
        for record in batch:
            name = records.decode_key(record.key or b"")
            assert name is not None
            metadata = None if record.value is None else records.decode_value(name, record.value)
            found.append((name, metadata, record.offset))
    return found


class Outcome(NamedTuple):
    """The response to a request: an error code, and the producer's id and epoch or -1."""

    code: int
    producer_id: int = -1
    epoch: int = -1

    @property
    def producer(self) -> ProducerIdAndEpoch:
        assert self.code == 0, f"refused with error {self.code}"
        return ProducerIdAndEpoch(self.producer_id, self.epoch)


class Answer:
    """The response to a request that may wait. ``outcome`` is ``None`` until the response is complete."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None

    def give(self, code: int, producer: ProducerIdAndEpoch = NO_PRODUCER) -> None:
        assert self.outcome is None, f"answered twice: {self.outcome}, {code} {producer}"
        self.outcome = Outcome(code, *producer)

    @property
    def got(self) -> Outcome:
        assert self.outcome is not None, "not answered"
        return self.outcome


class ProducerIds:
    """Allocates producer ids from 1000. ``failure`` is the error of the next calls."""

    def __init__(self) -> None:
        self._numbers = count(1000)
        self.failure: OSError | None = None

    def next_producer_id(self) -> int:
        if self.failure is not None:
            raise self.failure
        return next(self._numbers)


class Features:
    """The levels of the features, as the coordinator reads them."""

    transaction_version = 2


class CoordinatedTransactions:
    """The coordinator of two nodes, and a topic ``t`` of three partitions. Only :meth:`settle` flushes.

    Attributes
    ----------
    markers:
        Markers that were appended, in order.
    refusals:
        Errors of markers, by partition.
    held:
        Partitions that :meth:`settle` does not flush.
    """

    def __init__(
        self,
        tmp_path: Path,
        logs: MemoryLogManager | None = None,
        clock: VirtualClock | None = None,
        producer_ids: ProducerIds | None = None,
        **config: Any,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.config = BrokerConfig.from_properties(
            {"data_dir": tmp_path, "port": 0, "transaction_state_log_num_partitions": 4, **config}
        )
        self.logs = logs or MemoryLogManager()
        self.producer_ids = producer_ids or ProducerIds()
        self.topics = TopicCatalog(self.logs, self.config, self.clock)  # type: ignore[arg-type]
        nodes = [BrokerNode(node, "127.0.0.1", 9091 + node) for node in (NODE, OTHER_NODE)]
        self.cluster = ClusterState(self.topics, nodes)
        self.timer = Timer(self.clock.monotonic_ms())
        self.replica_manager = ReplicaManager(self.cluster, self.clock, self.timer, lambda: None)
        self.features = Features()
        self.services = TransactionServices(
            self.config,
            self.clock,
            self.timer,
            self.topics,
            self.cluster,
            self.replica_manager,
            self.producer_ids,  # type: ignore[arg-type]
            self.append_marker,  # type: ignore[arg-type]
            self.features,  # type: ignore[arg-type]
        )
        self.coordinator = self.services.coordinator
        self.cluster.on_moved += [self.replica_manager.partition_changed, self.services.log.leader_changed]
        self.topics.on_removed += [
            self.replica_manager.partition_changed,
            self.cluster.forget,
            self.services.partition_removed,
        ]
        self.markers: list[tuple[TopicPartition, EndTransactionMarker]] = []
        self.refusals: dict[TopicPartition, KafkaError] = {}
        self.held: set[TopicPartition] = set()
        #: Called before each marker is appended.
        self.on_marker: Callable[[TopicPartition, EndTransactionMarker], None] = lambda *_: None
        if logs is None:
            self.topics.create("t", 3, {})
            self.services.log.ensure_topic()
            for log in self.logs.logs.values():
                log.sync_at_once = False
            for partition in range(4):
                self.cluster.move_leader(TopicPartition(TRANSACTIONS_TOPIC, partition), NODE)
            self.settle()
        self.services.start()

    def append_marker(
        self, topic_partition: TopicPartition, marker: EndTransactionMarker
    ) -> tuple[MemoryLog, int]:
        if topic_partition in self.refusals:
            raise self.refusals[topic_partition]
        self.on_marker(topic_partition, marker)
        log: Any = self.cluster.led_log(topic_partition, self.cluster.leader(topic_partition))
        info = log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            now_ms=self.clock.wall_ms(),
        )
        self.replica_manager.partition_changed(topic_partition)
        self.markers.append((topic_partition, marker))
        return log, info.last_offset + 1

    # ---- Time, and the end of the process -----------------------------------------------------------------

    def turns(self) -> None:
        """Run the network thread until it has nothing to do."""
        while self.replica_manager.has_events:
            self.replica_manager.complete_delayed()
            self.timer.advance(self.clock.monotonic_ms())

    def flush(self, *places: TopicPartition) -> None:
        """Flush some partitions, and let the coordinator notice."""
        for place in places:
            log = self.logs.logs[place]
            if log.failure is None:
                log.sync()
            self.replica_manager.on_high_watermark(place, log.high_watermark)
        self.turns()

    def settle(self) -> None:
        """Flush until nothing is left to flush, except the partitions in ``held``."""
        self.turns()
        while places := [
            place
            for place, log in self.logs.logs.items()
            if log.high_watermark < log.log_end_offset and log.failure is None and place not in self.held
        ]:
            self.flush(*places)

    def pass_ms(self, duration_ms: float) -> None:
        """Advance the clock, run each due task at its time, and flush after each."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while True:
            wait_ms = self.timer.time_to_next_ms(self.clock.monotonic_ms())
            left_ms = end_ms - self.clock.monotonic_ms()
            if wait_ms is None or wait_ms > left_ms:
                break
            self.clock.advance(wait_ms)
            self.timer.advance(self.clock.monotonic_ms())
            self.settle()
        self.clock.advance(left_ms)
        self.timer.advance(self.clock.monotonic_ms())
        self.settle()

    def restarted(self, *, loses_power: bool = False, loads: bool = True) -> CoordinatedTransactions:
        """Return a coordinator that has loaded the logs of this one.

        Parameters
        ----------
        loses_power:
            Whether the batches that were not flushed are lost.
        loads:
            Whether to wait until the logs are loaded. Otherwise the loader waits for :meth:`wait_for_load`.
        """
        if not loads:
            for log in self.logs.logs.values():
                log.is_readable.clear()
        if loses_power:
            for log in self.logs.logs.values():
                log.lose_unsynced()
        settings = {"transaction_state_log_num_partitions": 4}
        other = CoordinatedTransactions(
            self.config.data_dir, self.logs, self.clock, self.producer_ids, **settings
        )
        for place in self.logs.logs:
            other.cluster.move_leader(place, NODE)
        if loads:
            other.wait_for_load()
        return other

    def wait_for_load(self) -> None:
        """Wait until every partition is loaded or has failed. The loader is a separate thread."""

        def is_loaded() -> bool:
            self.replica_manager.complete_delayed()
            return not self.services.log.is_loading

        for log in self.logs.logs.values():
            log.is_readable.set()
        eventually(is_loaded)
        self.turns()

    # ---- Requests -----------------------------------------------------------------------------------------

    def send_init(
        self,
        transactional_id: str = ID,
        expected: ProducerIdAndEpoch | None = None,
        *,
        timeout_ms: int = TIMEOUT_MS,
        node_id: int | None = NODE,
    ) -> Answer:
        answer = Answer()
        self.coordinator.init_producer_id(transactional_id, timeout_ms, expected, node_id, answer.give)
        return answer

    def init(self, *args: Any, **kwargs: Any) -> Outcome:
        answer = self.send_init(*args, **kwargs)
        self.settle()
        return answer.got

    def send_add(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        transactional_id: str = ID,
        version: int = 2,
        node_id: int | None = NODE,
    ) -> Answer:
        answer = Answer()
        self.coordinator.add_partitions(
            transactional_id, *producer, partitions, node_id, version, answer.give
        )
        return answer

    def add(self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, **kwargs: Any) -> int:
        """Add partitions, and write a record to each that was added. Return the error code."""
        answer = self.send_add(producer, *partitions, **kwargs)
        self.settle()
        if not answer.got.code:
            self.write(producer, *partitions)
            self.settle()
        return answer.got.code

    def write(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, value: bytes = b"value"
    ) -> None:
        """Append a transactional batch to partitions, as Produce does."""
        for place in partitions:
            builder = RecordBatchBuilder(1000)
            builder.append(self.clock.wall_ms(), None, value)
            batch = builder.close(*producer, 0, is_transactional=True)
            self.logs.logs[place].append_from_coordinator(batch, now_ms=self.clock.wall_ms())

    def verify(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        transactional_id: str = ID,
        node_id: int | None = NODE,
    ) -> dict[TopicPartition, int]:
        return self.coordinator.verify_partitions(transactional_id, *producer, partitions, node_id)

    def send_end(
        self,
        producer: ProducerIdAndEpoch,
        *,
        commits: bool = True,
        transactional_id: str = ID,
        version: int = 2,
        node_id: int | None = NODE,
    ) -> Answer:
        answer = Answer()
        self.coordinator.end(
            transactional_id,
            producer,
            commits=commits,
            client_version=version,
            node_id=node_id,
            on_done=answer.give,
        )
        return answer

    def end(self, producer: ProducerIdAndEpoch, **kwargs: Any) -> Outcome:
        answer = self.send_end(producer, **kwargs)
        self.settle()
        return answer.got

    # ---- State --------------------------------------------------------------------------------------------

    def state(self, transactional_id: str = ID) -> TransactionMetadata:
        found = self.services.state.get(transactional_id)
        assert found is not None, "the transactional id is not known"
        return found

    def put(self, metadata: TransactionMetadata) -> None:
        """Write a state as it is."""
        self.coordinator._transactions.write(metadata, lambda _: None)
        self.settle()

    def place_of(self, transactional_id: str = ID) -> TopicPartition:
        """Return the partition of ``__transaction_state`` that stores a transactional id."""
        return TopicPartition(TRANSACTIONS_TOPIC, self.services.log.partition_for(transactional_id))

    def log_of(self, transactional_id: str = ID) -> MemoryLog:
        return self.logs.logs[self.place_of(transactional_id)]

    def written(self, transactional_id: str = ID) -> list[TransactionMetadata | None]:
        """Return the states that were written for a transactional id; ``None`` for a tombstone."""
        return [
            metadata
            for each, metadata, _ in self.records_of(self.place_of(transactional_id))
            if each == transactional_id
        ]

    def records_of(self, place: TopicPartition) -> list[tuple[str, TransactionMetadata | None, int]]:
        """Return the transactional id, the state and the offset of each record in a log."""
        return [record for _, _, data in self.logs.logs[place].batches for record in decoded(data)]

    def ends_in(self, place: TopicPartition) -> list[str]:
        """Return what a partition contains: ``data``, ``commit`` and ``abort``, in order."""
        found = []
        for _, _, data in self.logs.logs[place].batches:
            for batch in read_batches(data):
                (record,) = batch
                is_marker = batch.is_control
                found.append(("commit" if (record.key or b"")[3] else "abort") if is_marker else "data")
        return found
