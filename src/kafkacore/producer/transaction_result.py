"""What a call waits for that the network thread has to do: completed there once, waited for here.

Source: Apache Kafka's ``TransactionalRequestResult``. Does not know: what is done.
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
        The user's call, as ``commit_transaction()``.
    clock:
        Of the wait.

    Attributes
    ----------
    is_acknowledged:
        Whether a caller has learnt the outcome. Until then the same call takes it up again.
    """

    def __init__(self, operation: str, clock: Clock) -> None:
        self.operation = operation
        self.is_acknowledged = False
        self.is_completed = False
        self.error: KafkaError | None = None
        self._clock = clock
        # Of an RLock, so that Ctrl-C in a wait leaves it as Clock.wait_for says.
        self._completed = Condition(RLock())

    def done(self) -> None:
        """It went well; nothing after the first outcome."""
        self._complete(None)

    def fail(self, error: KafkaError) -> None:
        """It did not; nothing after the first outcome."""
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
            There is none after ``timeout_ms``. It goes on; the same call again waits for it again.
        KafkaError
            Why it failed.
        """
        with self._completed:
            if not self._clock.wait_for(self._completed, lambda: self.is_completed, timeout_ms):
                raise KafkaTimeoutError(
                    f"{self.operation} has not finished after max_block_ms={timeout_ms:g}; call it again: "
                    "it takes up what it began"
                )
        self.is_acknowledged = True
        if self.error is not None:
            raise same_class(self.error, _text(self.error)) from self.error


@dataclass(slots=True)
class PendingCall:
    """What a user's call asked for, until he has seen its end."""

    result: TransactionalRequestResult
    begin: Callable[[TransactionalRequestResult], None]
    has_begun: bool = False


def _text(error: KafkaError) -> str:
    return str(error.args[0]) if error.args else ""
