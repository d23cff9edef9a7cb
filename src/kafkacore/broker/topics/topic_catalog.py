"""The topics of this broker by name and by id, and the operations that create, change and delete them.

The behaviour is that of Kafka's ``ReplicationControlManager`` and ``Topic``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

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
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition, partition_name
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.log import LogManager, TopicState, UnifiedLog
    from kafkacore.broker.storage.disk import DiskSpace

logger = logger_of(__name__)

#: Maximum number of partitions of a topic that is created on the network thread. Creating this number takes a
#: few milliseconds.
MAX_CREATED_AT_ONCE = 50
#: Maximum number of removed partitions for which the network thread calls ``on_removed`` without a break.
FORGOTTEN_PER_TURN = 200


def _nothing(*_: object) -> None:
    """Do nothing. This is the default of the callbacks."""


class TopicCatalog:
    """Catalog of topics. Only the network thread may use it.

    Parameters
    ----------
    log_manager:
        Stores the topics and their logs.
    config:
        Defaults of topic configuration, limits, and settings of auto-created topics. The configuration may be
        replaced at run time.
    clock:
        Source of random topic ids.
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
        #: Called with each partition of a deleted topic, so that waiting requests can be answered.
        self.on_removed: list[Callable[[TopicPartition], None]] = []
        #: Queue of changes. The default queue has no worker thread and completes each change at once.
        self.changes = ChangeQueue()
        #: Number of changes of topics since the start. Callers compare this number to detect changes cheaply.
        self.version = 0
        # The topics after the last complete change. The worker thread may already be working on the next
        # change.
        self._topics = log_manager.topics()
        self._names_by_id = {topic.topic_id: name for name, topic in self._topics.items()}
        self._partition_count = sum(topic.partition_count for topic in self._topics.values())
        # Names of topics that are waiting to be created or being created.
        self._to_be_made: set[str] = set()
        # Names of topics whose partitions are being created or deleted.
        self._changing: set[str] = set()
        # Names of topics that are being deleted.
        self._going: set[str] = set()

    def names(self) -> list[str]:
        """Return the names of all topics in alphabetical order."""
        return sorted(self._topics)

    def get(self, name: str) -> TopicState | None:
        """Return the topic with this name, or ``None``."""
        return self._topics.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of the topic with this id, or ``None``."""
        return self._names_by_id.get(topic_id)

    def existing_name(self, topic_id: Uuid) -> str:
        """Return the name of the topic with this id.

        Raises
        ------
        UnknownTopicIdError
            No topic has this id.
        """
        found = self._names_by_id.get(topic_id)
        if found is None:
            raise UnknownTopicIdError(f"No topic has the id {topic_id}")
        return found

    def log(self, topic_partition: TopicPartition) -> UnifiedLog:
        """Return the log of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
            The partition does not exist.
        KafkaStorageError
            The log is offline.
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
        """Return the size and the free space of the file system of the logs.

        Raises
        ------
        OSError
            The file system does not report its size.
        """
        return self._log_manager.disk_space()

    def effective_configs(self, topic: TopicState) -> dict[str, str]:
        """Return the effective value of every configuration key of ``topic``."""
        return self.config.topic_defaults() | dict(topic.configs)

    def check_new(self, name: str, partition_count: int, configs: Mapping[str, str | None]) -> dict[str, str]:
        """Check that a topic can be created, and return its checked configuration.

        Raises
        ------
        InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError
            The topic cannot be created.
        """
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
                f"adding {added} partitions would exceed this broker's limit of {limit} partitions "
                f"(max.partitions)"
            )

    def create(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str | None],
        on_checked: Callable[[], None] = _nothing,
    ) -> TopicState:
        """Create a topic with few partitions on the calling thread. The topic is durable on return.

        ``on_checked`` is called as in :meth:`create_soon`.

        Raises
        ------
        InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError
            The topic cannot be created, as in Kafka.
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
        """Create a topic without blocking the network thread. The topic is visible when it is complete.

        Parameters
        ----------
        name:
            Name of the topic.
        partition_count:
            Number of partitions.
        configs:
            Configuration values of the topic.
        on_done:
            Called with the topic when it is durable, or with an exception that :meth:`create` raises.
        on_checked:
            Called after the checks and before the topic is created. The function may raise an exception to
            reject the topic.
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
        self._names_by_id[topic_id] = name
        yield from self._making(
            name,
            range(partition_count),
            lambda: self._log_manager.create_topic(name, partition_count, topic_id, checked),
            lambda: self._names_by_id.pop(topic_id),
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
        """Create partitions.

        They count towards the limit at once, so that concurrent changes respect the limit.
        """
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
        """Mark a topic as changing while the worker thread creates or deletes its partitions."""
        self._changing.add(name)
        try:
            yield
        finally:
            self._changing.discard(name)
            self._look()

    def _look(self) -> None:
        """Update the topics from the log manager.

        Leave out topics that are being deleted, because their logs may already be removed.
        """
        topics = self._log_manager.topics()
        if self._going & topics.keys():
            topics = {name: topic for name, topic in topics.items() if name not in self._going}
        self._topics = topics
        self.version += 1

    def _forget(self, name: str, partitions: range) -> Change[None]:
        """Call ``on_removed`` for partitions that were deleted or could not be created, a few at a time."""
        for count, partition in enumerate(partitions):
            for removed in self.on_removed:
                removed(TopicPartition(name, partition))
            if count % FORGOTTEN_PER_TURN == FORGOTTEN_PER_TURN - 1:
                yield None

    def _new_id(self) -> Uuid:
        while True:
            topic_id = Uuid.from_random_bits(self._clock.random.getrandbits(128))
            if topic_id not in self._names_by_id:
                return topic_id

    def check_growth(self, name: str, partition_count: int) -> range:
        """Return the numbers of the partitions to add so that a topic has ``partition_count`` partitions.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic does not exist.
        InvalidPartitionsError
            The topic already has as many partitions, or the broker's limit would be exceeded.
        """
        topic = self.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        added = partition_count - topic.partition_count
        if added == 0:
            raise InvalidPartitionsError(f"Topic already has {partition_count} partition(s).")
        if added < 0:
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
        """Add partitions to a topic without blocking the network thread.

        All new partitions become visible at the same time.

        Parameters
        ----------
        name:
            Name of the topic.
        partition_count:
            New number of partitions.
        on_done:
            Called with ``None`` when the partitions are durable, with an exception that :meth:`check_growth`
            raises, or with an ``OSError``.
        on_checked:
            Called with the new partitions after the checks and before they are created. This function may
            raise an exception to reject the partitions.
        """
        self.changes.submit(self._growing(name, partition_count, on_checked), on_done)

    def _growing(self, name: str, partition_count: int, on_checked: Callable[[range], None]) -> Change[None]:
        added = self.check_growth(name, partition_count)
        on_checked(added)
        yield from self._making(
            name, added, lambda: self._log_manager.create_partitions(name, partition_count)
        )
        logger.info(
            "topic %s now has %d partitions",
            name,
            partition_count,
            extra=event("topic_grown", topic=name, partitions=partition_count),
        )

    def replace_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configuration of an existing topic with checked values.

        The new configuration is durable on return.
        """
        self._log_manager.update_topic_configs(name, configs)
        self._look()

    def delete_soon(
        self,
        name: str,
        on_done: Callable[[TopicState | Exception], None],
        on_checked: Callable[[TopicState], None] = _nothing,
    ) -> None:
        """Delete a topic and its records without blocking the network thread.

        If the topic is being created, it is deleted when the creation is complete.

        Parameters
        ----------
        name:
            Name of the topic.
        on_done:
            Called with the topic when it has been deleted and all listeners have been notified, or with an
            exception.
        on_checked:
            Called with the topic before it is deleted. The function may raise an exception to keep the topic.
        """
        self.changes.submit(self._deleting(name, on_checked), on_done)

    def _deleting(self, name: str, on_checked: Callable[[TopicState], None]) -> Change[TopicState]:
        topic = self.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        on_checked(topic)
        with self._change_of(name):
            self._going.add(name)
            self._look()
            try:
                yield lambda: self._log_manager.delete_topic(name)
            finally:
                self._going.discard(name)
        del self._names_by_id[topic.topic_id]
        self._partition_count -= topic.partition_count
        logger.info("deleted topic %s", name, extra=event("topic_deleted", topic=name))
        yield from self._forget(name, range(topic.partition_count))
        return topic

    def delete_records(self, topic_partition: TopicPartition, before_offset: int) -> int:
        """Delete the records of a partition before an offset, and return the new log start offset.

        The log start offset is durable on return.

        Raises
        ------
        OffsetOutOfRangeError
            The offset is outside the log.
        KafkaStorageError, OSError
            The disk has failed.
        """
        return self._log_manager.delete_records(topic_partition, before_offset)

    def auto_create(
        self, names: Iterable[str], place: Callable[[str, range], None] = _nothing
    ) -> dict[str, int]:
        """Create the missing topics among ``names`` with ``num.partitions`` partitions.

        ``__consumer_offsets`` gets its own settings, and other internal topics are not created. A topic with
        many partitions is created in the background, and clients must retry until it exists.

        Parameters
        ----------
        names:
            Names of topics.
        place:
            Called with the name and the partitions of a topic before it is created, but not for
            ``__consumer_offsets``. The function may raise an exception to reject the topic.

        Returns
        -------
        dict
            Error code of each topic that does not exist yet.
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
        """Create a missing topic, at once if it is small and otherwise in the background.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic is being created. Retry later.
        InvalidTopicError, InvalidPartitionsError, OSError
            See :meth:`create`.
        """
        if name not in self._changing and partition_count <= MAX_CREATED_AT_ONCE:
            self.create(name, partition_count, configs, on_checked)
            return
        if name not in self._to_be_made and name not in self._changing:
            self.check_new(name, partition_count, configs)
            self.create_soon(name, partition_count, configs, _log_refusal, on_checked)
        if self.get(name) is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' is being created.")


def _log_refusal(outcome: TopicState | Exception) -> None:
    if isinstance(outcome, Exception):
        logger.error("failed to create a topic in the background: %s", outcome)
