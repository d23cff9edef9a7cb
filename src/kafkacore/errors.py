"""Every error that kafkacore raises: one class per broker error code, and the errors of the client itself.

:func:`for_code` returns the class of a code. The class names are those of kafka-python. The error codes,
their names, and whether an error is retriable or requires new metadata, are those of
``org.apache.kafka.common.protocol.Errors`` in Apache Kafka 4.3.

An ``AssertionError`` indicates a bug in kafkacore. :class:`CorruptRecordError`,
:class:`MalformedMessageError` and :class:`InvalidReceiveError` report received bytes that violate a format.
Subclasses of :class:`BrokerResponseError` are errors that a broker reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from kafkacore.structs import printable

if TYPE_CHECKING:
    from kafkacore.structs import OffsetAndMetadata, TopicPartition


class KafkaError(Exception):
    """Root of every error raised by kafkacore."""

    #: Whether a retry after a back-off may succeed.
    retriable: ClassVar[bool] = False
    #: Whether the cluster metadata that the request was based on is stale and has to be refreshed before a
    #: retry.
    invalid_metadata: ClassVar[bool] = False
    #: Whether the record may be in the log although the send failed, because no response arrived.
    possibly_persisted: bool = False


class RetriableError(KafkaError):
    """An error that may disappear when the operation is repeated after a pause."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """The client's metadata is out of date. The client fetches new metadata before it retries."""

    invalid_metadata = True


# ---- The client's own ------------------------------------------------------------------------------------
class Cancelled(RetriableError):
    """A request was cancelled before its response arrived, because the connection was closed. Retry it."""


class CommitFailedError(KafkaError):
    """The offsets were not committed, because the consumer was removed from its group.

    Other members now own the partitions of this consumer and may read the same records again. If processing
    takes too long, raise ``max_poll_interval_ms``, lower ``max_poll_records``, or use ``hold()``.
    """


class ConsumerTimeout(KafkaError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class IllegalArgumentError(KafkaError):
    """A method was called with an argument that is not valid. Correct the call."""


class IllegalStateError(KafkaError):
    """A method was called in the wrong state, such as ``subscribe()`` after ``assign()``.

    Correct the order of the calls. A closed client raises this too.
    """


class ConsumerStoppedError(IllegalStateError):
    """``stop()`` was called on an asynchronous consumer, which ends its calls that wait for records."""


class IllegalOperation(IllegalStateError):
    """A method of an asynchronous client needs a setting that is missing, such as ``group_id``."""


class KafkaConfigurationError(KafkaError):
    """A setting is unknown or has an invalid value.

    The message names the setting and the values that it may have.
    """


class KafkaConnectionError(InvalidMetadataError):
    """A connection to a broker could not be made, or was closed.

    Check the address, the network and the broker.
    """


class KafkaTimeoutError(RetriableError):
    """An operation did not finish within its time limit.

    It is unknown whether the broker has executed the operation. Check that the brokers can be reached, or
    raise the limit that the message names.
    """


class MalformedRecordError(KafkaError):
    """A key or a value cannot be decoded, and ``mode`` is ``FAILFAST``.

    The message names the topic, partition, offset and reason. It starts with the name of Spark's error,
    ``MALFORMED_RECORD_IN_PARSING``.
    """


class MetadataEmptyBrokerList(RetriableError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class NoBrokersAvailable(KafkaTimeoutError):
    """No broker in ``bootstrap_servers`` could be reached within the time limit.

    Check the addresses, the network, and that ``security_protocol`` is that of the listener.
    """


class NodeNotReadyError(RetriableError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class QuotaViolationError(KafkaError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class RetriableCommitFailedError(RetriableError):
    """The offsets were not committed, because of an error that may disappear. Call ``commit()`` again."""


class SchemaRegistryError(RetriableError):
    """The schema registry did not respond, or its response is not a schema. A retry may succeed."""


class SerializationError(KafkaError):
    """A serializer or deserializer failed.

    Correct the data or the function. The cause is in ``__cause__``.
    """


class StaleMetadata(InvalidMetadataError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class TooManyInFlightRequests(RetriableError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class TransactionAbortedError(KafkaError):
    """A record was not sent, because its transaction was aborted. Send it again in a new transaction."""


class UnknownBrokerIdError(KafkaError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class UnrecognizedBrokerVersion(KafkaError):
    """Kept for programs that were written for kafka-python. Nothing raises it."""


class UnsupportedCodecError(KafkaError):
    """A batch is compressed with an unknown codec. Read it with a newer version of kafkacore."""


class WakeupError(KafkaError):
    """``wakeup()`` was called on a consumer that waits in ``poll()`` or another method.

    Catch this error to end a loop.
    """


class AuthenticationFailedError(KafkaError):
    """Authentication failed: the credentials are missing or not valid.

    Check the user, the password, the token or the certificate. On the server, ``answer`` is the response to
    send before the connection is closed, as a list of byte strings.
    """

    answer: list[bytes] | None = None


class CredentialsUnavailableError(RetriableError, AuthenticationFailedError):
    """The client has no valid token or ticket at the moment. A later attempt to connect may succeed."""


class SslAuthenticationError(AuthenticationFailedError):
    """The TLS handshake failed. Check the certificates, the host name, and that the listener uses TLS."""


class SilentTlsPeerError(RetriableError, SslAuthenticationError):
    """The broker closed the connection when the TLS handshake began: it is stopping, or does not use TLS."""


# ---- Bytes from outside that break a rule ----------------------------------------------------------------
class KafkaProtocolError(KafkaError):
    """A peer sent bytes that break Kafka's protocol. Check that the port belongs to a Kafka broker."""


class MalformedMessageError(KafkaProtocolError):
    """A request or a response cannot be decoded. The connection is closed."""


class CorrelationIdError(RetriableError, KafkaProtocolError):
    """A response does not belong to the oldest request in flight.

    The connection is closed and the request retried.
    """


class InvalidReceiveError(KafkaProtocolError):
    """A peer sent a frame whose size, ``frame_size``, is not valid. Check the port."""

    frame_size: int = 0


class BrokerResponseError(KafkaError):
    """An error that a broker reports. ``errno`` is the error code, and ``message`` is Kafka's error name."""

    errno: ClassVar[int] = -1
    message: ClassVar[str] = ""

    def __init_subclass__(cls, errno: int | None = None, code_name: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if errno is not None:
            cls.errno = errno
            cls.message = code_name

    def __str__(self) -> str:
        # The text may come from the broker.
        detail = printable(super().__str__())
        if not self.message:
            # Only general classes such as AuthorizationError have no error name. They are raised for several
            # errors of a broker together, or for errors without a code.
            return detail or type(self).__name__
        return f"[Error {self.errno}] {self.message}" + (f": {detail}" if detail else "")


class CorruptRecordError(RetriableError, BrokerResponseError, errno=2, code_name="CORRUPT_MESSAGE"):
    """A batch of records is damaged: its format or its checksum is wrong.

    To skip the batch, seek to an offset after it.

    Parameters
    ----------
    reason:
        Description of the damage, such as ``"length 12 < 61"``.
    topic_partition:
        The partition, if it is known.
    offset:
        The first offset of the batch; ``None`` if it could not be read.
    """

    def __init__(
        self, reason: str = "", topic_partition: TopicPartition | None = None, offset: int | None = None
    ) -> None:
        self.reason = reason
        self.topic_partition = topic_partition
        self.offset = offset
        place = [str(topic_partition)] if topic_partition is not None else []
        place += [f"offset {offset}"] if offset is not None else []
        super().__init__(f"{reason} (at {', '.join(place)})" if place else reason)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.topic_partition, self.offset), self.__dict__


class DecompressedTooLargeError(CorruptRecordError):
    """The decompressed batch is larger than ``max_decompressed_size``. Raise this limit if necessary."""


class OffsetOutOfRangeError(BrokerResponseError, errno=1, code_name="OFFSET_OUT_OF_RANGE"):
    """The offset is not in the log. The records may have been deleted.

    ``partitions`` maps each affected partition to the consumer's position. Seek to another offset, or set
    ``auto_offset_reset``.
    """

    partitions: Mapping[TopicPartition, int] = MappingProxyType({})


class NoOffsetForPartitionError(KafkaError):
    """No offset is committed for ``partitions``, and ``auto_offset_reset`` is ``none``. Call ``seek()``."""

    partitions: frozenset[TopicPartition] = frozenset()


class LogTruncationError(KafkaError):
    """The log was truncated: records that the consumer has read are no longer in it (KIP-320).

    ``divergent_offsets`` maps each partition to the first offset at which the log differs from the records
    read; seek to that offset. The value is ``None`` if the broker does not know the offset.
    """

    divergent_offsets: Mapping[TopicPartition, OffsetAndMetadata | None] = MappingProxyType({})


# ---- One class per broker error code, in the order of the codes ------------------------------------------
class AuthorizationError(BrokerResponseError):
    """The client's user lacks a right. Grant it with ``kafkacore acls add``, or use another user."""


class UnknownError(BrokerResponseError, errno=-1, code_name="UNKNOWN_SERVER_ERROR"):
    """The broker reports an error without a specific code. The broker's log has the cause."""


class NoError(BrokerResponseError, errno=0, code_name="NONE"):
    """Code 0 stands for success."""


class UnknownTopicOrPartitionError(
    InvalidMetadataError, BrokerResponseError, errno=3, code_name="UNKNOWN_TOPIC_OR_PARTITION"
):
    """The topic or the partition does not exist on this broker.

    Check the name, or create the topic. For a new topic, the error disappears when all brokers know the
    topic.
    """


class InvalidFetchRequestError(BrokerResponseError, errno=4, code_name="INVALID_FETCH_SIZE"):
    """The requested size of a fetch is not valid."""


class LeaderNotAvailableError(
    InvalidMetadataError, BrokerResponseError, errno=5, code_name="LEADER_NOT_AVAILABLE"
):
    """The partition has no leader, for example during an election. The client retries."""


class NotLeaderForPartitionError(
    InvalidMetadataError, BrokerResponseError, errno=6, code_name="NOT_LEADER_OR_FOLLOWER"
):
    """The broker is not the leader of the partition, or not a replica of it.

    The client fetches new metadata and retries.
    """


class RequestTimedOutError(RetriableError, BrokerResponseError, errno=7, code_name="REQUEST_TIMED_OUT"):
    """The broker did not finish the request within its time limit.

    With ``acks="all"``, the replicas may not have written the records in time. The client retries.
    """


class BrokerNotAvailableError(BrokerResponseError, errno=8, code_name="BROKER_NOT_AVAILABLE"):
    """The broker is not available."""


class ReplicaNotAvailableError(
    InvalidMetadataError, BrokerResponseError, errno=9, code_name="REPLICA_NOT_AVAILABLE"
):
    """The replica is not available on this broker. The client fetches new metadata and retries."""


class MessageSizeTooLargeError(BrokerResponseError, errno=10, code_name="MESSAGE_TOO_LARGE"):
    """The record or batch is larger than the broker, the topic or ``max_request_size`` allows.

    Send smaller records, compress them, or raise ``message.max.bytes``, ``max.message.bytes`` or
    ``max_request_size``.
    """


class StaleControllerEpochError(BrokerResponseError, errno=11, code_name="STALE_CONTROLLER_EPOCH"):
    """The epoch of the controller has changed. Only brokers receive this error."""


class OffsetMetadataTooLargeError(BrokerResponseError, errno=12, code_name="OFFSET_METADATA_TOO_LARGE"):
    """The metadata text of a committed offset is longer than ``offset.metadata.max.bytes``. Shorten it."""


class NetworkExceptionError(
    InvalidMetadataError, BrokerResponseError, errno=13, code_name="NETWORK_EXCEPTION"
):
    """The broker disconnected before it sent a response. The client retries."""


class CoordinatorLoadInProgressError(
    RetriableError, BrokerResponseError, errno=14, code_name="COORDINATOR_LOAD_IN_PROGRESS"
):
    """The coordinator is still loading the state of its groups or transactions. The client retries."""


class CoordinatorNotAvailableError(
    RetriableError, BrokerResponseError, errno=15, code_name="COORDINATOR_NOT_AVAILABLE"
):
    """The group or transaction has no coordinator at the moment. The client repeats the lookup."""


class NotCoordinatorError(RetriableError, BrokerResponseError, errno=16, code_name="NOT_COORDINATOR"):
    """The broker is not the coordinator of the group or transaction. The client repeats the lookup."""


class InvalidTopicError(BrokerResponseError, errno=17, code_name="INVALID_TOPIC_EXCEPTION"):
    """The name of the topic is not valid, or the topic is internal.

    A name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'.
    """


class RecordListTooLargeError(BrokerResponseError, errno=18, code_name="RECORD_LIST_TOO_LARGE"):
    """The batch is larger than the segment size of the log. Send smaller batches."""


class NotEnoughReplicasError(RetriableError, BrokerResponseError, errno=19, code_name="NOT_ENOUGH_REPLICAS"):
    """Fewer replicas are in sync than ``min.insync.replicas`` demands, and nothing was written.

    The client retries. Check the brokers.
    """


class NotEnoughReplicasAfterAppendError(
    RetriableError, BrokerResponseError, errno=20, code_name="NOT_ENOUGH_REPLICAS_AFTER_APPEND"
):
    """The records were written, but fewer replicas are in sync than ``min.insync.replicas`` demands.

    The client retries; idempotence prevents duplicates.
    """


class InvalidRequiredAcksError(BrokerResponseError, errno=21, code_name="INVALID_REQUIRED_ACKS"):
    """The value of ``acks`` is not valid. Use 0, 1 or ``all``."""


class IllegalGenerationError(BrokerResponseError, errno=22, code_name="ILLEGAL_GENERATION"):
    """The generation of the group has changed. The consumer joins the group again."""


class InconsistentGroupProtocolError(BrokerResponseError, errno=23, code_name="INCONSISTENT_GROUP_PROTOCOL"):
    """The member supports none of the assignors or protocols of the other members.

    Give all members a common ``partition_assignment_strategy``.
    """


class InvalidGroupIdError(BrokerResponseError, errno=24, code_name="INVALID_GROUP_ID"):
    """The name of the group is not valid. It must not be empty."""


class UnknownMemberIdError(BrokerResponseError, errno=25, code_name="UNKNOWN_MEMBER_ID"):
    """The coordinator does not know this member, for example after a session timeout.

    The consumer joins the group again.
    """


class InvalidSessionTimeoutError(BrokerResponseError, errno=26, code_name="INVALID_SESSION_TIMEOUT"):
    """``session_timeout_ms`` is outside of the broker's limits.

    The limits are ``group.min.session.timeout.ms`` and ``group.max.session.timeout.ms``.
    """


class RebalanceInProgressError(BrokerResponseError, errno=27, code_name="REBALANCE_IN_PROGRESS"):
    """The group is rebalancing. Call ``poll()``, so that the consumer can join the group again."""


class InvalidCommitOffsetSizeError(BrokerResponseError, errno=28, code_name="INVALID_COMMIT_OFFSET_SIZE"):
    """The data of the committed offset is too large."""


class TopicAuthorizationFailedError(AuthorizationError, errno=29, code_name="TOPIC_AUTHORIZATION_FAILED"):
    """The user may not do this operation on the topic. Grant the right with ``kafkacore acls add``."""


class GroupAuthorizationFailedError(AuthorizationError, errno=30, code_name="GROUP_AUTHORIZATION_FAILED"):
    """The user may not use this group. Grant ``read`` on the group."""


class ClusterAuthorizationFailedError(AuthorizationError, errno=31, code_name="CLUSTER_AUTHORIZATION_FAILED"):
    """The user lacks a right on the cluster. Grant it with ``kafkacore acls add --cluster``."""


class InvalidTimestampError(BrokerResponseError, errno=32, code_name="INVALID_TIMESTAMP"):
    """The timestamp of a record is outside of the range that the topic accepts."""


class UnsupportedSaslMechanismError(
    AuthenticationFailedError, BrokerResponseError, errno=33, code_name="UNSUPPORTED_SASL_MECHANISM"
):
    """The listener does not offer this SASL mechanism. Choose another ``sasl_mechanism``."""


class IllegalSaslStateError(
    AuthenticationFailedError, BrokerResponseError, errno=34, code_name="ILLEGAL_SASL_STATE"
):
    """A request is not valid in this state of the authentication.

    Check that ``security_protocol`` is that of the listener.
    """


class UnsupportedVersionError(BrokerResponseError, errno=35, code_name="UNSUPPORTED_VERSION"):
    """The broker does not support the request, or only versions of it that the client does not support.

    Use a newer broker, or do not use the feature.
    """


class TopicAlreadyExistsError(BrokerResponseError, errno=36, code_name="TOPIC_ALREADY_EXISTS"):
    """A topic of this name exists already."""


class InvalidPartitionsError(BrokerResponseError, errno=37, code_name="INVALID_PARTITIONS"):
    """The number of partitions is not valid. It must be at least 1, and cannot be reduced."""


class InvalidReplicationFactorError(BrokerResponseError, errno=38, code_name="INVALID_REPLICATION_FACTOR"):
    """The replication factor is not valid, or larger than the number of brokers."""


class InvalidReplicationAssignmentError(
    BrokerResponseError, errno=39, code_name="INVALID_REPLICA_ASSIGNMENT"
):
    """The assignment of replicas is not valid."""


class InvalidConfigurationError(BrokerResponseError, errno=40, code_name="INVALID_CONFIG"):
    """A configuration of a topic or broker is unknown or has an invalid value.

    The message has the reason.
    """


class NotControllerError(RetriableError, BrokerResponseError, errno=41, code_name="NOT_CONTROLLER"):
    """The broker is not the controller. The client sends the request to the controller."""


class InvalidRequestError(BrokerResponseError, errno=42, code_name="INVALID_REQUEST"):
    """The request is not valid. The message, or the log of the broker, has the reason."""


class UnsupportedForMessageFormatError(
    BrokerResponseError, errno=43, code_name="UNSUPPORTED_FOR_MESSAGE_FORMAT"
):
    """The message format of the topic does not support the operation."""


class PolicyViolationError(BrokerResponseError, errno=44, code_name="POLICY_VIOLATION"):
    """A policy of the cluster refuses the request. The message has the reason."""


class OutOfOrderSequenceNumberError(BrokerResponseError, errno=45, code_name="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """The broker expected another sequence number: records before this batch are missing.

    The producer can no longer guarantee the order. Close it and create a new producer.
    """


class DuplicateSequenceNumberError(BrokerResponseError, errno=46, code_name="DUPLICATE_SEQUENCE_NUMBER"):
    """The batch was written before. The client treats this as success."""


class InvalidProducerEpochError(BrokerResponseError, errno=47, code_name="INVALID_PRODUCER_EPOCH"):
    """A producer with the same id has a newer epoch. Abort the transaction."""


class InvalidTxnStateError(BrokerResponseError, errno=48, code_name="INVALID_TXN_STATE"):
    """The operation is not valid in this state of the transaction. Abort it."""


class InvalidProducerIdMappingError(BrokerResponseError, errno=49, code_name="INVALID_PRODUCER_ID_MAPPING"):
    """The transactional id is now mapped to another producer id.

    Close the producer and create a new producer.
    """


class InvalidTransactionTimeoutError(BrokerResponseError, errno=50, code_name="INVALID_TRANSACTION_TIMEOUT"):
    """``transaction_timeout_ms`` is larger than the broker's ``transaction.max.timeout.ms``. Lower it."""


class ConcurrentTransactionsError(
    RetriableError, BrokerResponseError, errno=51, code_name="CONCURRENT_TRANSACTIONS"
):
    """The previous transaction of this producer is still being completed. The client retries."""


class TransactionCoordinatorFencedError(
    BrokerResponseError, errno=52, code_name="TRANSACTION_COORDINATOR_FENCED"
):
    """A newer coordinator has taken over the transaction. Only brokers receive this error."""


class TransactionalIdAuthorizationFailedError(
    AuthorizationError, errno=53, code_name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
):
    """The user may not use this transactional id. Grant ``write`` and ``describe`` on it."""


class SecurityDisabledError(BrokerResponseError, errno=54, code_name="SECURITY_DISABLED"):
    """The cluster has no authorizer, and therefore no access control entries.

    Set ``authorizer.class.name``.
    """


class OperationNotAttemptedError(BrokerResponseError, errno=55, code_name="OPERATION_NOT_ATTEMPTED"):
    """The broker did not attempt the operation, because another part of the request failed."""


class KafkaStorageError(InvalidMetadataError, BrokerResponseError, errno=56, code_name="KAFKA_STORAGE_ERROR"):
    """The disk of the broker failed. The client fetches new metadata and retries. Check the broker."""


class LogDirNotFoundError(BrokerResponseError, errno=57, code_name="LOG_DIR_NOT_FOUND"):
    """The broker does not have the log directory."""


class SaslAuthenticationFailedError(
    AuthenticationFailedError, BrokerResponseError, errno=58, code_name="SASL_AUTHENTICATION_FAILED"
):
    """The credentials are not valid. Check the user, the password or the token, and the mechanism."""


class UnknownProducerIdError(BrokerResponseError, errno=59, code_name="UNKNOWN_PRODUCER_ID"):
    """The broker has no state of this producer, because its records were deleted.

    The client continues with a new epoch where that is safe.
    """


class ReassignmentInProgressError(BrokerResponseError, errno=60, code_name="REASSIGNMENT_IN_PROGRESS"):
    """The partitions are being reassigned. Repeat the request afterwards."""


class DelegationTokenAuthDisabledError(
    BrokerResponseError, errno=61, code_name="DELEGATION_TOKEN_AUTH_DISABLED"
):
    """Delegation tokens are not enabled on the cluster."""


class DelegationTokenNotFoundError(BrokerResponseError, errno=62, code_name="DELEGATION_TOKEN_NOT_FOUND"):
    """The delegation token does not exist."""


class DelegationTokenOwnerMismatchError(
    BrokerResponseError, errno=63, code_name="DELEGATION_TOKEN_OWNER_MISMATCH"
):
    """The user is neither owner nor renewer of the delegation token."""


class DelegationTokenRequestNotAllowedError(
    BrokerResponseError, errno=64, code_name="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
):
    """Delegation tokens cannot be managed over this connection. Authenticate by SASL or mutual TLS."""


class DelegationTokenAuthorizationFailedError(
    AuthorizationError, errno=65, code_name="DELEGATION_TOKEN_AUTHORIZATION_FAILED"
):
    """The user may not use this delegation token."""


class DelegationTokenExpiredError(BrokerResponseError, errno=66, code_name="DELEGATION_TOKEN_EXPIRED"):
    """The delegation token has expired. Create a new token."""


class InvalidPrincipalTypeError(BrokerResponseError, errno=67, code_name="INVALID_PRINCIPAL_TYPE"):
    """The type of the principal is not supported. Use ``User``."""


class NonEmptyGroupError(BrokerResponseError, errno=68, code_name="NON_EMPTY_GROUP"):
    """The group has members. Stop its consumers first."""


class GroupIdNotFoundError(BrokerResponseError, errno=69, code_name="GROUP_ID_NOT_FOUND"):
    """The group does not exist."""


class FetchSessionIdNotFoundError(
    RetriableError, BrokerResponseError, errno=70, code_name="FETCH_SESSION_ID_NOT_FOUND"
):
    """The broker no longer has the fetch session. The client starts a new session."""


class InvalidFetchSessionEpochError(
    RetriableError, BrokerResponseError, errno=71, code_name="INVALID_FETCH_SESSION_EPOCH"
):
    """The epoch of the fetch session is not valid. The client starts a new session."""


class ListenerNotFoundError(
    InvalidMetadataError, BrokerResponseError, errno=72, code_name="LISTENER_NOT_FOUND"
):
    """The leader has no listener of the name by which the client connected.

    Check ``advertised.listeners`` of all brokers.
    """


class TopicDeletionDisabledError(BrokerResponseError, errno=73, code_name="TOPIC_DELETION_DISABLED"):
    """Topics cannot be deleted on this cluster. Set ``delete.topic.enable``."""


class FencedLeaderEpochError(
    InvalidMetadataError, BrokerResponseError, errno=74, code_name="FENCED_LEADER_EPOCH"
):
    """The client knows an older leader epoch than the broker. The client fetches new metadata and retries."""


class UnknownLeaderEpochError(
    RetriableError, BrokerResponseError, errno=75, code_name="UNKNOWN_LEADER_EPOCH"
):
    """The client knows a newer leader epoch than the broker. The client retries."""


class UnsupportedCompressionTypeError(
    BrokerResponseError, errno=76, code_name="UNSUPPORTED_COMPRESSION_TYPE"
):
    """The broker does not support the codec of the batch. Choose another ``compression_type``."""


class StaleBrokerEpochError(BrokerResponseError, errno=77, code_name="STALE_BROKER_EPOCH"):
    """The epoch of the broker has changed. Only brokers receive this error."""


class OffsetNotAvailableError(
    RetriableError, BrokerResponseError, errno=78, code_name="OFFSET_NOT_AVAILABLE"
):
    """The leader does not know its high watermark yet, for example after an election. The client retries."""


class MemberIdRequiredError(BrokerResponseError, errno=79, code_name="MEMBER_ID_REQUIRED"):
    """The member must join again with the member id that the coordinator has assigned. The client does so."""


class PreferredLeaderNotAvailableError(
    InvalidMetadataError, BrokerResponseError, errno=80, code_name="PREFERRED_LEADER_NOT_AVAILABLE"
):
    """The preferred leader of the partition is not available."""


class GroupMaxSizeReachedError(BrokerResponseError, errno=81, code_name="GROUP_MAX_SIZE_REACHED"):
    """The group has as many members as ``group.max.size`` allows."""


class FencedInstanceIdError(BrokerResponseError, errno=82, code_name="FENCED_INSTANCE_ID"):
    """Another consumer has the same ``group_instance_id``. Give each member a different id."""


class EligibleLeadersNotAvailableError(
    InvalidMetadataError, BrokerResponseError, errno=83, code_name="ELIGIBLE_LEADERS_NOT_AVAILABLE"
):
    """No replica of the partition can become its leader."""


class ElectionNotNeededError(
    InvalidMetadataError, BrokerResponseError, errno=84, code_name="ELECTION_NOT_NEEDED"
):
    """The partition has the desired leader already."""


class NoReassignmentInProgressError(BrokerResponseError, errno=85, code_name="NO_REASSIGNMENT_IN_PROGRESS"):
    """The partition is not being reassigned."""


class GroupSubscribedToTopicError(BrokerResponseError, errno=86, code_name="GROUP_SUBSCRIBED_TO_TOPIC"):
    """The offsets cannot be deleted, because the group is subscribed to the topic."""


class InvalidRecordError(BrokerResponseError, errno=87, code_name="INVALID_RECORD"):
    """The broker refuses a record, such as a record without a key for a compacted topic.

    The message has the reason.
    """


class UnstableOffsetCommitError(
    RetriableError, BrokerResponseError, errno=88, code_name="UNSTABLE_OFFSET_COMMIT"
):
    """An open transaction has pending offsets for the partition.

    The client retries until the transaction is completed.
    """


class ThrottlingQuotaExceededError(
    RetriableError, BrokerResponseError, errno=89, code_name="THROTTLING_QUOTA_EXCEEDED"
):
    """The client exceeds its quota for changes to the cluster.

    The client retries after the throttle time of the response.
    """


class ProducerFencedError(BrokerResponseError, errno=90, code_name="PRODUCER_FENCED"):
    """Another producer with the same ``transactional_id`` has taken over. Close this producer."""


class ResourceNotFoundError(BrokerResponseError, errno=91, code_name="RESOURCE_NOT_FOUND"):
    """The resource, such as a user, does not exist."""


class DuplicateResourceError(BrokerResponseError, errno=92, code_name="DUPLICATE_RESOURCE"):
    """The request names a resource twice."""


class UnacceptableCredentialError(BrokerResponseError, errno=93, code_name="UNACCEPTABLE_CREDENTIAL"):
    """The credential is not acceptable, for example because it has too few iterations."""


class InconsistentVoterSetError(BrokerResponseError, errno=94, code_name="INCONSISTENT_VOTER_SET"):
    """The request does not name the current voters of the quorum. Only controllers receive this error."""


class InvalidUpdateVersionError(BrokerResponseError, errno=95, code_name="INVALID_UPDATE_VERSION"):
    """The version of the feature update is not valid."""


class FeatureUpdateFailedError(BrokerResponseError, errno=96, code_name="FEATURE_UPDATE_FAILED"):
    """The features of the cluster could not be updated. The message has the reason."""


class PrincipalDeserializationFailureError(
    BrokerResponseError, errno=97, code_name="PRINCIPAL_DESERIALIZATION_FAILURE"
):
    """A forwarded request has a principal that cannot be decoded. Only brokers receive this error."""


class SnapshotNotFoundError(BrokerResponseError, errno=98, code_name="SNAPSHOT_NOT_FOUND"):
    """The snapshot does not exist. Only controllers and brokers receive this error."""


class PositionOutOfRangeError(BrokerResponseError, errno=99, code_name="POSITION_OUT_OF_RANGE"):
    """The position is beyond the end of the snapshot. Only controllers and brokers receive this error."""


class UnknownTopicIdError(InvalidMetadataError, BrokerResponseError, errno=100, code_name="UNKNOWN_TOPIC_ID"):
    """The broker does not know the id of the topic. The client fetches new metadata and retries."""


class DuplicateBrokerRegistrationError(
    BrokerResponseError, errno=101, code_name="DUPLICATE_BROKER_REGISTRATION"
):
    """A broker with this id is registered already. Only brokers receive this error."""


class BrokerIdNotRegisteredError(BrokerResponseError, errno=102, code_name="BROKER_ID_NOT_REGISTERED"):
    """No broker with this id is registered."""


class InconsistentTopicIdError(
    InvalidMetadataError, BrokerResponseError, errno=103, code_name="INCONSISTENT_TOPIC_ID"
):
    """The topic id differs from the id in the log. The client fetches new metadata and retries."""


class InconsistentClusterIdError(BrokerResponseError, errno=104, code_name="INCONSISTENT_CLUSTER_ID"):
    """The request has the id of another cluster."""


class TransactionalIdNotFoundError(BrokerResponseError, errno=105, code_name="TRANSACTIONAL_ID_NOT_FOUND"):
    """The transactional id does not exist."""


class FetchSessionTopicIdError(
    RetriableError, BrokerResponseError, errno=106, code_name="FETCH_SESSION_TOPIC_ID_ERROR"
):
    """Some topics of the fetch session have ids and others do not. The client starts a new session."""


class IneligibleReplicaError(BrokerResponseError, errno=107, code_name="INELIGIBLE_REPLICA"):
    """The new in-sync replicas contain a replica that is not eligible. Only brokers receive this error."""


class NewLeaderElectedError(BrokerResponseError, errno=108, code_name="NEW_LEADER_ELECTED"):
    """The change of the partition elected a new leader. Only brokers receive this error."""


class OffsetMovedToTieredStorageError(
    BrokerResponseError, errno=109, code_name="OFFSET_MOVED_TO_TIERED_STORAGE"
):
    """The offset is in tiered storage. Only brokers receive this error."""


class FencedMemberEpochError(BrokerResponseError, errno=110, code_name="FENCED_MEMBER_EPOCH"):
    """The epoch of the member is out of date. The member joins the group again."""


class UnreleasedInstanceIdError(BrokerResponseError, errno=111, code_name="UNRELEASED_INSTANCE_ID"):
    """Another member still uses the ``group_instance_id``. Stop that member first."""


class UnsupportedAssignorError(BrokerResponseError, errno=112, code_name="UNSUPPORTED_ASSIGNOR"):
    """The group does not support the assignor."""


class StaleMemberEpochError(BrokerResponseError, errno=113, code_name="STALE_MEMBER_EPOCH"):
    """The epoch of the member is out of date. The member gets the new epoch at its next heartbeat."""


class MismatchedEndpointTypeError(BrokerResponseError, errno=114, code_name="MISMATCHED_ENDPOINT_TYPE"):
    """The request was sent to a controller instead of a broker, or to a broker instead of a controller."""


class UnsupportedEndpointTypeError(BrokerResponseError, errno=115, code_name="UNSUPPORTED_ENDPOINT_TYPE"):
    """The type of the endpoint is not supported."""


class UnknownControllerIdError(BrokerResponseError, errno=116, code_name="UNKNOWN_CONTROLLER_ID"):
    """The id of the controller is not known."""


class UnknownSubscriptionIdError(BrokerResponseError, errno=117, code_name="UNKNOWN_SUBSCRIPTION_ID"):
    """The id of the telemetry subscription is not known. The client requests a new subscription."""


class TelemetryTooLargeError(BrokerResponseError, errno=118, code_name="TELEMETRY_TOO_LARGE"):
    """The telemetry is larger than the broker accepts."""


class InvalidRegistrationError(BrokerResponseError, errno=119, code_name="INVALID_REGISTRATION"):
    """The controller refuses the registration of the broker. Only brokers receive this error."""


class TransactionAbortableError(BrokerResponseError, errno=120, code_name="TRANSACTION_ABORTABLE"):
    """The transaction failed. Abort it, and begin a new one."""


class InvalidRecordStateError(BrokerResponseError, errno=121, code_name="INVALID_RECORD_STATE"):
    """A record cannot be acknowledged in its current state. Share groups only."""


class ShareSessionNotFoundError(
    RetriableError, BrokerResponseError, errno=122, code_name="SHARE_SESSION_NOT_FOUND"
):
    """The broker no longer has the share session. Share groups only."""


class InvalidShareSessionEpochError(
    RetriableError, BrokerResponseError, errno=123, code_name="INVALID_SHARE_SESSION_EPOCH"
):
    """The epoch of the share session is not valid. Share groups only."""


class FencedStateEpochError(BrokerResponseError, errno=124, code_name="FENCED_STATE_EPOCH"):
    """The epoch of the share group's state is out of date. Only brokers receive this error."""


class InvalidVoterKeyError(BrokerResponseError, errno=125, code_name="INVALID_VOTER_KEY"):
    """The key of the voter differs from the key of the receiving replica.

    Only controllers receive this error.
    """


class DuplicateVoterError(BrokerResponseError, errno=126, code_name="DUPLICATE_VOTER"):
    """The voter is in the quorum already."""


class VoterNotFoundError(BrokerResponseError, errno=127, code_name="VOTER_NOT_FOUND"):
    """The voter is not in the quorum."""


class InvalidRegularExpressionError(BrokerResponseError, errno=128, code_name="INVALID_REGULAR_EXPRESSION"):
    """The regular expression of the subscription is not valid."""


class RebootstrapRequiredError(BrokerResponseError, errno=129, code_name="REBOOTSTRAP_REQUIRED"):
    """The broker asks the client to connect to ``bootstrap_servers`` again. The client does so."""


class StreamsInvalidTopologyError(BrokerResponseError, errno=130, code_name="STREAMS_INVALID_TOPOLOGY"):
    """The topology is not valid. Kafka Streams only."""


class StreamsInvalidTopologyEpochError(
    BrokerResponseError, errno=131, code_name="STREAMS_INVALID_TOPOLOGY_EPOCH"
):
    """The epoch of the topology is not valid. Kafka Streams only."""


class StreamsTopologyFencedError(BrokerResponseError, errno=132, code_name="STREAMS_TOPOLOGY_FENCED"):
    """The epoch of the topology is out of date. Kafka Streams only."""


class ShareSessionLimitReachedError(
    RetriableError, BrokerResponseError, errno=133, code_name="SHARE_SESSION_LIMIT_REACHED"
):
    """The broker has reached its limit of share sessions. Share groups only."""


# Java and kafka-python 2.x have other names for the same errors.
CorruptRecordException = CorruptRecordError
InvalidReceiveException = InvalidReceiveError
IncompatibleBrokerVersion = UnsupportedVersionError


def _broker_errors(root: type[BrokerResponseError]) -> dict[int, type[BrokerResponseError]]:
    found: dict[int, type[BrokerResponseError]] = {}
    for error in root.__subclasses__():
        # Skip a subclass that inherits its parent's code, because the code must map to the parent.
        if error.message and "errno" in vars(error):
            found[error.errno] = error
        found |= _broker_errors(error)
    return found


#: Broker error code → exception class.
BROKER_ERRORS: dict[int, type[BrokerResponseError]] = _broker_errors(BrokerResponseError)


def for_code(error_code: int) -> type[BrokerResponseError]:
    """Return the exception class of an error code.

    For a code that Kafka 4.3 does not define, the class is :class:`UnknownError`.
    """
    return BROKER_ERRORS.get(error_code, UnknownError)
