"""Fetched records that ``poll`` has not returned yet, in order of arrival.

Positions are updated together at the end of :meth:`FetchBuffer.collect`. If a Ctrl-C or an error interrupts
this method, the records are fetched again, and no record is lost. This is Kafka's ``FetchBuffer`` and
``FetchCollector``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kafkacore.consumer.completed_fetch import CompletedFetch
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition, partition_name

logger = logger_of(__name__)


class FetchBuffer:
    """Queue of completed fetches, usually one per partition.

    Parameters
    ----------
    subscriptions:
        Positions of the partitions. A fetch that does not start at the position is dropped. :meth:`collect`
        updates the positions.
    initialize:
        Function that is called with a fetch that reaches the front of the queue. The function stores the
        offsets and the preferred replica of the response. It raises the error of the response, or returns
        whether there are records to read.
    """

    def __init__(
        self, subscriptions: SubscriptionState, initialize: Callable[[CompletedFetch], bool]
    ) -> None:
        self._subscriptions = subscriptions
        self._initialize = initialize
        self._queue: deque[CompletedFetch] = deque()
        #: Partitions whose position the last call of :meth:`collect` updated, with their previous position.
        self.moved_from: dict[TopicPartition, FetchPosition] = {}

    def __iter__(self) -> Iterator[CompletedFetch]:
        return iter(self._queue)

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, completed: CompletedFetch) -> None:
        self._queue.append(completed)

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions with buffered records, which need no fetch."""
        return {completed.partition for completed in self._queue}

    def when_taken(self, max_records: int | None) -> dict[TopicPartition, int]:
        """Return the positions that partitions will have after all buffered records are returned.

        Return an empty dict if the next :meth:`collect`, of up to ``max_records`` records, may leave some of
        the records in the buffer.
        """
        offsets: dict[TopicPartition, int] = {}
        left = max_records
        for completed in self._queue:
            tp = completed.partition
            position = self._position(tp)
            taken = completed.when_taken()
            if position is None or position.offset != completed.next_fetch_offset or taken is None:
                return {}
            if tp in offsets:
                # The buffer has two fetches of the partition: a fetch that was sent ahead, and the fetch
                # before it.
                return {}
            count, offsets[tp] = taken
            if left is not None:
                left -= count
                if left < 0:
                    return {}
        return offsets

    def retain(self, partitions: set[TopicPartition]) -> None:
        """Drop the fetches of all partitions that are not in ``partitions``."""
        queue, self._queue = self._queue, deque()
        for completed in queue:
            if completed.partition in partitions:
                self._queue.append(completed)
            else:
                completed.drain()

    def collect(
        self,
        take: Callable[[CompletedFetch], bool],
        skip: Callable[[TopicPartition], bool] = lambda partition: False,
        update_positions: bool = True,
    ) -> dict[TopicPartition, int]:
        """Pass the fetches to ``take`` in order, until ``take`` has enough records and returns ``False``.

        Fetches of paused partitions, and of partitions for which ``skip`` is true, stay in the buffer.

        Returns
        -------
        dict
            Partition → next offset, for each partition whose position has changed. The positions themselves
            are updated only if ``update_positions`` is true.

        Raises
        ------
        KafkaError
            The error of the first partition that has an error, if no position changed before. Otherwise the
            next call raises this error.
        """
        moved: dict[TopicPartition, FetchPosition] = {}
        kept: deque[CompletedFetch] = deque()
        more = True
        try:
            while more and self._queue:
                completed = self._queue[0]
                if self._subscriptions.is_paused(completed.partition) or skip(completed.partition):
                    kept.append(self._queue.popleft())
                    continue
                more = self._collect_one(completed, take, moved)
                if not self._queue or self._queue[0] is not completed:
                    # A deserializer has called unsubscribe(), which removed this fetch from the queue.
                    continue
                if completed.is_consumed:
                    self._queue.popleft()
                elif more:
                    # The fetch has more records that this call cannot return: a deserializer failed, or a
                    # column is full.
                    kept.append(self._queue.popleft())
        except KafkaError:
            if not moved:
                raise
        finally:
            self._queue.extendleft(reversed(kept))
        self.moved_from = {}
        if update_positions:
            for partition, position in moved.items():
                if not self._subscriptions.is_assigned(partition):
                    # A deserializer has called unsubscribe().
                    continue
                before = self._subscriptions.position(partition)
                if before is not None:
                    self.moved_from[partition] = before
                self._subscriptions.set_position(partition, position)
        return {partition: position.offset for partition, position in moved.items()}

    def _collect_one(
        self,
        completed: CompletedFetch,
        take: Callable[[CompletedFetch], bool],
        moved: dict[TopicPartition, FetchPosition],
    ) -> bool:
        if not completed.initialized:
            try:
                if not self._initialize(completed):
                    completed.drain()
                    return True
            except KafkaError:
                # Raise the error only after the records before it have been returned, and only once. A
                # fetch with an error and without records can be dropped.
                if not moved and not completed.size_in_bytes:
                    self._queue.remove(completed)
                    completed.drain()
                raise
            completed.initialized = True
        partition = completed.partition
        position = moved.get(partition) or self._position(partition)
        if position is None or position.offset != completed.next_fetch_offset:
            logger.debug(
                "dropping fetched records of %s: the position is %s now", partition_name(partition), position
            )
            completed.drain()
            return True
        more = take(completed)
        if completed.next_fetch_offset > position.offset:
            moved[partition] = FetchPosition(completed.next_fetch_offset, completed.last_epoch)
        if completed.is_consumed and completed.size_in_bytes:
            self._subscriptions.move_to_end(partition)
        return more

    def _position(self, partition: TopicPartition) -> FetchPosition | None:
        if not self._subscriptions.is_fetchable(partition):
            return None
        return self._subscriptions.position(partition)

    def keep_moved(self) -> None:
        """Confirm that the application has received the records of the last call of :meth:`collect`."""
        self.moved_from = {}

    def rewind(self) -> None:
        """Undo the position updates of the last :meth:`collect`: the application did not get its records."""
        moved_from, self.moved_from = self.moved_from, {}
        for partition, position in moved_from.items():
            if self._subscriptions.is_assigned(partition) and self._subscriptions.position(partition):
                self._subscriptions.set_position(partition, position)

    def is_available(self, skip: Callable[[TopicPartition], bool] = lambda partition: False) -> bool:
        """Return whether :meth:`collect` would find a fetch that is neither paused nor skipped."""
        return any(
            self._subscriptions.is_fetchable(completed.partition) and not skip(completed.partition)
            for completed in self._queue
        )

    def clear(self) -> None:
        self.retain(set())
