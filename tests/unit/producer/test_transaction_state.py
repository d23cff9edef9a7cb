"""Transaction states, as in Apache Kafka 4.3's TransactionManager, and errors of calls in the wrong state."""

from __future__ import annotations

import pytest

from kafkacore.errors import IllegalStateError, KafkaError, ProducerFencedError, UnknownProducerIdError
from kafkacore.producer.transaction_state import REACHED_FROM, State, TransactionState

#: Letters for the states. The table is from Kafka 4.3.1 (``TransactionManager$State.isTransitionValid``).
LETTERS = dict(zip("UIRTCAEF", State, strict=True))
JAVA = {"U": "RE", "I": "UCA", "R": "ICA", "T": "R", "C": "T", "A": "TE", "E": "TCEI", "F": "UIRTCAEF"}


def in_state(target: State, error: KafkaError | None = None) -> TransactionState:
    state = TransactionState("pay")
    state.current = target
    state.error = error
    return state


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
@pytest.mark.parametrize("target", JAVA)
def test_the_table_of_changes_is_javas(target: str) -> None:
    assert REACHED_FROM[LETTERS[target]] == {LETTERS[source] for source in JAVA[target]}


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize("target", State)
def test_only_changes_of_the_table_are_made(source: State, target: State) -> None:
    state = in_state(source)
    if source in REACHED_FROM[target]:
        state.become(target, KafkaError("why"))
        assert state.current is target
    else:
        with pytest.raises(AssertionError, match=target.name):
            state.become(target, KafkaError("why"))


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
@pytest.mark.parametrize("source", [state for state in State if state is not State.READY])
def test_a_call_that_is_not_allowed_says_what_to_do(source: State) -> None:
    with pytest.raises(IllegalStateError, match=r"transactional_id='pay' is .*: .*\w+") as refusal:
        in_state(source).check("begin_transaction()", State.IN_TRANSACTION)
    assert str(refusal.value).startswith("begin_transaction() cannot be called now")


def test_a_second_init_transactions_is_told_to_go_on() -> None:
    with pytest.raises(IllegalStateError, match="has been called already; call begin_transaction"):
        in_state(State.READY).refuse("init_transactions()")


def test_the_first_error_of_a_transaction_stays_and_a_fatal_one_takes_its_place() -> None:
    state = in_state(State.IN_TRANSACTION)
    first, second, fatal = KafkaError("first"), KafkaError("second"), ProducerFencedError("fatal")
    state.become(State.ABORTABLE_ERROR, first)
    state.become(State.ABORTABLE_ERROR, second)
    assert state.error is first
    state.become(State.FATAL_ERROR, fatal)
    assert state.error is fatal


def test_an_error_is_forgotten_with_its_state() -> None:
    state = in_state(State.ABORTABLE_ERROR, KafkaError("gone"))
    state.become(State.ABORTING_TRANSACTION)
    assert state.error is None
    state.raise_error()


def test_an_error_is_raised_anew_by_its_class_with_what_to_do() -> None:
    original = UnknownProducerIdError("partition t-0")
    with pytest.raises(UnknownProducerIdError, match=r"call abort_transaction\(\).*partition t-0") as raised:
        in_state(State.ABORTABLE_ERROR, original).raise_error()
    assert raised.value is not original
    assert raised.value.__cause__ is original


def test_a_fatal_error_says_that_the_producer_is_to_be_closed() -> None:
    with pytest.raises(ProducerFencedError, match="close it"):
        in_state(State.FATAL_ERROR, ProducerFencedError("another one")).raise_error()
