"""What was fetched and not yet handed out, in the order of arrival; and the one rule for handing it out.

Completed fetches in, whatever ``take`` makes of them out. Positions move together at the end, so that a
Ctrl-C or an error in the midst loses nothing: what was taken but not returned is simply fetched again.
Does not know: requests, sockets. (Kafka's ``FetchBuffer`` and ``FetchCollector``.)
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator

from kafkacore.consumer.completed_fetch import CompletedFetch
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.errors import KafkaError
from kafkacore.structs import TopicPartition, partition_name

logger = logging.getLogger(__name__)


class FetchBuffer:
    """Completed fetches, at most one of a partition.

    Parameters
    ----------
    subscriptions:
        Whose positions decide what is still wanted, and move.
    initialize:
        Looks at a fetch when its turn comes: notes what the broker said of the partition, raises its error,
        and tells whether there is anything to read.
    """

    def __init__(
        self, subscriptions: SubscriptionState, initialize: Callable[[CompletedFetch], bool]
    ) -> None:
        self._subscriptions = subscriptions
        self._initialize = initialize
        self._queue: deque[CompletedFetch] = deque()
        #: Partitions that the last collect moved, and where they stood before.
        self._moved_from: dict[TopicPartition, FetchPosition] = {}

    def __iter__(self) -> Iterator[CompletedFetch]:
        return iter(self._queue)

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, completed: CompletedFetch) -> None:
        self._queue.append(completed)

    def partitions(self) -> set[TopicPartition]:
        """Partitions whose records wait here; they need no fetch."""
        return {completed.partition for completed in self._queue}

    def when_taken(self, max_records: int | None) -> dict[TopicPartition, int]:
        """Where the partitions here will stand when all that waits has been handed out.

        Empty if the next collect, of ``max_records``, will leave some of it, or may.
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
                # The answer to a fetch sent ahead, and what was before it is still here.
                return {}
            count, offsets[tp] = taken
            if left is not None:
                left -= count
                if left < 0:
                    return {}
        return offsets

    def retain(self, partitions: set[TopicPartition]) -> None:
        """Drop what belongs to partitions that are not in ``partitions``."""
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
        """Hand fetches to ``take`` in turn until it returns ``False``, which says that it wants no more.

        Fetches of paused partitions, and of those for which ``skip`` is true, stay for later.

        Returns
        -------
        dict
            Partition → offset to go on from, of those that moved. Positions have been set to it, unless
            ``update_positions`` is false.

        Raises
        ------
        KafkaError
            Of the first partition that has one, if nothing moved before it; else it comes with the next call.
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
                    # A deserializer has given the partition up.
                    continue
                if completed.is_consumed:
                    self._queue.popleft()
                elif more:
                    # It has more, but not for now: a failing deserializer, a full column.
                    kept.append(self._queue.popleft())
        except KafkaError:
            if not moved:
                raise
        finally:
            self._queue.extendleft(reversed(kept))
        self._moved_from = {}
        if update_positions:
            for partition, position in moved.items():
                if not self._subscriptions.is_assigned(partition):
                    # A deserializer has given it up.
                    continue
                before = self._subscriptions.position(partition)
                if before is not None:
                    self._moved_from[partition] = before
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
                # Once what came before it is handed out, the error is raised, and once only: a fetch with
                # an error has no records that could be lost with it.
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
        """What has been collected so far has reached the user."""
        self._moved_from = {}

    def rewind(self) -> None:
        """What the last collect gave does not reach the user: fetch it again."""
        moved_from, self._moved_from = self._moved_from, {}
        for partition, position in moved_from.items():
            if self._subscriptions.is_assigned(partition) and self._subscriptions.position(partition):
                self._subscriptions.set_position(partition, position)

    def is_available(self, skip: Callable[[TopicPartition], bool] = lambda partition: False) -> bool:
        """Whether a :meth:`collect` would find something; paused partitions do not count."""
        return any(
            self._subscriptions.is_fetchable(completed.partition) and not skip(completed.partition)
            for completed in self._queue
        )

    def clear(self) -> None:
        self.retain(set())
