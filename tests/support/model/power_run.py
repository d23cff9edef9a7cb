"""A broker on a disk that loses power at random times, and clients that check acknowledged operations.

Everything is derived from a seed. Requests pass through the broker's own handlers, so that guarantees are
checked against its responses. Between power failures, the process may also be killed or stopped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from eventually import eventually
from model.broker_in_hand import BrokerInHand, frame_of
from model.loading import until_power_is_lost
from model.log_oracle import NOW_MS, batch, read_all
from model.power_rights import CONFIG as GUARDED
from model.power_rights import Rights

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.coordinator.loader import PartitionLoader
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

NAMES = ("a", "b")
#: The topic whose offsets a group commits; it is never deleted.
KEPT = "kept"
GROUP = "group"
OFFSETS = "__consumer_offsets"
CONFIG = {
    **GUARDED,
    "log_segment_bytes": 900,
    "log_index_interval_bytes": 150,
    "port": 0,
    "log_retention_ms": -1,
    "offsets_topic_num_partitions": 2,
    # Small, so that committed offsets are compacted frequently.
    "offsets_topic_segment_bytes": 700,
}
#: Segment size of every fourth seed: a lost sector then has other sectors before and after it.
LARGE_SEGMENT = 20_000
LOADING = 14


@dataclass
class Partition:
    """One partition as its producer knows it. A record's offset is its index."""

    appended: list[bytes] = field(default_factory=list)
    #: Batches by the offset of their first record, for retries.
    batches: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    #: Offset after the last acknowledged record.
    safe: int = 0
    asked_start: int = 0
    start: int = 0
    producer_id: int = -1
    sequence: int = 0


@dataclass
class Topic:
    partitions: list[Partition]
    topic_id: Any = None


@dataclass
class PowerRun:
    """One run with a seed; call :meth:`run`.

    Parameters
    ----------
    flush:
        The broker's ``flush`` setting. With "os", a power failure may lose the last acknowledged records.
    break_broker:
        Called with each started broker, to plant a defect in it.
    """

    seed: int
    folder: Path
    flush: str = "ack"
    break_broker: Callable[[BrokerInHand], None] = lambda broker: None
    findings: list[str] = field(default_factory=list)
    topics: dict[str, Topic] = field(default_factory=dict)
    #: Topics with a request that had no response at the power failure.
    open: set[str] = field(default_factory=set)
    gone: set[Any] = field(default_factory=set)
    producer_ids: set[int] = field(default_factory=set)
    acknowledged: int = 0
    lost: int = 0
    states: int = 0
    cluster_id: str = ""
    #: Committed offsets are 1, 2, 3, …: the last one sent, and the last one confirmed or read back.
    commit_sent: int = 0
    commit_safe: int = 0
    cleanings: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.disk = SimulatedDisk()
        self.broker: BrokerInHand | None = None
        #: Pending responses and what they belong to.
        self._waiting: list[tuple[list[Any], TopicPartition, Partition, int]] = []
        self._commits: list[tuple[list[Any], int]] = []
        self.rights = Rights(random.Random(self.seed))
        self.deciding = VirtualClock(start_ms=NOW_MS, seed=self.seed)

    def run(self, losses: int) -> list[str]:
        """Cut the power ``losses`` times and return the violations found after each time."""
        with patch.object(PartitionLoader, "_run", until_power_is_lost(PartitionLoader._run)):
            return self._run(losses)

    def _run(self, losses: int) -> list[str]:
        for _ in range(losses):
            self._liveuntil_power_is_lost()
            self.disk = self.disk.lose_power(self.deciding)
            self.states += 1
            self._start()
            self._judge(keeps_all=False)
            self.abandon()
            self.disk = self.disk.kill_process()
            if self.findings:
                break
        return [f"seed {self.seed}, state {self.states}: {finding}" for finding in self.findings]

    # ---- Lives --------------------------------------------------------------------------------------------

    def _start(self) -> BrokerInHand:
        properties = {"data_dir": self.folder, "flush": self.flush, **CONFIG}
        if self.seed % 4 == 3:
            properties["log_segment_bytes"] = LARGE_SEGMENT
        config = BrokerConfig.from_properties(properties)
        clock = VirtualClock(start_ms=NOW_MS, seed=self.chance.getrandbits(30))
        self.broker = BrokerInHand(config, background=False, clock=clock, disk=self.disk)
        try:
            self.broker.start()
        except PowerLossError:
            raise
        except Exception as error:
            where = f"seed {self.seed}, state {self.states}"
            raise AssertionError(f"{where}: the start failed: {error!r}") from error
        self.break_broker(self.broker)
        return self.broker

    def abandon(self) -> None:
        if self.broker is not None:
            self.broker.abandon()
            self.broker = None

    def _liveuntil_power_is_lost(self) -> None:
        left = self.chance.randrange(10, 400)

        def fault(call: int, verb: str, path: Path) -> BaseException | None:
            nonlocal left
            if call < 0:
                return None
            left -= 1
            return PowerLossError(verb) if left < 0 else None

        self.disk.fault = fault
        try:
            broker = self._start()
            self._adopt(broker)
            while True:
                broker = self._step(broker)
        except PowerLossError:
            self.abandon()

    def _step(self, broker: BrokerInHand) -> BrokerInHand:
        how = self.chance.random()
        if how < 0.15:
            self._commit(broker)
        elif how < 0.55:
            self._produce(broker)
        elif how < 0.80:
            broker.flush()
        elif how < 0.84:
            for log in broker.logs.logs().values():
                log.snapshot_producers(1)
            broker.logs.checkpoint()
        elif how < 0.88:
            self._delete_records(broker)
        elif how < 0.90:
            broker.logs.run_retention(NOW_MS)
        elif how < 0.94:
            self._change_topics(broker)
        elif how < 0.95:
            for _ in range(10):
                self.findings += self.rights.change(broker)
        elif how < 0.96:
            self.cleanings += broker.logs.clean_filthiest() is not None
        else:
            return self._restart(broker)
        self._take_answers()
        return broker

    def _restart(self, broker: BrokerInHand) -> BrokerInHand:
        if self.chance.random() < 0.5:
            broker.stop()
            self.abandon()
        else:
            fault = self.disk.fault
            self.abandon()
            self.disk = self.disk.kill_process()
            self.disk.fault = fault
        broker = self._start()
        self._judge(keeps_all=True)
        self._adopt(broker)
        return broker

    def _adopt(self, broker: BrokerInHand) -> None:
        """Let the clients read the current state, and continue from it with new producer ids."""
        assert self.cluster_id in ("", broker.cluster_id), "the cluster id has changed"
        self.cluster_id = broker.cluster_id
        found = broker.logs.topics()
        for name in sorted(self.open | set(self.topics)):
            if name not in found:
                self.topics.pop(name, None)
                continue
            topic = self.topics.setdefault(name, Topic([]))
            if topic.topic_id != found[name].topic_id:
                topic.partitions.clear()
            topic.topic_id = found[name].topic_id
            while len(topic.partitions) < found[name].partition_count:
                topic.partitions.append(Partition())
        self.open.clear()
        self._waiting.clear()
        self._commits.clear()
        if KEPT not in found:
            broker.services.topics.create(KEPT, 1, {})
        if OFFSETS not in found:
            broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
        for tp, partition in self._all():
            log = broker.logs.log(tp)
            assert log is not None
            del partition.appended[log.log_end_offset :]
            partition.safe = min(partition.safe, log.log_end_offset)
            partition.start = partition.asked_start = log.log_start_offset
            partition.batches.clear()
            partition.producer_id = -1

    def _all(self) -> list[tuple[TopicPartition, Partition]]:
        return [
            (TopicPartition(name, index), partition)
            for name, topic in self.topics.items()
            for index, partition in enumerate(topic.partitions)
        ]

    # ---- Operations of clients ----------------------------------------------------------------------------

    def _produce(self, broker: BrokerInHand) -> None:
        places = [place for place in self._all() if place[0].topic not in self.open]
        if not places:
            self._change_topics(broker)
            return
        tp, partition = self.chance.choice(places)
        if partition.producer_id < 0:
            partition.producer_id, partition.sequence = self._new_producer_id(broker), 0
        first = len(partition.appended)
        count = self.chance.randint(1, 4)
        values = [b"%d of %s" % (first + index, str(tp).encode()) for index in range(count)]
        values[0] += b"x" * self.chance.choice((0, 0, 300))
        records = batch(
            values,
            NOW_MS,
            producer=(partition.producer_id, 0, partition.sequence),
            compression=self.chance.choice(list(Compression)),
        )
        partition.appended += values
        partition.sequence += len(values)
        partition.batches[first], partition.ends[first] = bytes(records), len(partition.appended)
        answers = self._give_batch(broker, tp, records)
        self._waiting.append((answers, tp, partition, first))

    def _take_answers(self) -> None:
        for answers, tp, partition, first in self._waiting:
            if answers:
                self._acknowledge(tp, partition, first, answers[0])
        self._waiting = [each for each in self._waiting if not each[0]]
        for answers, offset in self._commits:
            if answers:
                result = decode_response(answers[0], OffsetCommitRequest, 8)[1].topics[0].partitions[0]
                if result.error_code == 0:
                    self.commit_safe = max(self.commit_safe, offset)
                elif result.error_code != LOADING:
                    self.findings.append(f"commit of {offset}: {result}")
        self._commits = [each for each in self._commits if not each[0]]

    def _give_batch(self, broker: BrokerInHand, tp: TopicPartition, records: Any) -> list[Any]:
        data = ProduceRequest.PartitionProduceData(index=tp.partition, records=records)
        topic = ProduceRequest.TopicProduceData(name=tp.topic, partition_data=[data])
        # A record acknowledged with acks=1 is as durable as one with acks=all.
        acks = -1 if broker.given % 2 else 1
        return broker.give(frame_of(ProduceRequest(acks=acks, timeout_ms=10**6, topic_data=[topic]), 9))

    def _acknowledge(self, tp: TopicPartition, partition: Partition, first: int, answer: Any) -> None:
        message = decode_response(answer, ProduceRequest, 9)[1]
        result = message.responses[0].partition_responses[0]
        if result.error_code or result.base_offset != first:
            self.findings.append(f"{tp}: {first} was answered with {result}")
        end = partition.ends[first]
        partition.safe = max(partition.safe, end)
        self.acknowledged += end - first

    def _new_producer_id(self, broker: BrokerInHand) -> int:
        message = broker.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
        if message.error_code or message.producer_id in self.producer_ids:
            self.findings.append(
                f"producer id {message.producer_id} was assigned twice, error {message.error_code}"
            )
        self.producer_ids.add(message.producer_id)
        return int(message.producer_id)

    def _commit(self, broker: BrokerInHand) -> None:
        self.commit_sent += 1
        wanted = OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=self.commit_sent)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=KEPT, partitions=[wanted])
        message = OffsetCommitRequest(group_id=GROUP, topics=[topic])
        self._commits.append((broker.give(frame_of(message, 8)), self.commit_sent))

    def _judge_commit(self, broker: BrokerInHand, keeps_all: bool) -> None:
        """Check that an offset that was confirmed, or read after a start, is not lost."""
        if OFFSETS not in broker.logs.topics() and not self.commit_safe:
            return
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=KEPT, partition_indexes=[0])
        message = OffsetFetchRequest(group_id=GROUP, topics=[topic])

        def answered() -> Any:
            answer = broker.ask(message, 7)
            if answer.error_code != LOADING:
                return answer
            if not self.disk.has_power:
                raise PowerLossError("while the group was being loaded")
            return None

        answer = eventually(answered, step=broker.settle)
        found = answer.topics[0].partitions[0].committed_offset if not answer.error_code else None
        least = self.commit_safe if self.flush == "ack" or keeps_all else 0
        if found is None or not least <= max(found, 0) <= self.commit_sent:
            self.findings.append(f"{answer}, but {least} to {self.commit_sent} were committed")
        else:
            self.commit_safe = max(found, 0)

    def _delete_records(self, broker: BrokerInHand) -> None:
        places = [(tp, partition) for tp, partition in self._all() if partition.safe > partition.start]
        if not places:
            return
        tp, partition = self.chance.choice(places)
        partition.asked_start = before = self.chance.randint(partition.start, partition.safe)
        wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=tp.partition, offset=before)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=tp.topic, partitions=[wanted])
        result = broker.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000)).topics[0].partitions[0]
        if result.error_code:
            self.findings.append(f"{tp}: records before {before} were not deleted: {result}")
        partition.start = before

    def _change_topics(self, broker: BrokerInHand) -> None:
        name = self.chance.choice(NAMES)
        self.open.add(name)
        if name not in self.topics:
            wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            result = broker.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000)).topics[0]
            self.topics[name] = Topic([Partition(), Partition()], result.topic_id)
        elif len(self.topics[name].partitions) == 2:
            more = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=3, assignments=None)
            result = broker.ask(CreatePartitionsRequest(topics=[more], timeout_ms=1000)).results[0]
            self.topics[name].partitions.append(Partition())
        else:
            state = DeleteTopicsRequest.DeleteTopicState(name=name)
            result = broker.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000)).responses[0]
            self.gone.add(self.topics.pop(name).topic_id)
            # Responses that wait for a deleted topic report that it does not exist.
            self._waiting = [each for each in self._waiting if each[1].topic != name]
        if result.error_code:
            self.findings.append(f"{name}: {result}")
        self.open.discard(name)

    # ---- Checks -------------------------------------------------------------------------------------------

    def _judge(self, *, keeps_all: bool) -> None:
        """Check that acknowledged operations are still in effect. ``keeps_all``: the power was not cut."""
        broker = self.broker
        assert broker is not None
        found = broker.logs.topics()
        for name, topic in self.topics.items():
            if name not in self.open and (name not in found or found[name].topic_id != topic.topic_id):
                self.findings.append(f"topic {name} is {found.get(name)}")
        returned = {state.topic_id for state in found.values()} & self.gone
        if returned:
            self.findings.append(f"{returned} were deleted, but exist")
        self._judge_commit(broker, keeps_all)
        self.findings += self.rights.judge(broker)
        for tp, partition in self._all():
            if tp.topic not in self.open:
                self._judge_partition(broker, tp, partition, keeps_all)

    def _judge_partition(
        self, broker: BrokerInHand, tp: TopicPartition, partition: Partition, keeps_all: bool
    ) -> None:
        try:
            log = broker.logs.log(tp)
            assert log is not None, "the log does not exist"
            records = read_all(log)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            self.findings.append(f"{tp}: {error!r}")
            return
        start, end = log.log_start_offset, log.log_end_offset
        least = partition.safe if self.flush == "ack" or keeps_all else 0
        self.lost += max(partition.safe - end, 0)
        if not least <= end <= len(partition.appended):
            self.findings.append(
                f"{tp}: ends at {end}, but {least} of {len(partition.appended)} records were acknowledged"
            )
        if not partition.start <= start <= max(partition.asked_start, partition.start):
            self.findings.append(
                f"{tp}: begins at {start}, but records before {partition.asked_start} were to be deleted"
            )
        if log.high_watermark != end:
            self.findings.append(f"{tp}: shows {log.high_watermark} of {end}")
        expected = list(enumerate(partition.appended[:end]))[start:]
        if [(record.offset, record.value) for record in records] != expected:
            self.findings.append(f"{tp}: {records} differ from what was appended from {start} to {end}")
        self._judge_repeat(broker, tp, partition, end)

    def _judge_repeat(self, broker: BrokerInHand, tp: TopicPartition, partition: Partition, end: int) -> None:
        """Send the last batch again: it must be recognized as a duplicate and must not be appended."""
        start = broker.logs.log(tp).log_start_offset
        firsts = [first for first in partition.batches if start <= first and partition.ends[first] <= end]
        if not firsts:
            return
        first = max(firsts)
        answers = self._give_batch(broker, tp, partition.batches[first])
        broker.flush()
        result = decode_response(answers[0], ProduceRequest, 9)[1].responses[0].partition_responses[0]
        log = broker.logs.log(tp)
        assert log is not None
        if (result.error_code, result.base_offset, log.log_end_offset) != (0, first, end):
            self.findings.append(
                f"{tp}: retry of batch {first}: {result}, and the log ends at {log.log_end_offset}"
            )
