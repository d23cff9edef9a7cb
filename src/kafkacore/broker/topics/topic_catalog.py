"""The topics of this broker by name and by id, and the rules for making and removing one.

Requests' wishes in, topics of the log manager out. Does not know: requests' formats, records, sockets.
Source of the rules: Kafka's ``ReplicationControlManager`` (create, delete) and ``Topic``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafkacore.broker.config import topic_names
from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.topic_config import checked_topic_configs
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.log_lines import event
from kafkacore.broker.purgatory.change_queue import Change, ChangeQueue, run_here
from kafkacore.broker.topics.internal_topics import (
    CLUSTER_METADATA,
    OFFSETS_TOPIC,
    is_internal,
    offsets_topic_settings,
)
from kafkacore.clock import Clock
from kafkacore.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    KafkaStorageError,
    TopicAlreadyExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import LogManager, TopicState, UnifiedLog
    from kafkacore.broker.storage.disk import DiskSpace

logger = logging.getLogger(__name__)

#: Partitions that a topic may have to be made at once, where somebody waits for it: a few milliseconds.
MAX_CREATED_AT_ONCE = 50
#: Removed partitions that the network thread reports to others in one turn.
FORGOTTEN_PER_TURN = 200


def _nothing(*_: object) -> None:
    """Nobody wants to know."""


class TopicCatalog:
    """Used by the network thread alone.

    Parameters
    ----------
    log_manager:
        Keeps the topics; what it has at start is what the catalog has.
    config:
        Number of partitions of an auto-created topic, defaults of topic configs, limits. May be replaced.
    clock:
        Source of the random topic ids.
    """

    def __init__(
        self,
        log_manager: LogManager,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._log_manager = log_manager
        self.config = config
        self._clock = clock
        #: Called with each partition of a deleted topic, so that whoever waits on it is answered.
        self.on_removed: list[Callable[[TopicPartition], None]] = []
        #: Who does what takes long; here and now if nobody says otherwise.
        self.changes = ChangeQueue()
        # As they were after the last change: another thread may be in the midst of the next.
        self._topics = log_manager.topics()
        self._names_by_id = {topic.topic_id.bytes: name for name, topic in self._topics.items()}
        self._partition_count = sum(topic.partition_count for topic in self._topics.values())
        # Names of topics that are to be made, of those whose partitions are being made or removed, and only
        # of the latter.
        self._to_be_made: set[str] = set()
        self._changing: set[str] = set()
        self._going: set[str] = set()

    def names(self) -> list[str]:
        """Every topic's name, in alphabetical order."""
        return sorted(self._topics)

    def get(self, name: str) -> TopicState | None:
        """The topic of that name, or ``None``."""
        return self._topics.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of the topic with that id, or ``None``."""
        return self._names_by_id.get(topic_id.bytes)

    def log(self, topic_partition: TopicPartition) -> UnifiedLog:
        """The log of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is none.
        KafkaStorageError
            Its disk has failed.
        """
        log = self._log_manager.log(topic_partition)
        if log is None:
            raise UnknownTopicOrPartitionError(
                f"This broker has no partition {partition_name(topic_partition)}"
            )
        if log.failure is not None:
            raise KafkaStorageError(log.failure)
        return log

    def disk_space(self) -> DiskSpace:
        """What the volume that holds the logs has room for; ``OSError`` if it does not say."""
        return self._log_manager.disk_space()

    def effective_configs(self, topic: TopicState) -> dict[str, str]:
        """Every config key of ``topic`` with the value in force."""
        return self.config.topic_defaults() | dict(topic.configs)

    def check_new(self, name: str, partition_count: int, configs: Mapping[str, str | None]) -> dict[str, str]:
        """Raise what speaks against making this topic; its checked configs if nothing does."""
        topic_names.validate(name)
        if name in self._topics or name in self._changing:
            raise TopicAlreadyExistsError(f"Topic '{name}' already exists.")
        other = topic_names.colliding(name, [*self._topics, *self._changing])
        if other is not None:
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")
        self._check_partition_count(partition_count, partition_count)
        return checked_topic_configs(configs)

    def _check_partition_count(self, partition_count: int, added: int) -> None:
        if partition_count < 1:
            raise InvalidPartitionsError("Number of partitions was set to an invalid non-positive value.")
        limit = self.config.max_partitions
        if added > limit - self._partition_count:
            raise InvalidPartitionsError(
                f"{added} more partitions exceed this broker's limit of {limit} (max.partitions)"
            )

    def create(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        on_checked: Callable[[], None] = _nothing,
    ) -> TopicState:
        """Make a topic here and now, durable when this returns; for few partitions.

        ``on_checked`` is called as by :meth:`create_soon`.

        Raises
        ------
        InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError
            As Kafka's controller refuses it.
        """
        return run_here(self._creating(name, partition_count, configs, on_checked))

    def create_soon(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        on_done: Callable[[TopicState | Exception], None],
        on_checked: Callable[[], None] = _nothing,
    ) -> None:
        """Make a topic while others are served. Until all of it is made, nobody knows it.

        Parameters
        ----------
        on_done:
            Called with the topic, durable then, or with what :meth:`create` raises.
        on_checked:
            Called when nothing speaks against it any more, before it is made.
        """
        if name in self._to_be_made:
            on_done(TopicAlreadyExistsError(f"Topic '{name}' already exists."))
            return
        self._to_be_made.add(name)

        def done(outcome: TopicState | Exception) -> None:
            self._to_be_made.discard(name)
            on_done(outcome)

        self.changes.submit(self._creating(name, partition_count, configs, on_checked), done)

    def _creating(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        on_checked: Callable[[], None],
    ) -> Change[TopicState]:
        checked = self.check_new(name, partition_count, configs)
        topic_id = self._new_id()
        on_checked()
        self._names_by_id[topic_id.bytes] = name
        yield from self._making(
            name,
            range(partition_count),
            lambda: self._log_manager.create_topic(name, partition_count, topic_id, checked),
            lambda: self._names_by_id.pop(topic_id.bytes),
        )
        logger.info(
            "created topic %s with %d partitions",
            name,
            partition_count,
            extra=event("topic_created", topic=name, partitions=partition_count),
        )
        return self._topics[name]

    def _making(
        self,
        name: str,
        partitions: range,
        make: Callable[[], object],
        on_failure: Callable[[], object] = _nothing,
    ) -> Change[None]:
        """Have ``partitions`` made. They count at once, so that nobody else may take the same room."""
        self._partition_count += len(partitions)
        try:
            with self._change_of(name):
                yield make
        except Exception:
            self._partition_count -= len(partitions)
            on_failure()
            yield from self._forget(name, partitions)
            raise

    @contextmanager
    def _change_of(self, name: str) -> Iterator[None]:
        """While a topic's partitions are made or removed, perhaps by another thread."""
        self._changing.add(name)
        try:
            yield
        finally:
            self._changing.discard(name)
            self._look()

    def _look(self) -> None:
        """Take over what there is, but for a topic that is being removed: its logs may be gone."""
        topics = self._log_manager.topics()
        if self._going & topics.keys():
            topics = {name: topic for name, topic in topics.items() if name not in self._going}
        self._topics = topics

    def _forget(self, name: str, partitions: range) -> Change[None]:
        """Partitions are no more, or have not come to be: tell those who know of them, some at a time."""
        for count, partition in enumerate(partitions):
            for removed in self.on_removed:
                removed(TopicPartition(name, partition))
            if count % FORGOTTEN_PER_TURN == FORGOTTEN_PER_TURN - 1:
                yield None

    def _new_id(self) -> UUID:
        while True:
            topic_id = UUID(int=self._clock.random.getrandbits(128), version=4)
            if topic_id.bytes not in self._names_by_id:
                return topic_id

    def check_growth(self, name: str, partition_count: int) -> range:
        """The partitions that a topic lacks to have ``partition_count``.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such topic.
        InvalidPartitionsError
            Not more than it has, or more than this broker may have.
        """
        topic = self.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
        added = partition_count - topic.partition_count
        if added <= 0:
            raise InvalidPartitionsError(
                f"The topic {name} currently has {topic.partition_count} partition(s); "
                f"{partition_count} would not be an increase."
            )
        self._check_partition_count(partition_count, added)
        return range(topic.partition_count, partition_count)

    def grow_soon(
        self,
        name: str,
        partition_count: int,
        on_done: Callable[[Exception | None], None],
        on_checked: Callable[[range], None] = _nothing,
    ) -> None:
        """Give a topic ``partition_count`` partitions while others are served; the new come all at once.

        Parameters
        ----------
        on_done:
            Called when they are durable, or with what :meth:`check_growth` raises or the disk says.
        on_checked:
            Called with the new partitions when nothing speaks against them any more; may raise what does.
        """
        self.changes.submit(self._growing(name, partition_count, on_checked), on_done)

    def _growing(self, name: str, partition_count: int, on_checked: Callable[[range], None]) -> Change[None]:
        added = self.check_growth(name, partition_count)
        on_checked(added)
        yield from self._making(
            name, added, lambda: self._log_manager.create_partitions(name, partition_count)
        )
        logger.info(
            "topic %s has %d partitions now",
            name,
            partition_count,
            extra=event("topic_grown", topic=name, partitions=partition_count),
        )

    def replace_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Let ``configs``, checked, be all that is set for a topic that there is; durable on return."""
        self._log_manager.update_topic_configs(name, configs)
        self._look()

    def delete_soon(self, name: str, on_done: Callable[[TopicState | Exception], None]) -> None:
        """Remove a topic and its records while others are served; one that is being made, when it is.

        ``on_done`` is called with it when it is gone for good and everybody knows, or with what speaks
        against it.
        """
        self.changes.submit(self._deleting(name), on_done)

    def _deleting(self, name: str) -> Change[TopicState]:
        topic = self.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        with self._change_of(name):
            self._going.add(name)
            self._look()
            try:
                yield lambda: self._log_manager.delete_topic(name)
            finally:
                self._going.discard(name)
        del self._names_by_id[topic.topic_id.bytes]
        self._partition_count -= topic.partition_count
        logger.info("deleted topic %s", name, extra=event("topic_deleted", topic=name))
        yield from self._forget(name, range(topic.partition_count))
        return topic

    def delete_records(self, topic_partition: TopicPartition, before_offset: int) -> int:
        """Let a partition begin at ``before_offset``, durable on return; where it begins now.

        Raises
        ------
        OffsetOutOfRangeError, KafkaStorageError, OSError
            As the log refuses it.
        """
        return self._log_manager.delete_records(topic_partition, before_offset)

    def name_of_bytes(self, topic_id: bytes) -> str:
        """As :meth:`name_of`, of an id as it travels: 16 bytes.

        Raises
        ------
        UnknownTopicIdError
            No topic has it.
        """
        found = self._names_by_id.get(topic_id)
        if found is None:
            raise UnknownTopicIdError(f"No topic has the id {UUID(bytes=topic_id)}")
        return found

    def auto_create(
        self, names: Iterable[str], place: Callable[[str, range], None] = _nothing
    ) -> dict[str, int]:
        """Make those of ``names`` that are missing, with ``num.partitions``; name → code of a refusal.

        The topic of groups' offsets is made as its owner wants it; others that are brokers' own, not at all.
        Topics of many partitions are made meanwhile: who asks again finds them.

        Parameters
        ----------
        place:
            Called with a topic's name and its partitions before they are made; not of the offsets topic.
        """
        refused: dict[str, int] = {}
        for name in names:
            is_ours = is_internal(name) or name == CLUSTER_METADATA
            if self.get(name) is None and (name == OFFSETS_TOPIC or not is_ours):
                count: int = self.config.num_partitions
                configs: dict[str, str] = {}
                on_checked: Callable[[], None] = partial(place, name, range(count))
                if name == OFFSETS_TOPIC:
                    (count, configs), on_checked = offsets_topic_settings(self.config), _nothing
                try:
                    self.create_unless_slow(name, count, configs, on_checked)
                except (
                    InvalidTopicError,
                    InvalidPartitionsError,
                    UnknownTopicOrPartitionError,
                    OSError,
                ) as error:
                    refused[name] = error_code(error)
        return refused

    def create_unless_slow(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str],
        on_checked: Callable[[], None] = _nothing,
    ) -> None:
        """Make a topic that is not there, now if it is small, else soon.

        Raises
        ------
        UnknownTopicOrPartitionError
            It is not yet there.
        InvalidTopicError, InvalidPartitionsError, OSError
            As :meth:`create`.
        """
        if name not in self._changing and partition_count <= MAX_CREATED_AT_ONCE:
            self.create(name, partition_count, configs, on_checked)
            return
        if name not in self._to_be_made and name not in self._changing:
            self.check_new(name, partition_count, configs)
            self.create_soon(name, partition_count, configs, _log_refusal, on_checked)
        if self.get(name) is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' is being made.")


def _log_refusal(outcome: TopicState | Exception) -> None:
    if isinstance(outcome, Exception):
        logger.error("a topic that was asked for could not be made: %s", outcome)
