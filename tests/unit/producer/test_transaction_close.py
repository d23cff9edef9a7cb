"""Closing a producer in a transaction.

An open transaction is aborted. One that is being committed or aborted is completed, for a limited time.
"""

from __future__ import annotations

import pytest
from model.transaction_harness import TransactionHarness

from kafkacore.producer.transaction_state import State
from kafkacore.protocol.generated.end_txn import EndTxnRequest

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.behaviour(
    "TransactionManager",
    "close aborts an open transaction, completes one that is ending, and is bounded",
)
@VERSIONS
def test_a_close_aborts_what_is_open(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    harness.sender.begin_close(harness.clock.monotonic_ms())
    assert harness.sender.has_work
    assert not harness.expect(EndTxnRequest).committed
    harness.answer()
    assert not harness.sender.has_work


@pytest.mark.behaviour(
    "Reliability",
    "ending a transaction, and closing during one, never wait for an event that cannot occur",
)
@VERSIONS
def test_a_close_does_not_sleep_once_a_transaction_without_records_is_aborted(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.sender.begin_close(harness.clock.monotonic_ms())
    while harness.sender.has_work:
        harness.run()
    # A longer wait would not end: all requests have been answered.
    assert harness.client.polls[-1] == 0


@pytest.mark.behaviour(
    "TransactionManager",
    "close aborts an open transaction, completes one that is ending, and is bounded",
)
def test_a_close_lets_a_commit_that_has_begun_end() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send()
    harness.acknowledge()
    result = harness.manager.begin_commit()
    harness.sender.begin_close(harness.clock.monotonic_ms())
    assert harness.expect(EndTxnRequest).committed
    harness.answer()
    result.wait(0)
    assert not harness.sender.has_work


@pytest.mark.behaviour(
    "TransactionManager",
    "close aborts an open transaction, completes one that is ending, and is bounded",
)
@pytest.mark.behaviour(
    "Reliability",
    "ending a transaction, and closing during one, never wait for an event that cannot occur",
)
def test_a_close_waits_for_no_coordinator_longer_than_max_block_ms() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send()
    harness.acknowledge()
    harness.sender.begin_close(harness.clock.monotonic_ms())
    harness.expect(EndTxnRequest)
    harness.after(999)
    assert harness.sender.has_work
    assert harness.client.polls[-1] == 1
    harness.after(1)
    assert not harness.sender.has_work
    assert harness.client.polls[-1] == 0
    harness.run()
    assert harness.client.polls[-1] > 0


def test_a_close_of_a_failed_transaction_aborts_it() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send()
    harness.run()
    harness.client.respond(10)
    harness.run()
    assert harness.state is State.ABORTABLE_ERROR
    harness.sender.begin_close(harness.clock.monotonic_ms())
    assert not harness.expect(EndTxnRequest).committed


@pytest.mark.behaviour(
    "TransactionManager",
    "close aborts an open transaction, completes one that is ending, and is bounded",
)
@pytest.mark.parametrize("prepare", ["init_transactions", "begin_commit", "send_offsets"])
def test_whoever_waits_hears_of_the_close(prepare: str) -> None:
    harness = TransactionHarness()
    if prepare != "init_transactions":
        harness.begin()
        harness.send()
        harness.acknowledge()
    target = harness if prepare == "send_offsets" else harness.manager
    result = getattr(target, prepare)()
    harness.sender.abort()
    with pytest.raises(Exception, match="closed"):
        result.wait(0)
