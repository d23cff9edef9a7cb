"""AddOffsetsToTxn, TxnOffsetCommit and stable OffsetFetch in every version, without a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from model.authorisation_matrix import DESCRIBE, GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE, Grant
from model.broker_harness import BrokerHarness
from model.granted import Granted
from model.scripted_transactions import ScriptedTransactions

from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import RequestContext
from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.coordinator import partition_for
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.structs import TopicPartition

PLACE = TopicPartition(OFFSETS_TOPIC, partition_for("g"))
UNSTABLE = UnstableOffsetCommitError.errno


@pytest.fixture
def transactions(broker: BrokerHarness) -> ScriptedTransactions:
    """Return the transaction coordinator of a broker with a topic ``t`` of three partitions."""
    broker.topics.create("t", 3, {})
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    found = ScriptedTransactions()
    broker.services.transactions = found  # type: ignore[assignment]
    return found


def commit_request(offsets: dict[int, int], topic: str = "t", **fields: Any) -> TxnOffsetCommitRequest:
    shape = TxnOffsetCommitRequest
    partitions = [
        shape.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="note"
        )
        for partition, offset in offsets.items()
    ]
    who = {"transactional_id": "tx", "group_id": "g", "producer_id": 7, "producer_epoch": 2, **fields}
    topics = [shape.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return shape(topics=topics, **who)


def codes_of(answer: Any) -> dict[int, int]:
    return {one.partition_index: one.error_code for topic in answer.topics for one in topic.partitions}


def committed(
    broker: BrokerHarness, offsets: dict[int, int], version: int = 5, **fields: Any
) -> dict[int, int]:
    return codes_of(broker.ask(commit_request(offsets, **fields), version))


def end(broker: BrokerHarness, *, commit: bool, epoch: int = 2) -> None:
    log = broker.services.coordinator_log
    marker = EndTransactionMarker(7, epoch, commit, 0, 1)
    log.append_marker(PLACE.partition, marker, broker.clock.wall_ms())


def fetched(
    broker: BrokerHarness, version: int, partitions: list[int] | None, *, stable: bool
) -> dict[int, tuple[int, int]]:
    """Return the committed offset and the error code of each partition."""
    shape = OffsetFetchRequest
    if version < 8:
        topic = shape.OffsetFetchRequestTopic(name="t", partition_indexes=partitions or [])
        topics = None if partitions is None else [topic]
        request = shape(group_id="g", topics=topics, require_stable=stable)
    else:
        wanted = shape.OffsetFetchRequestTopics(partition_indexes=partitions or [])
        if version >= 10:
            found = broker.topics.get("t")
            assert found is not None
            wanted.topic_id = found.topic_id
        else:
            wanted.name = "t"
        group = shape.OffsetFetchRequestGroup(group_id="g", topics=None if partitions is None else [wanted])
        request = shape(groups=[group], require_stable=stable)
    answer = broker.ask(request, version)
    if version >= 8:
        (answer,) = answer.groups
    assert answer.error_code == 0
    return {
        one.partition_index: (one.committed_offset, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }


def wait_for_load(broker: BrokerHarness) -> None:
    eventually(lambda: not broker.services.coordinator_log.is_loading, step=broker.settle)


# ---- TxnOffsetCommit ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", range(6))
def test_offset_is_fetched_after_its_transaction(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int
) -> None:
    assert committed(broker, {0: 42, 2: 7}, version) == {0: 0, 2: 0}
    who = ("tx", 7, 2, [PLACE], None)
    assert transactions.calls == [("add", *who, 2) if version >= 5 else ("verify", *who)]
    assert fetched(broker, 9, [0, 1, 2], stable=False) == {0: (-1, 0), 1: (-1, 0), 2: (-1, 0)}
    end(broker, commit=True)
    assert fetched(broker, 9, [0, 1, 2], stable=True) == {0: (42, 0), 1: (-1, 0), 2: (7, 0)}
    assert fetched(broker, 9, None, stable=True) == {0: (42, 0), 2: (7, 0)}


@pytest.mark.parametrize("version", [4, 5])
def test_partition_is_verified_once_per_transaction(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int
) -> None:
    committed(broker, {0: 1}, version)
    committed(broker, {0: 2}, version)
    assert len(transactions.calls) == 1
    end(broker, commit=True)
    committed(broker, {0: 3}, version)
    # A later epoch has no transaction in the partition yet.
    committed(broker, {0: 4}, version, producer_epoch=3)
    assert len(transactions.calls) == 3


def test_offsets_are_written_when_the_partition_was_added(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    transactions.is_holding = True
    answer = broker.send(commit_request({0: 1}), 5)
    assert (answer.count, broker.log(*PLACE).batches) == (0, [])
    transactions.settle()
    assert (answer.count, len(broker.log(*PLACE).batches)) == (1, 1)


def test_response_waits_until_the_disk_has_the_offsets(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    log = broker.log(*PLACE)
    log.sync_at_once = False
    answer = broker.send(commit_request({0: 1}), 5)
    broker.settle()
    assert answer.count == 0
    log.sync()
    broker.replica_manager.on_high_watermark(PLACE, 1)
    broker.settle()
    assert codes_of(answer.message) == {0: 0}


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(
    ("found", "returned"),
    [
        (ProducerFencedError, InvalidProducerEpochError),
        (InvalidProducerIdMappingError, InvalidProducerIdMappingError),
        (ConcurrentTransactionsError, ConcurrentTransactionsError),
        (TransactionAbortableError, TransactionAbortableError),
        (CoordinatorLoadInProgressError, CoordinatorLoadInProgressError),
    ],
)
def test_refusal_of_the_transaction_has_a_code_that_the_version_knows(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int, found: Any, returned: Any
) -> None:
    transactions.code = found.errno
    if found is TransactionAbortableError and version < 4:
        returned = InvalidTxnStateError
    if found is CoordinatorLoadInProgressError and version < 2:
        returned = CoordinatorNotAvailableError
    assert committed(broker, {0: 1, 9: 1}, version) == {
        0: returned.errno,
        9: UnknownTopicOrPartitionError.errno,
    }
    assert broker.log(*PLACE).batches == []


@pytest.mark.parametrize("version", range(6))
def test_nothing_is_verified_for_partitions_that_do_not_exist(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int
) -> None:
    unknown = UnknownTopicOrPartitionError.errno
    assert committed(broker, {3: 1, -1: 1}, version) == {3: unknown, -1: unknown}
    assert committed(broker, {0: 1}, version, topic="nowhere") == {0: unknown}
    assert transactions.calls == []
    assert committed(broker, {0: 1, 3: 1}, version) == {0: 0, 3: unknown}


def test_request_for_a_group_that_is_not_coordinated_here_is_not_verified(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    assert committed(broker, {0: 1}, group_id="") == {0: InvalidGroupIdError.errno}
    broker.log(*PLACE).failure = "the disk has failed"
    assert committed(broker, {0: 1}) == {0: NotCoordinatorError.errno}
    assert transactions.calls == []


def test_coordinator_that_is_lost_while_the_partition_is_added_writes_nothing(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    transactions.is_holding = True
    answer = broker.send(commit_request({0: 1}), 5)
    broker.log(*PLACE).failure = "the disk has failed"
    transactions.settle()
    assert codes_of(answer.message) == {0: NotCoordinatorError.errno}
    assert broker.log(*PLACE).batches == []


def test_member_of_a_group_that_does_not_exist_is_of_no_generation(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    codes = committed(broker, {0: 1}, member_id="m", generation_id=1)
    assert codes == {0: IllegalGenerationError.errno}
    assert committed(broker, {0: 1}) == {0: 0}
    codes = committed(broker, {0: 1}, member_id="m", generation_id=1)
    assert codes == {0: UnknownMemberIdError.errno}


def test_rights_are_checked_in_kafkas_order(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    grants: list[Grant] = []
    for denied, missing in (
        (TransactionalIdAuthorizationFailedError, Grant(WRITE, TRANSACTIONAL_ID, "tx")),
        (GroupAuthorizationFailedError, Grant(READ, GROUP, "g")),
        (TopicAuthorizationFailedError, Grant(READ, TOPIC, "t")),
    ):
        broker.services.authorizer = Granted(grants)
        assert committed(broker, {0: 1, 9: 1}) == {0: denied.errno, 9: denied.errno}
        assert transactions.calls == []
        grants.append(missing)
    broker.services.authorizer = Granted(grants)
    assert committed(broker, {0: 1}) == {0: 0}


def test_transaction_does_not_end_while_the_coordinator_is_stopped(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, other_nodes=[BrokerNode(2, "127.0.0.1", 9093)])
    broker.topics.create("t", 3, {})
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    broker.services.transactions = ScriptedTransactions()  # type: ignore[assignment]
    cluster, log = broker.cluster, broker.services.coordinator_log
    place = TopicPartition(OFFSETS_TOPIC, log.partition_for("g"))
    broker.context = RequestContext("test", cluster.leader(place), "127.0.0.1")
    assert committed(broker, {0: 5}) == {0: 0}
    stopped = cluster.replicas(place)
    for node_id in stopped:
        cluster.stop_node(node_id)
    wait_for_load(broker)
    with pytest.raises(NotLeaderForPartitionError, match="has no leader"):
        end(broker, commit=True)
    for node_id in stopped:
        cluster.start_node(node_id)
    wait_for_load(broker)
    end(broker, commit=True)
    assert fetched(broker, 9, [0], stable=True) == {0: (5, 0)}


# ---- AddOffsetsToTxn ---------------------------------------------------------------------------------------
def added(broker: BrokerHarness, version: int = 4) -> int:
    request = AddOffsetsToTxnRequest(transactional_id="tx", producer_id=7, producer_epoch=2, group_id="g")
    return int(broker.ask(request, version).error_code)


@pytest.mark.parametrize("version", range(5))
def test_partition_of_the_group_is_added(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int
) -> None:
    assert added(broker, version) == 0
    assert transactions.calls == [("add", "tx", 7, 2, [PLACE], broker.config.node_id, 0)]
    transactions.code = ProducerFencedError.errno
    expected = ProducerFencedError if version >= 2 else InvalidProducerEpochError
    assert added(broker, version) == expected.errno
    transactions.code = ConcurrentTransactionsError.errno
    assert added(broker, version) == ConcurrentTransactionsError.errno


def test_adding_needs_rights_on_transaction_and_group(
    broker: BrokerHarness, transactions: ScriptedTransactions
) -> None:
    write, read = Grant(WRITE, TRANSACTIONAL_ID, "tx"), Grant(READ, GROUP, "g")
    broker.services.authorizer = Granted([read])
    assert added(broker) == TransactionalIdAuthorizationFailedError.errno
    broker.services.authorizer = Granted([write, Grant(DESCRIBE, GROUP, "g")])
    assert added(broker) == GroupAuthorizationFailedError.errno
    assert transactions.calls == []
    broker.services.authorizer = Granted([write, read])
    assert added(broker) == 0


# ---- OffsetFetch -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", range(7, 11))
def test_stable_fetch_refuses_partitions_with_pending_offsets(
    broker: BrokerHarness, transactions: ScriptedTransactions, version: int
) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    broker.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 9)
    committed(broker, {0: 5, 1: 6})
    assert fetched(broker, version, [0, 1, 2], stable=True) == {
        0: (-1, UNSTABLE),
        1: (-1, UNSTABLE),
        2: (-1, 0),
    }
    assert fetched(broker, version, [0, 1, 2], stable=False) == {0: (1, 0), 1: (-1, 0), 2: (-1, 0)}
    # As in Kafka, a partition that has never been committed is not among "all".
    assert fetched(broker, version, None, stable=True) == {0: (-1, UNSTABLE)}
    assert fetched(broker, version, None, stable=False) == {0: (1, 0)}
    end(broker, commit=False)
    assert fetched(broker, version, [0, 1], stable=True) == {0: (1, 0), 1: (-1, 0)}


def test_offsets_of_transactions_are_served() -> None:
    served = {h.request_class.NAME: (h.min_version, h.max_version) for h in HANDLERS}
    assert served["AddOffsetsToTxnRequest"] == (0, 4)
    assert served["TxnOffsetCommitRequest"] == (0, 5)
