"""A prepared transaction that one manager releases and another takes over, without a broker."""

import pytest

from kafkacore.client import ApiVersions
from kafkacore.errors import IllegalStateError, KafkaError
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

OPEN = PreparedTransaction("query-3", 41, 7)


@pytest.fixture
def manager():
    return TransactionManager(
        "query", VirtualClock(), ApiVersions(), transaction_timeout_ms=60_000, max_block_ms=1_000.0
    )


def test_what_is_prepared_is_what_was_resumed(manager):
    manager.resume(OPEN)
    assert (manager.transactional_id, manager.producer_id, manager.producer_epoch) == OPEN
    assert manager.has_work
    assert manager.prepare() == OPEN
    assert (manager.producer_id, manager.producer_epoch) == (-1, -1)


def test_close_does_not_abort_what_was_prepared(manager):
    manager.resume(OPEN)
    manager.prepare()
    manager.begin_close(0.0)
    assert not manager.has_work
    assert manager.next_request(0.0) is None


def test_after_it_the_producer_is_to_be_initialized(manager):
    manager.resume(OPEN)
    manager.prepare()
    with pytest.raises(IllegalStateError, match="init_transactions"):
        manager.begin_transaction()
    manager.change_transactional_id("query-4")
    manager.init_transactions()
    manager.begin_turn(0.0, has_batches=False)
    request = manager.next_request(0.0)
    assert request.message.transactional_id == "query-4"
    assert request.message.producer_id == -1


def test_transaction_with_partitions_to_be_added_is_not_prepared(manager):
    manager.resume(OPEN)
    manager.add_partition(TopicPartition("t", 0))
    with pytest.raises(IllegalStateError, match="flush"):
        manager.prepare()


def test_failed_transaction_is_not_prepared(manager):
    manager.resume(OPEN)
    manager.fail_transaction(KafkaError("a record was lost"))
    with pytest.raises(KafkaError, match="a record was lost"):
        manager.prepare()


def test_nothing_is_prepared_outside_a_transaction(manager):
    with pytest.raises(IllegalStateError, match="prepare_transaction"):
        manager.prepare()


@pytest.mark.parametrize("method", ["change_transactional_id", "resume"])
def test_producer_inside_a_transaction_takes_no_other(manager, method):
    manager.resume(OPEN)
    with pytest.raises(IllegalStateError, match="cannot be changed now"):
        getattr(manager, method)("query-4" if method == "change_transactional_id" else OPEN)


def test_next_one_is_taken_over_after_the_end(manager):
    manager.resume(OPEN)
    result = manager.begin_commit()
    manager.begin_turn(0.0, has_batches=False)
    end = manager.next_request(0.0)
    assert end.message.producer_epoch == OPEN.producer_epoch
    assert end.message.committed
    manager.ended(end, -1, -1)
    result.wait(0)
    manager.resume(PreparedTransaction("query-4", 42, 0))
    assert (manager.transactional_id, manager.producer_id) == ("query-4", 42)
