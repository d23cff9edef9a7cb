"""The topics of this broker by name and by id, and the rules for making and removing one.

Requests' wishes in, topics of the log manager out. Does not know: requests' formats, records, sockets.
Source of the rules: Kafka's ``ReplicationControlManager`` (create, delete) and ``Topic``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from kafkacore.broker import topic_names
from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.internal_topics import (
    CLUSTER_METADATA,
    OFFSETS_TOPIC,
    is_internal,
    offsets_topic_settings,
)
from kafkacore.broker.log_lines import event
from kafkacore.broker.topic_config import checked_topic_configs
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
    from kafkacore.broker.disk import DiskSpace
    from kafkacore.broker.log import LogManager, TopicState, UnifiedLog

logger = logging.getLogger(__name__)

ZERO_ID = UUID(int=0)


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
        self._names_by_id = {topic.topic_id.bytes: name for name, topic in log_manager.topics().items()}
        self._partition_count = sum(topic.partition_count for topic in log_manager.topics().values())

    def names(self) -> list[str]:
        """Every topic's name, in alphabetical order."""
        return sorted(self._log_manager.topics())

    def get(self, name: str) -> TopicState | None:
        """The topic of that name, or ``None``."""
        return self._log_manager.topics().get(name)

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
        if self.get(name) is not None:
            raise TopicAlreadyExistsError(f"Topic '{name}' already exists.")
        other = topic_names.colliding(name, self._log_manager.topics())
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

    def create(self, name: str, partition_count: int, configs: Mapping[str, str | None]) -> TopicState:
        """Make a topic, durable when this returns.

        Raises
        ------
        InvalidTopicError, TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError
            As Kafka's controller refuses it.
        """
        checked = self.check_new(name, partition_count, configs)
        topic_id = self._new_id()
        self._log_manager.create_topic(name, partition_count, topic_id, checked)
        self._names_by_id[topic_id.bytes] = name
        self._partition_count += partition_count
        logger.info(
            "created topic %s with %d partitions",
            name,
            partition_count,
            extra=event("topic_created", topic=name, partitions=partition_count),
        )
        return self._log_manager.topics()[name]

    def _new_id(self) -> UUID:
        while True:
            topic_id = UUID(int=self._clock.random.getrandbits(128), version=4)
            if topic_id.bytes not in self._names_by_id:
                return topic_id

    def grow(self, name: str, partition_count: int, *, validate_only: bool = False) -> None:
        """Give an existing topic ``partition_count`` partitions, more than it has.

        Raises
        ------
        InvalidPartitionsError
            More than this broker may have.
        """
        topic = self._log_manager.topics()[name]
        added = partition_count - topic.partition_count
        self._check_partition_count(partition_count, added)
        if not validate_only:
            self._log_manager.create_partitions(name, partition_count)
            self._partition_count += added
            logger.info(
                "topic %s has %d partitions now",
                name,
                partition_count,
                extra=event("topic_grown", topic=name, partitions=partition_count),
            )

    def replace_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Let ``configs``, checked, be all that is set for a topic that there is; durable on return."""
        self._log_manager.update_topic_configs(name, configs)

    def delete(self, name: str) -> None:
        """Remove a topic and its records; :class:`UnknownTopicOrPartitionError` if there is none."""
        topic = self.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
        self._log_manager.delete_topic(name)
        del self._names_by_id[topic.topic_id.bytes]
        self._partition_count -= topic.partition_count
        logger.info("deleted topic %s", name, extra=event("topic_deleted", topic=name))
        for partition in range(topic.partition_count):
            for removed in self.on_removed:
                removed(TopicPartition(name, partition))

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

    def auto_create(self, names: Iterable[str]) -> dict[str, int]:
        """Make those of ``names`` that are missing, with ``num.partitions``; name → code of a refusal.

        The topic of groups' offsets is made as its owner wants it; others that are brokers' own, not at all.
        """
        refused: dict[str, int] = {}
        for name in names:
            is_ours = is_internal(name) or name == CLUSTER_METADATA
            if self.get(name) is None and (name == OFFSETS_TOPIC or not is_ours):
                settings: tuple[int, dict[str, str]] = (self.config.num_partitions, {})
                if name == OFFSETS_TOPIC:
                    settings = offsets_topic_settings(self.config)
                try:
                    self.create(name, *settings)
                except (InvalidTopicError, InvalidPartitionsError, OSError) as error:
                    refused[name] = error_code(error)
        return refused
