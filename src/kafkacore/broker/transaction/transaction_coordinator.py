"""The coordinator of transactional producers, as the request handlers use it.

A change of state is appended to the log and applied at once, so two requests never work on the same state.
The response waits until the change is safe from loss. The rules are those of Kafka's
``TransactionCoordinator`` (KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.broker.error_answer import error_code
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.transaction.marker_writer import MarkerWriter
from kafkacore.broker.transaction.transaction_log import TransactionLog
from kafkacore.broker.transaction.transaction_metadata import (
    COMPLETED,
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from kafkacore.errors import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
)
from kafkacore.structs import INT16_MAX, TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.storage.producer_ids import ProducerIdManager
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: Milliseconds that a request waits for the end of the previous transaction before the client must retry.
#: Kafka makes the client retry at once.
MAX_WAIT_MS: Final = 1_000.0


class ProducerIdAndEpoch(NamedTuple):
    """Id and epoch of a producer; -1 if a response has none."""

    producer_id: int
    epoch: int


class TransactionFigures(NamedTuple):
    """Numbers of transactional ids and open transactions, and start of the oldest open transaction."""

    id_count: int
    open_count: int
    #: Wall-clock time in milliseconds since the epoch; ``None`` without an open transaction.
    oldest_start_ms: int | None


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

#: Called once with an error code, and with the new id and epoch of the producer.
OnProducer = Callable[[int, ProducerIdAndEpoch], None]


class _Parked(TimerTask):
    """A request that waits until a prepared transaction is complete, or :data:`MAX_WAIT_MS` have passed."""

    def __init__(self, retry: Callable[[], None], refuse: Callable[[], None]) -> None:
        super().__init__()
        self._retry = retry
        self._refuse = refuse
        self._is_done = False

    def resume(self) -> None:
        self._finish(self._retry)

    def run(self) -> None:
        self._finish(self._refuse)

    def _finish(self, action: Callable[[], None]) -> None:
        if not self._is_done:
            self._is_done = True
            self.cancel()
            action()


class TransactionCoordinator:
    """Coordinator of the transactional ids. Only the network thread may use it.

    In all methods, ``node_id`` is the node that received the request; ``None`` if another part of the broker
    makes the request on behalf of a client. Methods with a callback do not raise errors of the request.

    Parameters
    ----------
    transactions:
        The states of the transactional ids, and their log.
    markers:
        Ends prepared transactions.
    producer_ids:
        Allocates producer ids.
    config:
        Configuration of the broker.
    clock, timer:
        Clock and timer of the broker.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        markers: MarkerWriter,
        producer_ids: ProducerIdManager,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
    ) -> None:
        self._transactions = transactions
        self._log = transactions.log
        self._state = transactions.state
        self._markers = markers
        self._producer_ids = producer_ids
        self._config = config
        self._clock = clock
        self._timer = timer

    # ---- InitProducerId -------------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        node_id: int | None,
        on_done: OnProducer,
    ) -> None:
        """Give a producer the next epoch of its transactional id, and so fence earlier producers.

        An open transaction is aborted first.

        Parameters
        ----------
        transactional_id:
            Id that the application has chosen.
        timeout_ms:
            Transaction timeout in milliseconds.
        expected:
            Id and epoch that the producer has; ``None`` if the producer has no id yet (KIP-360).
        node_id:
            The node that received the request.
        on_done:
            Called with the error code, and with the producer's id and epoch.
        """
        again = partial(self.init_producer_id, transactional_id, timeout_ms, expected, node_id, on_done)
        try:
            if not transactional_id:
                raise InvalidRequestError("the transactional id is empty")
            if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
                raise InvalidTransactionTimeoutError(
                    f"the transaction timeout of {timeout_ms} ms is not between 1 and "
                    f"transaction.max.timeout.ms={self._config.transaction_max_timeout_ms}"
                )
            self._log.check(transactional_id, node_id)
            metadata = self._state.get(transactional_id)
            if metadata is None:
                producer_id = self._producer_ids.next_producer_id()
                metadata = TransactionMetadata(
                    transactional_id=transactional_id, producer_id=producer_id, timeout_ms=timeout_ms
                )
            _check_expected(metadata, expected)
            if metadata.state in PREPARED:
                self._aborted(0, transactional_id, again, on_done)
                return
            if metadata.state is TransactionState.ONGOING:
                self._fence_and_abort(
                    metadata, lambda code: self._aborted(code, transactional_id, again, on_done)
                )
                return
            changed = self._with_next_identity(metadata, timeout_ms, expected)
        except Exception as error:  # noqa: BLE001 - error_code logs bugs
            on_done(error_code(error), NO_PRODUCER)
            return
        identity = ProducerIdAndEpoch(changed.producer_id, changed.producer_epoch)
        self._transactions.write(changed, lambda code: on_done(code, NO_PRODUCER if code else identity))

    def _with_next_identity(
        self, metadata: TransactionMetadata, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> TransactionMetadata:
        now_ms = self._clock.wall_ms()
        expected_epoch = None if expected is None else expected.epoch
        if not metadata.has_exhausted_epochs:
            return metadata.with_next_epoch(timeout_ms, expected_epoch, now_ms)
        if expected_epoch is not None and expected_epoch != metadata.producer_epoch:
            raise metadata.fencing(expected_epoch)
        producer_id = self._producer_ids.next_producer_id()
        return metadata.with_new_id(
            producer_id, timeout_ms, keeps_last_epoch=expected is not None, now_ms=now_ms
        )

    def _aborted(
        self, code: int, transactional_id: str, again: Callable[[], None], on_done: OnProducer
    ) -> None:
        """Continue an InitProducerId after the abort of the open transaction has been decided."""
        if code:
            on_done(code, NO_PRODUCER)
        else:
            self._park(
                transactional_id, again, lambda: on_done(ConcurrentTransactionsError.errno, NO_PRODUCER)
            )

    def _park(self, transactional_id: str, again: Callable[[], None], refuse: Callable[[], None]) -> None:
        """Repeat a request when the prepared transaction is complete, or reject it after a timeout."""
        metadata = self._state.get(transactional_id)
        if metadata is None or metadata.state not in PREPARED:
            again()
            return
        parked = _Parked(again, refuse)
        self._markers.when_completed(transactional_id, parked.resume)
        self._timer.add(self._clock.monotonic_ms() + MAX_WAIT_MS, parked)

    # ---- Partitions -----------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        node_id: int | None,
        client_version: int,
        on_done: Callable[[int], None],
    ) -> None:
        """Add partitions to a transaction. The first addition begins the transaction.

        Parameters
        ----------
        transactional_id, producer_id, producer_epoch:
            The producer.
        partitions:
            Partitions to add. They exist.
        node_id:
            The node that received the request.
        client_version:
            Transaction version that the client uses.
        on_done:
            Called with 0 when the partitions are durably part of the transaction, or with an error code.
        """
        try:
            metadata = self._of_producer(transactional_id, producer_id, producer_epoch, node_id)
        except Exception as error:  # noqa: BLE001 - error_code logs bugs
            on_done(error_code(error))
            return
        if metadata.state in PREPARED:
            again = partial(
                self.add_partitions,
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                node_id,
                client_version,
                on_done,
            )
            self._park(transactional_id, again, lambda: on_done(ConcurrentTransactionsError.errno))
        elif metadata.state is TransactionState.ONGOING and metadata.partitions.issuperset(partitions):
            # An unanswered request may have added the partitions, so wait until its write is safe from loss.
            self._log.when_safe(transactional_id, on_done)
        else:
            now_ms = self._clock.wall_ms()
            self._transactions.write(metadata.with_partitions(partitions, client_version, now_ms), on_done)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        node_id: int | None,
    ) -> dict[TopicPartition, int]:
        """Return the error code of each partition.

        The code is 0 if the partition is part of the producer's open transaction.
        """
        try:
            metadata = self._of_producer(transactional_id, producer_id, producer_epoch, node_id)
            if metadata.state in PREPARED:
                raise ConcurrentTransactionsError
        except Exception as error:  # noqa: BLE001 - error_code logs bugs
            return dict.fromkeys(partitions, error_code(error))
        return {
            each: 0 if each in metadata.partitions else TransactionAbortableError.errno for each in partitions
        }

    def _of_producer(
        self, transactional_id: str, producer_id: int, producer_epoch: int, node_id: int | None
    ) -> TransactionMetadata:
        """Check that the producer is the current producer of a transactional id, and return its state."""
        metadata = self._known(transactional_id, node_id)
        if metadata.is_next_identity(producer_id, producer_epoch):
            return metadata
        if metadata.producer_id != producer_id:
            raise InvalidProducerIdMappingError
        if metadata.producer_epoch != producer_epoch:
            raise ProducerFencedError
        return metadata

    def _known(self, transactional_id: str, node_id: int | None) -> TransactionMetadata:
        if not transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        self._log.check(transactional_id, node_id)
        metadata = self._state.get(transactional_id)
        if metadata is None:
            raise InvalidProducerIdMappingError
        return metadata

    # ---- End ------------------------------------------------------------------------------------------

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commits: bool,
        client_version: int,
        node_id: int | None,
        on_done: OnProducer,
    ) -> None:
        """Commit or abort a transaction.

        Parameters
        ----------
        transactional_id, producer:
            The producer.
        commits:
            Whether to commit.
        client_version:
            Transaction version of the request.
        node_id:
            The node that received the request.
        on_done:
            Called when the outcome is decided and safe, with an error code and with the new id and epoch of
            the producer. The markers are written afterwards.
        """
        try:
            metadata = self._known(transactional_id, node_id)
            is_done = (_is_ended_v2 if client_version >= EPOCH_BUMP_VERSION else _is_ended)(
                metadata, producer, commits
            )
            if is_done:
                identity = ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)
                self._log.when_safe(
                    transactional_id, lambda code: on_done(code, NO_PRODUCER if code else identity)
                )
                return
            next_id = NO_PRODUCER_ID
            if client_version >= EPOCH_BUMP_VERSION and metadata.has_exhausted_epochs:
                next_id = self._producer_ids.next_producer_id()
        except Exception as error:  # noqa: BLE001 - error_code logs bugs
            on_done(error_code(error), NO_PRODUCER)
            return
        prepared = metadata.prepared(
            commits=commits,
            client_version=client_version,
            next_producer_id=next_id,
            now_ms=self._clock.wall_ms(),
        )
        after = prepared.completed(0)
        identity = ProducerIdAndEpoch(after.producer_id, after.producer_epoch)
        self._decide(prepared, lambda code: on_done(code, NO_PRODUCER if code else identity))

    def _decide(self, prepared: TransactionMetadata, on_decided: Callable[[int], None]) -> None:
        """Write the outcome of a transaction. Complete the transaction when the write is safe from loss."""

        def on_safe(code: int) -> None:
            on_decided(code)
            self._complete_when_safe(prepared.transactional_id, code)

        self._transactions.write(prepared, on_safe)

    def _complete_when_safe(self, transactional_id: str, code: int) -> None:
        metadata = self._state.get(transactional_id)
        if metadata is None or metadata.state not in PREPARED:
            return
        if code == CoordinatorNotAvailableError.errno:
            # The disk is slow, but the write may still become safe from loss, so continue to wait.
            self._log.when_safe(transactional_id, partial(self._complete_when_safe, transactional_id))
        elif not code:
            self._markers.complete(metadata)

    def _fence_and_abort(self, metadata: TransactionMetadata, on_decided: Callable[[int], None]) -> None:
        """Abort an open transaction without a request of its producer, whose epoch becomes invalid."""
        prepared = metadata.fenced().prepared(
            commits=False,
            client_version=self._transactions.features.transaction_version,
            next_producer_id=NO_PRODUCER_ID,
            now_ms=self._clock.wall_ms(),
        )
        self._decide(prepared, on_decided)

    def partition_loaded(self, partition: int) -> None:
        """Continue the prepared transactions of a partition that has just been loaded."""
        for metadata in self._state.of_partition(partition):
            if metadata.state in PREPARED:
                self._complete_when_safe(metadata.transactional_id, 0)

    # ---- Timeouts and expiry --------------------------------------------------------------------------

    def abort_timed_out(self) -> None:
        """Abort the open transactions that have exceeded their timeouts."""
        now_ms = self._clock.wall_ms()
        for metadata in self._state.ongoing():
            if metadata.start_ms + metadata.timeout_ms < now_ms and self._is_active(metadata):
                logger.info(
                    "transactional id %s: aborting the transaction, which is open for more than %d ms",
                    metadata.transactional_id,
                    metadata.timeout_ms,
                )
                self._fence_and_abort(metadata, lambda _: None)

    def remove_expired(self) -> None:
        """Remove transactional ids that were not used for ``transactional.id.expiration.ms``."""
        limit_ms = self._clock.wall_ms() - self._config.transactional_id_expiration_ms
        for partition in self._state.partitions():
            expired = [
                each.transactional_id
                for each in self._state.of_partition(partition)
                if each.update_ms <= limit_ms
                and (each.state is TransactionState.EMPTY or each.state in COMPLETED)
            ]
            if expired and self._log.is_active(partition):
                logger.info("removing %d expired transactional ids", len(expired))
                self._transactions.remove(partition, expired)

    def _is_active(self, metadata: TransactionMetadata) -> bool:
        return self._log.is_active(self._log.partition_for(metadata.transactional_id))

    # ---- Administration -------------------------------------------------------------------------------

    def describe(self, transactional_id: str, node_id: int) -> TransactionMetadata:
        """Return the state of a transactional id.

        Raises
        ------
        TransactionalIdNotFoundError
            The id is not known.
        BrokerResponseError
            The id is empty, being loaded, or coordinated by another node.
        """
        if not transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        self._log.check(transactional_id, node_id)
        metadata = self._state.get(transactional_id)
        if metadata is None:
            raise TransactionalIdNotFoundError
        return metadata

    def transactions(self, node_id: int) -> list[TransactionMetadata]:
        """Return the states of all transactional ids that a node coordinates.

        Raises
        ------
        CoordinatorLoadInProgressError
            Some ids have not been loaded yet.
        """
        if self._log.is_loading:
            raise CoordinatorLoadInProgressError
        found = []
        for partition in self._state.partitions():
            some = list(self._state.of_partition(partition))
            if some and self._is_coordinated_by(node_id, some[0].transactional_id):
                found += some
        return found

    def figures(self) -> TransactionFigures:
        """Return the number of transactional ids and of open transactions, for the status page."""
        starts = [each.start_ms for each in self._state.ongoing()]
        return TransactionFigures(len(self._state), len(starts), min(starts, default=None))

    def _is_coordinated_by(self, node_id: int, transactional_id: str) -> bool:
        try:
            self._log.check(transactional_id, node_id)
        except BrokerResponseError:
            return False  # The node that coordinates the id lists it.
        return True


def _check_expected(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> None:
    """Check the producer id in an InitProducerId request. The epoch is checked when a new epoch is assigned.

    The previous id is accepted if the epochs of that id are exhausted, because the producer may repeat a
    request whose response it has not received.
    """
    if expected is None or metadata.producer_epoch == NO_PRODUCER_EPOCH:
        return
    is_repeated = expected.producer_id == metadata.previous_producer_id and expected.epoch >= INT16_MAX - 1
    if expected.producer_id != metadata.producer_id and not is_repeated:
        raise ProducerFencedError(
            f"producer id {expected.producer_id} of transactional id {metadata.transactional_id!r} was "
            f"replaced by {metadata.producer_id}"
        )


def _is_ended(metadata: TransactionMetadata, producer: ProducerIdAndEpoch, commits: bool) -> bool:
    """Check an EndTxn of transaction version 1, and return whether the transaction already has this outcome.

    Raises
    ------
    BrokerResponseError
        The producer is not the current producer, or the transaction cannot have this outcome at the moment.
    """
    if metadata.producer_id != producer.producer_id:
        raise InvalidProducerIdMappingError
    if metadata.producer_epoch != producer.epoch:
        raise ProducerFencedError
    state = metadata.state
    if state is TransactionState.ONGOING:
        return False
    if state is (TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT):
        return True
    if state is (TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT):
        raise ConcurrentTransactionsError
    raise _cannot_end(metadata, commits)


def _is_ended_v2(metadata: TransactionMetadata, producer: ProducerIdAndEpoch, commits: bool) -> bool:
    """Check an EndTxn of transaction version 2 like :func:`_is_ended`.

    The epoch of a repeated request is one below the current epoch. A transaction without any partition may be
    aborted.
    """
    state = metadata.state
    if state in PREPARED:
        raise _while_prepared(metadata, producer, commits)
    has_next_id = (
        metadata.previous_producer_id == producer.producer_id
        and producer.epoch == INT16_MAX - 1
        and metadata.producer_epoch == 0
    )
    if metadata.producer_id != producer.producer_id and not has_next_id:
        raise InvalidProducerIdMappingError
    is_repeated = state in COMPLETED and (has_next_id or metadata.producer_epoch == producer.epoch + 1)
    if metadata.producer_epoch != producer.epoch and not is_repeated:
        raise ProducerFencedError
    if state is TransactionState.ONGOING:
        return False
    if is_repeated and (state is TransactionState.COMPLETE_COMMIT) == commits:
        return True
    if not is_repeated and not commits:
        return False
    raise _cannot_end(metadata, commits)


def _while_prepared(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, commits: bool
) -> BrokerResponseError:
    """Return the error of an EndTxn of version 2 that arrives before the markers are written."""
    if metadata.is_next_identity(producer.producer_id, producer.epoch):
        return ConcurrentTransactionsError()
    if metadata.producer_id != producer.producer_id:
        return InvalidProducerIdMappingError()
    if metadata.producer_epoch == producer.epoch:
        # The request ends the next transaction, to which the producer has not sent any records. Let the
        # producer retry until the prepared transaction is complete. Kafka answers PRODUCER_FENCED, after
        # which the producer cannot be used any more.
        return ConcurrentTransactionsError()
    if metadata.producer_epoch != producer.epoch + 1:
        return ProducerFencedError()
    return ConcurrentTransactionsError() if metadata.commits == commits else _cannot_end(metadata, commits)


def _cannot_end(metadata: TransactionMetadata, commits: bool) -> InvalidTxnStateError:
    return InvalidTxnStateError(
        f"the transaction of transactional id {metadata.transactional_id!r} cannot be "
        f"{'committed' if commits else 'aborted'}: its state is {metadata.state.title}"
    )
