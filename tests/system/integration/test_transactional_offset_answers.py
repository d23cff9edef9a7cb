"""Offsets in transactions get the same responses from Apache Kafka and from our broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from model.authorisation_requests import made
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer

from kafkacore.broker.coordinator.loader import load_partition
from kafkacore.broker.group.replay import Replay
from kafkacore.broker.log import LogManager
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    TransactionAbortableError,
    UnstableOffsetCommitError,
)
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.structs import TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPIC = "transactional-offsets"
#: Codes after which a producer repeats its request.
REPEATED = {
    error.errno
    for error in (
        ConcurrentTransactionsError,
        CoordinatorLoadInProgressError,
        CoordinatorNotAvailableError,
        NotCoordinatorError,
    )
}
#: First versions of the requests of a producer whose epoch is bumped by each transaction.
FIRST_TV2_COMMIT, FIRST_TV2_END = 5, 5

_numbers = count()


class Producer:
    """A transactional producer, and its group, on one broker.

    Parameters
    ----------
    version:
        Version of its TxnOffsetCommit, which decides the protocol: from 5 on, transactions of version 2.
    """

    def __init__(self, broker: Line, name: str, version: int) -> None:
        self._broker = broker
        self.name = name
        self.version = version
        for key_type in (0, 1):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
            self._repeated(lambda find=find: broker.ask(find, 4).coordinators[0])
        initial = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        found = self._repeated(lambda: broker.ask(initial, 4))
        self.producer_id, self.epoch = found.producer_id, found.producer_epoch

    @staticmethod
    def _repeated(ask: Callable[[], Any]) -> Any:
        """Return the first response whose code does not ask for a repetition."""
        answers: list[Any] = []

        def has_answered() -> bool:
            answers[:] = [ask()]
            found = answers[0]
            return (found if isinstance(found, int) else found.error_code) not in REPEATED

        eventually(has_answered, lambda: answers[0])
        return answers[0]

    @property
    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add(self, version: int = 3, **changes: Any) -> int:
        request = AddOffsetsToTxnRequest(**{**self._who, "group_id": self.name, **changes})
        return int(self._repeated(lambda: self._broker.ask(request, version)).error_code)

    def begin(self) -> int:
        """Add the group's offsets to the transaction if the protocol requires it."""
        return self.add() if self.version < FIRST_TV2_COMMIT else 0

    def commit(self, offsets: dict[int, int], note: str = "note", **changes: Any) -> dict[int, int]:
        """Send TxnOffsetCommit, and return the error code of each partition."""
        partitions = [
            {"partition_index": index, "committed_offset": offset, "committed_metadata": note}
            for index, offset in offsets.items()
        ]
        topics = [{"name": changes.pop("topic", TOPIC), "partitions": partitions}]
        fields = {**self._who, "group_id": self.name, **changes}
        request = made(TxnOffsetCommitRequest, topics=topics, **fields)
        codes: dict[int, int] = {}

        def ask() -> int:
            (topic,) = self._broker.ask(request, self.version).topics
            codes.update({one.partition_index: one.error_code for one in topic.partitions})
            return next(iter(codes.values()))

        self._repeated(ask)
        return codes

    def commit_outside(self, offsets: dict[int, int]) -> set[int]:
        partitions = [{"partition_index": each, "committed_offset": at} for each, at in offsets.items()]
        topics = [{"name": TOPIC, "partitions": partitions}]
        request = made(OffsetCommitRequest, group_id=self.name, topics=topics)
        codes: set[int] = set()

        def ask() -> int:
            (topic,) = self._broker.ask(request, 9).topics
            codes.clear()
            codes.update(one.error_code for one in topic.partitions)
            return next(iter(codes))

        # A group's coordinator may be found before it has loaded its partition.
        self._repeated(ask)
        return codes

    def fetch(self, *, stable: bool, partitions: list[int] | None = None) -> Any:
        """Return offset and error code of each partition, by default of all that the group has committed."""
        topics = None if partitions is None else [{"name": TOPIC, "partition_indexes": partitions}]
        groups = [{"group_id": self.name, "topics": topics}]
        request = made(OffsetFetchRequest, groups=groups, require_stable=stable)
        (group,) = self._broker.ask(request, 9).groups
        found = {
            one.partition_index: (one.committed_offset, one.error_code)
            for topic in group.topics
            for one in topic.partitions
        }
        return group.error_code, dict(sorted(found.items()))

    def end(self, *, commit: bool) -> int:
        """End the transaction, and wait until its marker has been written."""
        version = FIRST_TV2_END if self.version >= FIRST_TV2_COMMIT else 4
        request = EndTxnRequest(**self._who, committed=commit)
        answer = self._repeated(lambda: self._broker.ask(request, version))
        if not answer.error_code and version >= FIRST_TV2_END:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        unstable = UnstableOffsetCommitError.errno
        eventually(
            lambda: (
                unstable not in {code for _, code in self.fetch(stable=True, partitions=[0, 1])[1].values()}
            )
        )
        return int(answer.error_code)

    def delete_offsets(self, *partitions: int) -> Any:
        topics = [{"name": TOPIC, "partitions": [{"partition_index": each} for each in partitions]}]
        answer = self._broker.ask(made(OffsetDeleteRequest, group_id=self.name, topics=topics), 0)
        return answer.error_code, sorted(one.error_code for one in answer.topics[0].partitions)

    def delete_group(self) -> int:
        (result,) = self._broker.ask(DeleteGroupsRequest(groups_names=[self.name]), 2).results
        return int(result.error_code)


Story = Callable[[Producer], list[Any]]


@pytest.fixture(scope="module")
def brokers(
    apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, java_peer: JavaPeer
) -> Iterator[tuple[Line, Line]]:
    for broker in (apache_kafka, our_broker):
        java_peer.create_topic(broker.bootstrap_servers, TOPIC, 2)
    with Line(apache_kafka.bootstrap_servers) as theirs, Line(our_broker.bootstrap_servers) as ours:
        yield theirs, ours


def told(brokers: tuple[Line, Line], version: int, story: Story) -> list[Any]:
    """Let a producer on each broker go through a story. Return the responses, which must be the same."""
    name = f"transactional-{next(_numbers)}"
    theirs, ours = (story(Producer(broker, name, version)) for broker in brokers)
    assert ours == theirs
    return ours


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_after_the_commit_only(brokers: tuple[Line, Line], version: int) -> None:
    def story(producer: Producer) -> list[Any]:
        return [
            producer.commit_outside({0: 1}),
            producer.begin(),
            producer.commit({0: 5, 1: 6, 2: 7, -1: 8}),
            producer.commit({0: 5}, note="x" * 5000),
            producer.commit({0: 5}, topic="no-such-topic"),
            *(producer.fetch(stable=stable) for stable in (True, False)),
            *(producer.fetch(stable=stable, partitions=[0, 1, 5]) for stable in (True, False)),
            producer.end(commit=True),
            producer.fetch(stable=True),
            producer.begin(),
            producer.commit({0: 9}),
            producer.fetch(stable=True, partitions=[0, 1]),
            producer.end(commit=False),
            producer.fetch(stable=True),
        ]

    responses = told(brokers, version, story)
    assert responses[-1] == (0, {0: (5, 0), 1: (6, 0)})
    assert responses[5] == (0, {0: (-1, UnstableOffsetCommitError.errno)})


@pytest.mark.parametrize("version", range(6))
def test_producers_that_may_not_commit_are_refused(brokers: tuple[Line, Line], version: int) -> None:
    def story(producer: Producer) -> list[Any]:
        responses: list[Any] = [
            producer.commit({0: 1}, producer_id=producer.producer_id + 1000),
            producer.commit({0: 1}, producer_id=-1),
            producer.commit({0: 1}, producer_epoch=producer.epoch + 1),
            producer.commit({0: 1}, producer_epoch=-1),
            producer.commit({0: 1}, transactional_id="no-such-id"),
            producer.commit({0: 1}, group_id=""),
        ]
        if version < FIRST_TV2_COMMIT:
            responses.append(producer.commit({0: 1}))
        if version >= 3:
            responses += [
                producer.begin(),
                producer.commit({0: 1}, generation_id=3, member_id="m"),
                producer.commit({0: 1}, generation_id=3, member_id="m", group_instance_id="i"),
                producer.commit({0: 2}),
                producer.commit({0: 1}, generation_id=3, member_id="m"),
                producer.commit({0: 1}, member_id="m"),
                producer.end(commit=True),
            ]
        return [*responses, producer.fetch(stable=True)]

    responses = told(brokers, version, story)
    if version == 4:
        assert responses[6] == {0: TransactionAbortableError.errno}


@pytest.mark.parametrize("version", range(5))
def test_offsets_are_added_as_by_apache_kafka(brokers: tuple[Line, Line], version: int) -> None:
    def story(producer: Producer) -> list[Any]:
        return [
            producer.add(version, producer_id=producer.producer_id + 1000),
            producer.add(version, producer_epoch=producer.epoch + 1),
            producer.add(version, transactional_id="no-such-id"),
            producer.add(version, transactional_id=""),
            producer.add(version, group_id=""),
            producer.add(version),
            producer.add(version),
        ]

    assert told(brokers, 3, story)[-1] == 0


@pytest.mark.parametrize("version", [4, 5])
def test_deletions_and_other_commits_during_a_transaction(brokers: tuple[Line, Line], version: int) -> None:
    def story(producer: Producer) -> list[Any]:
        responses: list[Any] = [
            producer.begin(),
            producer.commit({0: 5, 1: 6}),
            producer.commit_outside({0: 1}),
            producer.fetch(stable=True),
            producer.end(commit=True),
            producer.fetch(stable=True),
            producer.begin(),
            producer.commit({0: 7, 1: 8}),
            producer.delete_offsets(0, 1),
            producer.fetch(stable=True, partitions=[0, 1]),
            producer.commit({1: 9}),
            producer.end(commit=True),
            producer.fetch(stable=True),
            producer.begin(),
            producer.commit({0: 10}),
            producer.delete_group(),
            producer.fetch(stable=True, partitions=[0, 1]),
            producer.end(commit=True),
            producer.fetch(stable=True),
            producer.delete_group(),
        ]
        return responses

    responses = told(brokers, version, story)
    assert responses[5] == (0, {0: (1, 0), 1: (6, 0)})
    assert responses[12] == (0, {1: (9, 0)})
    assert responses[18] == (0, {})


def test_segments_of_apache_kafka_load_with_open_transactions(
    apache_kafka: ApacheKafka, brokers: tuple[Line, Line], tmp_path: Path
) -> None:
    theirs, _ = brokers
    committed, aborted, left_open = (Producer(theirs, f"kept-{name}", 4) for name in ("c", "a", "o"))
    for number, producer in enumerate((committed, aborted, left_open)):
        producer.commit_outside({0: number, 1: number})
        producer.begin()
        producer.commit({0: 10 + number})
    committed.end(commit=True)
    aborted.end(commit=False)
    place = TopicPartition("__consumer_offsets", 0)
    shutil.copytree(apache_kafka.segments_dir / f"{place.topic}-0", tmp_path / f"{place.topic}-0")
    with LogManager(tmp_path, clock=SYSTEM_CLOCK) as logs:
        log = logs.log(place)
        assert log is not None
        offsets = load_partition(Replay(place), log, 1 << 20, lambda: False).offsets
    found = {
        producer.name: {
            partition: one.offset for partition, one in offsets.of_group(producer.name)[TOPIC].items()
        }
        for producer in (committed, aborted, left_open)
    }
    assert found == {"kept-c": {0: 10, 1: 0}, "kept-a": {0: 1, 1: 1}, "kept-o": {0: 2, 1: 2}}
    pending = offsets.pending.of_group(left_open.name)
    assert [(where, list(of_producer)) for where, of_producer in pending.items()] == [
        ((TOPIC, 0), [left_open.producer_id])
    ]
    assert pending[TOPIC, 0][left_open.producer_id].offset == 12
    assert not offsets.pending.of_group(aborted.name)
    left_open.end(commit=False)
