"""Where a transactional producer stands, and what it may do from there: calls in, a state or a sentence out.

Source: Apache Kafka 4.3's ``TransactionManager.State`` (KIP-98, 360). Does not know: requests, batches,
threads.
"""

from __future__ import annotations

from enum import Enum

from kafkacore.errors import IllegalStateError, KafkaError


class State(Enum):
    """Of a transactional producer."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING_TRANSACTION = "committing"
    ABORTING_TRANSACTION = "aborting"
    ABORTABLE_ERROR = "in a transaction that has failed"
    FATAL_ERROR = "at its end"


#: State → those that lead to it. FATAL_ERROR can come from anywhere, and nothing comes after it.
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

#: What a user has to do first who called something that the state does not allow.
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
    State.FATAL_ERROR: "this producer cannot go on; close it",
}


class TransactionState:
    """A state with the error that led to it.

    Attributes
    ----------
    error:
        Of the two error states, what led there first; ``None`` in the others.
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
        """Change by our own doing; one that is not in the table is a bug of ours.

        Parameters
        ----------
        error:
            Why, for an error state. The first one stays: what follows is mostly its consequence.
        """
        assert self.may_become(target), f"{self.current.name} cannot become {target.name}"
        if target not in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            self.error = None
        elif self.current is not target:
            assert error is not None, "an error state has an error"
            self.error = error
        self.current = target

    def check(self, operation: str, target: State) -> None:
        """Refuse a user's call that would need to change to ``target`` and may not.

        Raises
        ------
        IllegalStateError
            With a sentence that says what to do first.
        """
        if not self.may_become(target):
            self.refuse(operation)

    def refuse(self, operation: str) -> None:
        """Raise the error of a call that this state does not allow."""
        what_to_do = WHAT_TO_DO[self.current]
        if self.current is State.READY and operation == "init_transactions()":
            what_to_do = "it has been called already; go on with begin_transaction()"
        raise IllegalStateError(
            f"{operation} cannot be called now, for transactional_id={self._transactional_id!r} is "
            f"{self.current.value}: {what_to_do}"
        )

    def raise_error(self) -> None:
        """In an error state, raise its error: a new one of the same class, with what to do.

        Raises
        ------
        KafkaError
            Of the class of :attr:`error`, which is its cause.
        """
        error = self.error
        if error is None or not self.has_error:
            return
        if self.current is State.ABORTABLE_ERROR:
            what_to_do = "the transaction has failed; call abort_transaction(), then begin it again"
        else:
            what_to_do = "this producer cannot go on; close it"
        raise same_class(error, f"{what_to_do} ({error})") from error


def same_class(error: KafkaError, text: str) -> KafkaError:
    """A new error of the class of ``error``, since raising one twice mixes up its tracebacks."""
    copy = type(error)(text)
    copy.possibly_persisted = error.possibly_persisted
    return copy
