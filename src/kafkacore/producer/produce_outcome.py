"""What an error of a produce request says of the records: try again or not, in the log or not.

An error in, a decision out. Does not know: batches, requests.
"""

from __future__ import annotations

from kafkacore import errors
from kafkacore.errors import KafkaError

#: Answers by which the broker says that it refused the batch before writing it, whatever ``acks`` is.
REFUSED = (
    errors.CorruptRecordError,
    errors.MessageSizeTooLargeError,
    errors.InvalidTopicError,
    errors.RecordListTooLargeError,
    errors.NotEnoughReplicasError,
    errors.InvalidRequiredAcksError,
    errors.AuthorizationError,
    errors.InvalidTimestampError,
    errors.UnsupportedVersionError,
    errors.InvalidRequestError,
    errors.UnsupportedForMessageFormatError,
    errors.PolicyViolationError,
    errors.UnsupportedCompressionTypeError,
    errors.InvalidRecordError,
    errors.UnknownTopicIdError,
    errors.InconsistentTopicIdError,
    errors.ThrottlingQuotaExceededError,
    errors.OutOfOrderSequenceNumberError,
    errors.UnknownProducerIdError,
    errors.InvalidProducerEpochError,
    errors.ProducerFencedError,
    errors.InvalidTxnStateError,
    errors.InvalidProducerIdMappingError,
    errors.ConcurrentTransactionsError,
)
#: The leader moved away, or its partition went: before writing with ``acks`` 0 and 1, but with
#: ``acks="all"`` it may also have been while the written batch waited for its replicas, and then the new
#: leader may have it.
REFUSED_UNLESS_REPLICATING = (
    errors.NotLeaderForPartitionError,
    errors.UnknownTopicOrPartitionError,
    errors.LeaderNotAvailableError,
    errors.FencedLeaderEpochError,
    errors.UnknownLeaderEpochError,
)


def may_be_written(error: KafkaError, acks: int) -> bool:
    """Whether a batch that was answered with ``error`` may be in the log all the same."""
    if isinstance(error, REFUSED):
        return False
    return acks == -1 or not isinstance(error, REFUSED_UNLESS_REPLICATING)


def produce_error(error: KafkaError, possibly_persisted: bool) -> KafkaError:
    """``error``, saying so by its attribute and in its text."""
    error.possibly_persisted = possibly_persisted
    error.add_note(
        "The record may be in the log all the same: its outcome was not learnt."
        if possibly_persisted
        else "The record is not in the log."
    )
    return error
