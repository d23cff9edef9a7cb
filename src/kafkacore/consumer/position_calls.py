"""The consumer's calls about places in the logs: seek, pause, position, and what brokers know of offsets.

Arguments are checked here, the work is done by the engine's parts. Does not know: fetching, groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkacore.consumer.calls import ConsumerCalls, check_partitions
from kafkacore.consumer.offset_fetcher import UNKNOWN_OFFSET
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy
from kafkacore.structs import OffsetAndMetadata, OffsetAndTimestamp, OffsetSpec, TopicPartition


class PositionCalls(ConsumerCalls):
    """Of one consumer."""

    # ---- Positions ---------------------------------------------------------------------------------------
    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record, found out by ``auto_offset_reset`` if there is none yet.

        Parameters
        ----------
        timeout_ms:
            For finding it out; ``request_timeout_ms`` by default.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        KafkaTimeoutError
            If it could not be found out in time; names the bootstrap servers.
        """
        check_partitions([partition])
        with self._guard:
            self._check_open()
            return self._engine.position(partition, self._timer(timeout_ms))

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset behind the last readable record, as of the last fetch; ``None`` before one."""
        check_partitions([partition])
        with self._guard:
            return self._engine.subscriptions.state(partition).high_watermark

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on from ``offset``.

        Parameters
        ----------
        offset:
            Or an :class:`OffsetAndMetadata`, as :meth:`committed` and ``LogTruncationError`` give it: by its
            leader epoch the leader is asked first whether its log still has what comes before (KIP-320).

        Raises
        ------
        ValueError
            If the offset is negative or the partition is not assigned.
        """
        check_partitions([partition])
        epoch = -1
        if isinstance(offset, OffsetAndMetadata):
            offset, _, epoch = offset
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"an offset is an int of at least 0, not {offset!r}")
        with self._guard:
            self._begin()
            self._check_assigned([partition])
            self._engine.metadata.update_last_seen_epoch_if_newer(partition, epoch)
            self._engine.subscriptions.seek_unvalidated(partition, FetchPosition(offset, epoch))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on from the first record there is, of ``partitions`` or of all; looked up when it is needed."""
        self._seek_by_name(partitions, OffsetResetStrategy.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record, of ``partitions`` or of all; looked up when it is needed."""
        self._seek_by_name(partitions, OffsetResetStrategy.LATEST)

    def _seek_by_name(self, partitions: Sequence[TopicPartition], strategy: OffsetResetStrategy) -> None:
        check_partitions(partitions)
        with self._guard:
            self._begin()
            chosen = partitions or self._engine.subscriptions.assigned_partitions()
            if not chosen:
                raise ValueError("no partitions are assigned")
            self._check_assigned(chosen)
            for partition in chosen:
                self._engine.subscriptions.request_offset_reset(partition, strategy)

    def _check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if not self._engine.subscriptions.is_assigned(partition):
                raise ValueError(f"{partition} is not assigned to this consumer")

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of ``partitions`` until :meth:`resume`; what was fetched of them is kept."""
        check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`."""
        check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.resume(partition)

    def paused(self) -> set[TopicPartition]:
        with self._guard:
            return self._engine.subscriptions.paused_partitions()

    # ---- Asking brokers ----------------------------------------------------------------------------------
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not.

        Raises
        ------
        KafkaTimeoutError
            If that took longer than ``timeout_ms`` (default: ``request_timeout_ms``).
        """
        return self._named_offsets(partitions, OffsetSpec.EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition; reading committed, the last stable offset.

        Raises as :meth:`beginning_offsets`.
        """
        return self._named_offsets(partitions, OffsetSpec.LATEST, timeout_ms)

    def _named_offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        check_partitions(wanted)
        with self._guard:
            self._check_open()
            asked = dict.fromkeys(wanted, int(spec))
            found = self._engine.offsets.fetch_offsets(asked, self._timer(timeout_ms))
        return {tp: found[tp].offset for tp in asked if found[tp].offset != UNKNOWN_OFFSET}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (ms since the epoch) in each partition; ``None`` where there
        is none.

        Raises
        ------
        ValueError
            For a negative time.
        KafkaTimeoutError
            As :meth:`beginning_offsets`.
        """
        check_partitions(timestamps)
        asked = {tp: int(timestamp) for tp, timestamp in timestamps.items()}
        for tp, timestamp in asked.items():
            if timestamp < 0:
                raise ValueError(f"the time asked for in {tp} is {timestamp}; it must not be negative")
        with self._guard:
            self._check_open()
            found = self._engine.offsets.fetch_offsets(asked, self._timer(timeout_ms))
        return {
            tp: None if found[tp].offset == UNKNOWN_OFFSET else OffsetAndTimestamp(*found[tp]) for tp in asked
        }

    def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics that this client may see, asked for anew by every call."""
        with self._guard:
            self._check_open()
            return set(self._engine.topics.fetch(self._timer(timeout_ms)))

    def partitions_by_topic(
        self, topics: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, set[int]]:
        """The partition numbers of ``topics``, of all by default; asked for anew by every call. A topic that
        does not exist is left out, and none is created.

        Raises
        ------
        TopicAuthorizationFailedError, InvalidTopicError
            For a topic that was asked for by name.
        KafkaTimeoutError
            If that took longer than ``timeout_ms`` (default: ``request_timeout_ms``).
        """
        wanted = None if topics is None else list(topics)
        with self._guard:
            self._check_open()
            return self._engine.topics.fetch(self._timer(timeout_ms), wanted)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int]:
        """The topic's partition numbers; empty if it does not exist."""
        with self._guard:
            self._check_open()
            known = self._engine.metadata.fetch().partitions_for_topic(topic)
            if known:
                return set(known)
            return self._engine.topics.fetch(self._timer(timeout_ms), [topic]).get(topic, set())
