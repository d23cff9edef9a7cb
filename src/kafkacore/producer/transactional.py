"""The transactional calls of the producer that the user has: checked, handed on, waited for.

Source: kafka-python's and Apache Kafka's ``KafkaProducer`` (KIP-98, 447). Does not know: states, requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkacore.client import ApiVersions, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import IllegalStateError, KafkaError
from kafkacore.producer._record_sender import RecordSender
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.producer.prepared_transactions import PreparedTransaction
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkacore.producer.sender_thread import SenderThread


def idempotence_of(
    config: Mapping[str, Any], clock: Clock, api_versions: ApiVersions
) -> tuple[IdempotenceManager | None, TransactionManager | None]:
    """What gives a producer's records an identity, if anything; and the same if it makes transactions."""
    if config["transactional_id"] is None:
        return (IdempotenceManager() if config["enable_idempotence"] else None), None
    manager = TransactionManager(
        config["transactional_id"],
        clock,
        api_versions,
        transaction_timeout_ms=config["transaction_timeout_ms"],
        max_block_ms=config["max_block_ms"],
    )
    return manager, manager


class TransactionalProducer(RecordSender):
    """What :class:`~kafkacore.KafkaProducer` can do with a ``transactional_id``.

    Each call that waits does so for ``max_block_ms`` at most. One that timed out, or was interrupted, goes
    on: the same call again takes it up, any other is refused until then.
    """

    _transactions: TransactionManager | None
    _thread: SenderThread | None
    _client: NetworkClient
    _max_block_ms: float

    def _check_usable(self) -> None:
        raise NotImplementedError

    def init_transactions(self) -> None:
        """Make this the one producer of its ``transactional_id``. Once, before the first transaction.

        What an earlier producer of the id has left open is ended, and that producer, if it still runs, is
        fenced: all that it tries from now on fails.

        Raises
        ------
        KafkaTimeoutError
            No answer within ``max_block_ms``; call it again.
        TransactionalIdAuthorizationFailedError
            The user may not use the id; to be called again once he may.
        UnsupportedVersionError
            The broker has no transactions.
        IllegalStateError
            It has been called already, or there is no ``transactional_id``.
        """
        self._await(self._manager("init_transactions()").init_transactions())

    def begin_transaction(self) -> None:
        """All records sent from now on, until the commit, are one whole.

        Raises
        ------
        IllegalStateError
            A transaction is open, or :meth:`init_transactions` has not returned.
        ProducerFencedError
            Another producer with the same ``transactional_id`` has been started; close this one.
        KafkaError
            The transaction before has failed; abort it.
        """
        self._manager("begin_transaction()", waits=False).begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: ConsumerGroupMetadata | str
    ) -> None:
        """Commit a consumer group's offsets with the transaction, and only with it.

        Parameters
        ----------
        offsets:
            Of each partition the *next* offset to read.
        group_metadata:
            The group. With generation and member of a consumer that was assigned the partitions, a consumer
            that has lost them meanwhile is fenced (KIP-447); a group's name alone fences nobody.

        Raises
        ------
        CommitFailedError, FencedInstanceIdError, GroupAuthorizationFailedError
            The group refuses the offsets: abort the transaction.
        KafkaTimeoutError
            No answer within ``max_block_ms``: abort, or call it again.
        IllegalStateError
            No transaction is open.
        ProducerFencedError
            As of :meth:`commit_transaction`.
        TypeError, ValueError
            An argument that cannot be.
        """
        manager = self._manager("send_offsets_to_transaction()")
        group = checked_group(group_metadata)
        checked = checked_offsets(offsets)
        if checked:
            self._await(manager.send_offsets(checked, group))

    def commit_transaction(self) -> None:
        """Send what has not been sent, and make all of the transaction visible at once.

        Raises
        ------
        KafkaTimeoutError
            It has not ended within ``max_block_ms``; call it again.
        ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError
            Another producer with the same ``transactional_id`` has been started, or the transaction took
            longer than ``transaction_timeout_ms``: close this one.
        KafkaError
            A record of the transaction has failed, with the first failure: call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("commit_transaction()").begin_commit())

    def abort_transaction(self) -> None:
        """Have nothing of the transaction happen. Records that have not been sent fail with
        :class:`TransactionAbortedError`.

        Raises
        ------
        KafkaTimeoutError
            It has not ended within ``max_block_ms``; call it again.
        ProducerFencedError
            As of :meth:`commit_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("abort_transaction()").begin_abort())

    # ---- Handed over to another producer -------------------------------------------------------------------

    def change_transactional_id(self, transactional_id: str) -> None:
        """Go on under another name, as a new producer would; :meth:`init_transactions` comes next.

        Raises
        ------
        IllegalStateError
            A transaction is open, or records are on their way.
        """
        self._manager("change_transactional_id()", waits=False).change_transactional_id(transactional_id)

    def prepare_transaction(self) -> PreparedTransaction:
        """Leave the transaction open for another producer, of any process, to end; call :meth:`flush` first.

        Until then the broker aborts it after ``transaction_timeout_ms``, or when a producer of the same name
        is initialized. After it, :meth:`init_transactions` comes next.

        Raises
        ------
        KafkaError
            A record of the transaction has failed, with the first failure: call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open, or records of it are on their way.
        """
        return self._manager("prepare_transaction()", waits=False).prepare()

    def take_over_transaction(self, prepared: PreparedTransaction) -> None:
        """Be inside a transaction that another producer has prepared: offsets, commit or abort are next.

        Nothing is asked of the broker: that the transaction is still open is learnt from what comes next.

        Raises
        ------
        IllegalStateError
            This producer has a transaction of its own.
        """
        self._manager("take_over_transaction()", waits=False).resume(prepared)

    def _manager(self, operation: str, *, waits: bool = True) -> TransactionManager:
        manager = self._transactions
        if manager is None:
            raise IllegalStateError(
                f"{operation} needs a transactional producer: make it by KafkaProducer(transactional_id=...)"
            )
        self._check_usable()
        if waits and self._thread is not None and self._thread.is_this_thread:
            raise IllegalStateError(
                f"{operation} in a callback would wait for itself; call it from another thread"
            )
        return manager

    def _fail_transaction(self, error: KafkaError) -> None:
        """A record has failed of which only its future tells: the transaction is not whole any more."""
        if self._transactions is not None:
            self._transactions.fail_transaction(error)

    def _await(self, result: TransactionalRequestResult) -> None:
        self._client.wakeup()
        result.wait(self._max_block_ms)


def checked_group(group: Any) -> ConsumerGroupMetadata:
    """A group by its name, or by an object with the attributes of kafka-python's ConsumerGroupMetadata."""
    if isinstance(group, str):
        group = ConsumerGroupMetadata(group)
    try:
        checked = ConsumerGroupMetadata(
            group.group_id, group.generation_id, group.member_id, group.group_instance_id
        )
    except AttributeError:
        raise TypeError(
            f"group_metadata must be a ConsumerGroupMetadata or the group's name, not {type(group).__name__}"
        ) from None
    if not isinstance(checked.group_id, str) or not checked.group_id:
        raise ValueError(f"group_metadata needs the name of a group, not {checked.group_id!r}")
    if checked.generation_id > 0 and not checked.member_id:
        raise ValueError(
            f"group_metadata with generation {checked.generation_id} needs the member's id: take what the "
            "consumer gives, or the group's name alone"
        )
    return checked


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as our own types; kafka-python's have the same attributes."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets must be a dict of TopicPartition to OffsetAndMetadata, not {type(offsets).__name__}"
        )
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for place, committed in offsets.items():
        if not isinstance(place, tuple) or len(place) != 2:
            raise TypeError(f"offsets has the key {place!r}, which is no TopicPartition")
        offset = getattr(committed, "offset", None)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise TypeError(f"the offset of {place} is {committed!r}, which is no OffsetAndMetadata")
        if offset < 0:
            raise ValueError(f"the offset of {place} must be 0 or more, not {offset}")
        leader_epoch = getattr(committed, "leader_epoch", None)
        checked[TopicPartition(*place)] = OffsetAndMetadata(
            offset, getattr(committed, "metadata", None) or "", -1 if leader_epoch is None else leader_epoch
        )
    return checked
