"""Numbers of batches in transactions: errors that without them begin a new epoch end the transaction instead.

What the brokers say of a batch in; whether it goes again, and with which numbers the next ones, out. Source:
Apache Kafka 4.3's ``TransactionManager.canRetry`` and ``handleFailedBatch``. Does not know: states, requests.
"""

from __future__ import annotations

from kafkacore.errors import KafkaError, OutOfOrderSequenceNumberError, UnknownProducerIdError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.idempotence import IdempotenceManager


class TransactionalSequences(IdempotenceManager):
    """The numbers of a transactional producer's batches."""

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Unlike without transactions, what only a new epoch can cure ends the transaction."""
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is not None and isinstance(error, OutOfOrderSequenceNumberError):
            return batch.topic_partition not in self._unresolved and (
                batch.sequence_has_been_reset or batch.base_sequence != sequences.expected
            )
        if sequences is not None and isinstance(error, UnknownProducerIdError):
            if log_start_offset < 0 or batch.sequence_has_been_reset:
                return True
            if sequences.last_offset < log_start_offset:
                # Retention took all that the broker knew this producer by: it begins at 0 there.
                sequences.start_at_beginning(self.producer_id, self.producer_epoch)
                return True
            return False
        return error.retriable

    def take_out(self, batch: ProducerBatch, error: KafkaError, *, has_epochs: bool) -> None:
        """The batch is given up.

        Parameters
        ----------
        has_epochs:
            The next transaction can begin with numbers anew. Without (Kafka before 2.5) those that no broker
            has seen are taken back.
        """
        if has_epochs or not self._leaves_no_gap(batch, error):
            self._give_up(batch)

    def _leaves_no_gap(self, batch: ProducerBatch, error: KafkaError) -> bool:
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is None or not batch.has_sequence:
            return False
        if isinstance(error, UnknownProducerIdError):
            # Nothing is known of the others either: all begin at 0 again.
            sequences.forget()
            return True
        if batch.possibly_persisted or sequences.in_flight != [batch]:
            return False
        sequences.remove(batch)
        sequences.next = batch.base_sequence
        return True
