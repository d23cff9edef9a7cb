"""Decide whether the records of a failed produce request may be in the log."""

from __future__ import annotations

from kafkacore import errors
from kafkacore.errors import KafkaError

#: Errors with which the broker rejects a batch before it is written, for any ``acks``.
REJECTED = (
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
#: Errors of a broker that is not, or no longer, the leader. With ``acks`` 0 and 1, the broker has not written
#: the batch. With ``acks="all"``, the broker may have written the batch and lost leadership while it waited
#: for the replicas. In this case the new leader may have the batch.
REJECTED_UNLESS_REPLICATING = (
    errors.NotLeaderForPartitionError,
    errors.UnknownTopicOrPartitionError,
    errors.LeaderNotAvailableError,
    errors.FencedLeaderEpochError,
    errors.UnknownLeaderEpochError,
)


def may_be_written(error: KafkaError, acks: int) -> bool:
    """Return whether a batch may be in the log although it failed with ``error``."""
    if isinstance(error, REJECTED):
        return False
    return acks == -1 or not isinstance(error, REJECTED_UNLESS_REPLICATING)


def produce_error(error: KafkaError, possibly_persisted: bool) -> KafkaError:
    """Record in ``error`` and its notes whether the record may be in the log; return ``error``."""
    error.possibly_persisted = possibly_persisted
    error.add_note(
        "The record may be in the log nevertheless: its outcome is unknown."
        if possibly_persisted
        else "The record is not in the log."
    )
    return error
