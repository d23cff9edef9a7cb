"""The result of an operation that the network thread performs while a caller waits.

This is ``TransactionalRequestResult`` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, RLock

from kafkacore.clock import Clock
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.producer.transaction_state import same_class


class TransactionalRequestResult:
    """The outcome of one step of a transaction.

    Parameters
    ----------
    operation:
        The user's call, such as ``commit_transaction()``.
    clock:
        Measures the time that a caller waits.

    Attributes
    ----------
    is_acknowledged:
        Whether the outcome was returned to a caller. Until then, a user who repeats the call resumes the
        wait.
    """

    def __init__(self, operation: str, clock: Clock) -> None:
        self.operation = operation
        self.is_acknowledged = False
        self.is_completed = False
        self.error: KafkaError | None = None
        self._clock = clock
        # ``Clock.wait_for`` requires an RLock to handle Ctrl-C.
        self._completed = Condition(RLock())

    def done(self) -> None:
        """Complete the result with success, unless it is already complete."""
        self._complete(None)

    def fail(self, error: KafkaError) -> None:
        """Complete the result with an error, unless it is already complete."""
        self._complete(error)

    def _complete(self, error: KafkaError | None) -> None:
        with self._completed:
            if not self.is_completed:
                self.error = error
                self.is_completed = True
                self._completed.notify_all()

    def wait(self, timeout_ms: float) -> None:
        """Wait for the outcome.

        Raises
        ------
        KafkaTimeoutError
            The operation has not finished after ``timeout_ms``, and continues. A user who repeats the call
            waits for the operation again.
        KafkaError
            The error with which the operation failed.
        """
        with self._completed:
            if not self._clock.wait_for(self._completed, lambda: self.is_completed, timeout_ms):
                raise KafkaTimeoutError(
                    f"{self.operation} has not finished after max_block_ms={timeout_ms:g}; call it again to "
                    "wait for it"
                )
        self.is_acknowledged = True
        if self.error is not None:
            raise same_class(self.error, _text(self.error)) from self.error


@dataclass(slots=True)
class PendingCall:
    """A call of the user whose outcome has not been returned yet."""

    result: TransactionalRequestResult
    begin: Callable[[TransactionalRequestResult], None]
    has_begun: bool = False


def _text(error: KafkaError) -> str:
    return str(error.args[0]) if error.args else ""
