"""The states of a transactional producer and the transitions between them.

States and transitions are those of Apache Kafka 4.3's ``TransactionManager.State`` (KIP-98, 360).
"""

from __future__ import annotations

from enum import Enum

from kafkacore.errors import IllegalStateError, KafkaError


class State(Enum):
    """State of a transactional producer. The value describes the state in messages."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING_TRANSACTION = "committing"
    ABORTING_TRANSACTION = "aborting"
    ABORTABLE_ERROR = "in a transaction that has failed"
    FATAL_ERROR = "in a fatal error state"


#: State → the previous states that it may follow. FATAL_ERROR may follow any state and is final.
REACHED_FROM: dict[State, frozenset[State]] = {
    State.UNINITIALIZED: frozenset({State.READY, State.ABORTABLE_ERROR}),
    State.INITIALIZING: frozenset(
        {State.UNINITIALIZED, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION}
    ),
    State.READY: frozenset({State.INITIALIZING, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION}),
    State.IN_TRANSACTION: frozenset({State.READY}),
    State.COMMITTING_TRANSACTION: frozenset({State.IN_TRANSACTION}),
    State.ABORTING_TRANSACTION: frozenset({State.IN_TRANSACTION, State.ABORTABLE_ERROR}),
    State.ABORTABLE_ERROR: frozenset(
        {State.IN_TRANSACTION, State.COMMITTING_TRANSACTION, State.ABORTABLE_ERROR, State.INITIALIZING}
    ),
    State.FATAL_ERROR: frozenset(State),
}

#: State → advice for a user whose call is not allowed in that state.
WHAT_TO_DO = {
    State.UNINITIALIZED: "call init_transactions() first",
    State.INITIALIZING: "init_transactions() has not finished; call it again until it returns",
    State.READY: "no transaction is open; call begin_transaction() first",
    State.IN_TRANSACTION: (
        "a transaction is open; end it with commit_transaction() or abort_transaction() first"
    ),
    State.COMMITTING_TRANSACTION: (
        "the transaction is being committed; call commit_transaction() again until it returns"
    ),
    State.ABORTING_TRANSACTION: (
        "the transaction is being aborted; call abort_transaction() again until it returns"
    ),
    State.ABORTABLE_ERROR: "the transaction has failed; call abort_transaction() first",
    State.FATAL_ERROR: "the producer has failed; close it",
}


class TransactionState:
    """A state with the error that led to it.

    Attributes
    ----------
    error:
        In an error state, the first error that led to it; otherwise ``None``.
    """

    def __init__(self, transactional_id: str) -> None:
        self.current = State.UNINITIALIZED
        self.error: KafkaError | None = None
        self._transactional_id = transactional_id

    @property
    def is_completing(self) -> bool:
        return self.current in (State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION)

    @property
    def has_error(self) -> bool:
        return self.current in (State.ABORTABLE_ERROR, State.FATAL_ERROR)

    @property
    def is_ongoing(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return (
            self.is_completing
            or self.current is State.IN_TRANSACTION
            or self.current is State.ABORTABLE_ERROR
        )

    def may_become(self, target: State) -> bool:
        return self.current in REACHED_FROM[target]

    def become(self, target: State, error: KafkaError | None = None) -> None:
        """Change the state. The transition must be in :data:`REACHED_FROM`.

        Parameters
        ----------
        error:
            Reason for an error state. The first reason is kept, because later reasons are mostly consequences
            of the first.
        """
        assert self.may_become(target), f"{self.current.name} cannot become {target.name}"
        if target not in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            self.error = None
        elif self.current is not target:
            assert error is not None, "the error state has no error"
            self.error = error
        self.current = target

    def check(self, operation: str, target: State) -> None:
        """Reject a user's call if it needs a transition to ``target`` that is not allowed.

        Raises
        ------
        IllegalStateError
            The transition is not allowed. The message says what to do first.
        """
        if not self.may_become(target):
            self.refuse(operation)

    def refuse(self, operation: str) -> None:
        """Raise the error of a call that is not allowed in this state."""
        what_to_do = WHAT_TO_DO[self.current]
        if self.current is State.READY and operation == "init_transactions()":
            what_to_do = "init_transactions() has been called already; call begin_transaction() next"
        raise IllegalStateError(
            f"{operation} cannot be called now, because transactional_id={self._transactional_id!r} is "
            f"{self.current.value}: {what_to_do}"
        )

    def raise_error(self) -> None:
        """In an error state, raise an error that has the class of :attr:`error` and says what to do.

        Raises
        ------
        KafkaError
            The state is an error state. The cause of the raised error is :attr:`error`.
        """
        error = self.error
        if error is None or not self.has_error:
            return
        if self.current is State.ABORTABLE_ERROR:
            what_to_do = "the transaction has failed; call abort_transaction(), then begin a new transaction"
        else:
            what_to_do = "the producer has failed; close it"
        raise same_class(error, f"{what_to_do} ({error})") from error


def same_class(error: KafkaError, text: str) -> KafkaError:
    """Return a new error of the class of ``error``. Raising one object twice would mix up its tracebacks."""
    copy = type(error)(text)
    copy.possibly_persisted = error.possibly_persisted
    return copy
