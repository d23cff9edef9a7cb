"""Waiting for the result of a transactional step: once, repeatedly, and with a timeout."""

from __future__ import annotations

import pytest

from kafkacore.errors import KafkaTimeoutError, ProducerFencedError
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.testing import VirtualClock


def result() -> TransactionalRequestResult:
    return TransactionalRequestResult("commit_transaction()", VirtualClock())


def test_a_wait_returns_when_it_is_done() -> None:
    waited_for = result()
    waited_for.done()
    waited_for.wait(0)
    assert waited_for.is_acknowledged


def test_a_wait_that_is_too_long_says_to_call_again_and_leaves_it_open() -> None:
    waited_for = result()
    with pytest.raises(KafkaTimeoutError, match=r"commit_transaction\(\).*max_block_ms=50; call it again"):
        waited_for.wait(50)
    assert not waited_for.is_acknowledged
    waited_for.done()
    waited_for.wait(50)
    assert waited_for.is_acknowledged


def test_a_failure_is_raised_anew_for_each_who_waits() -> None:
    waited_for = result()
    failure = ProducerFencedError("a second one")
    waited_for.fail(failure)
    for _ in range(2):
        with pytest.raises(ProducerFencedError, match="a second one") as raised:
            waited_for.wait(0)
        assert raised.value is not failure
        assert raised.value.__cause__ is failure


def test_the_first_outcome_stays() -> None:
    waited_for = result()
    waited_for.done()
    waited_for.fail(ProducerFencedError("too late"))
    waited_for.wait(0)
