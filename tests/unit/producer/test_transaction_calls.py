"""Calls that timed out or were interrupted by Ctrl-C: repeating the same call resumes them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

import pytest
from model.producer_harness import outcome
from model.transaction_harness import TransactionHarness

from kafkacore.errors import IllegalStateError, InvalidTopicError, KafkaTimeoutError
from kafkacore.producer.transaction_state import State
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.testing import VirtualClock

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.behaviour(
    "TransactionManager",
    "a call that timed out or was interrupted is resumed by the same call; any other is rejected",
)
def test_initialization_that_timed_out_is_taken_up_by_the_same_call() -> None:
    harness = TransactionHarness()
    first = harness.manager.init_transactions()
    with pytest.raises(KafkaTimeoutError, match=r"init_transactions\(\)"):
        first.wait(50)
    with pytest.raises(
        IllegalStateError,
        match=r"because init_transactions\(\) has not finished: call init_transactions\(\) again",
    ):
        harness.manager.begin_transaction()
    assert harness.manager.init_transactions() is first
    assert [message.NAME for message in harness.serve()] == [
        "FindCoordinatorRequest",
        "InitProducerIdRequest",
    ]
    harness.manager.init_transactions().wait(0)
    harness.manager.begin_transaction()


@pytest.mark.behaviour(
    "TransactionManager",
    "a call that timed out or was interrupted is resumed by the same call; any other is rejected",
)
@VERSIONS
@pytest.mark.parametrize("operation", ["begin_commit", "begin_abort"])
def test_an_end_that_timed_out_is_taken_up_by_the_same_call_and_only_by_it(
    version: int, operation: str
) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    first = getattr(harness.manager, operation)()
    harness.expect(EndTxnRequest)
    with pytest.raises(KafkaTimeoutError):
        first.wait(100)
    other = "begin_abort" if operation == "begin_commit" else "begin_commit"
    for refused in (other, "begin_transaction", "init_transactions"):
        with pytest.raises(IllegalStateError, match=r"has not finished: call .* again"):
            getattr(harness.manager, refused)()
    with pytest.raises(IllegalStateError, match=r"send\(\) cannot be called now"):
        harness.send()
    assert getattr(harness.manager, operation)() is first
    harness.answer()
    getattr(harness.manager, operation)().wait(0)
    harness.begin()
    assert len(harness.client.asked) == 0


@pytest.mark.behaviour(
    "TransactionManager",
    "a call that timed out or was interrupted is resumed by the same call; any other is rejected",
)
def test_an_end_that_ended_behind_the_callers_back_is_still_the_same_call() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send()
    harness.acknowledge()
    with pytest.raises(KafkaTimeoutError):
        harness.manager.begin_commit().wait(1)
    harness.serve()
    assert harness.state is State.READY
    with pytest.raises(IllegalStateError, match=r"commit_transaction\(\) has not finished"):
        harness.manager.begin_transaction()
    harness.manager.begin_commit().wait(0)
    harness.manager.begin_transaction()


class InterruptedClock(VirtualClock):
    """A clock whose first wait raises KeyboardInterrupt."""

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        self.wait_for = super().wait_for  # type: ignore[method-assign]
        raise KeyboardInterrupt


@pytest.mark.behaviour(
    "TransactionManager",
    "a call that timed out or was interrupted is resumed by the same call; any other is rejected",
)
@VERSIONS
def test_a_commit_that_was_interrupted_is_taken_up_by_the_next_call(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    harness.manager._clock = InterruptedClock()
    result = harness.manager.begin_commit()
    with pytest.raises(KeyboardInterrupt):
        result.wait(1000)
    with pytest.raises(IllegalStateError, match=r"commit_transaction\(\) has not finished"):
        harness.manager.begin_abort()
    (ended,) = harness.serve()
    assert ended.committed
    assert harness.manager.begin_commit() is result
    result.wait(1000)
    harness.begin()


@VERSIONS
def test_a_commit_that_was_interrupted_before_the_network_thread_knew_of_it_is_whole(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    future = harness.send()
    harness.manager.begin_commit()
    assert harness.state is State.IN_TRANSACTION
    with pytest.raises(IllegalStateError, match=r"commit_transaction\(\) has not finished"):
        harness.send()
    harness.serve()
    harness.acknowledge(base_offset=0)
    harness.serve()
    harness.manager.begin_commit().wait(0)
    assert outcome(future) == 0


def test_an_error_between_the_call_and_its_beginning_is_the_calls() -> None:
    harness = TransactionHarness()
    harness.begin()
    result = harness.manager.begin_commit()
    harness.manager.fail_abortably(InvalidTopicError("t?"))
    harness.run()
    with pytest.raises(InvalidTopicError):
        result.wait(0)
    result = harness.manager.begin_abort()
    harness.run()
    result.wait(0)
