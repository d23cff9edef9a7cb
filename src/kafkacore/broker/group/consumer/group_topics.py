"""Ids and numbers of partitions of the topics of consumer groups, and a hash that detects changes.

Kafka's hash also covers the racks of the replicas. This hash does not cover racks, because all replicas of
this broker are on one machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.topics.topic_catalog import TopicCatalog

#: Maximum number of subscriptions whose topic ids are cached.
MAX_KEPT_SUBSCRIPTIONS = 10_000


class GroupTopics:
    """Looks up the topics of consumer groups. Only the network thread may use it.

    Parameters
    ----------
    catalog:
        Catalog of the topics.
    """

    def __init__(self, catalog: TopicCatalog) -> None:
        self._catalog = catalog
        self._ids: dict[frozenset[str], frozenset[Uuid]] = {}
        self._ids_version = catalog.version

    @property
    def version(self) -> int:
        """Number of changes of topics since the start of the broker."""
        return self._catalog.version

    def names(self) -> list[str]:
        """Return the names of all topics in alphabetical order."""
        return self._catalog.names()

    def name_of(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic, or ``None`` if it does not exist."""
        return self._catalog.name_of(topic_id)

    def id_of(self, name: str) -> Uuid | None:
        """Return the id of a topic, or ``None`` if it does not exist."""
        topic = self._catalog.get(name)
        return None if topic is None else topic.topic_id

    def ids(self, names: frozenset[str]) -> frozenset[Uuid]:
        """Return the ids of the topics that exist. The result for equal subscriptions is the same object."""
        if self._ids_version != self._catalog.version or len(self._ids) > MAX_KEPT_SUBSCRIPTIONS:
            self._ids.clear()
            self._ids_version = self._catalog.version
        ids = self._ids.get(names)
        if ids is None:
            topics = map(self._catalog.get, names)
            ids = self._ids[names] = frozenset(topic.topic_id for topic in topics if topic is not None)
        return ids

    def partition_counts(self, topic_ids: Iterable[Uuid]) -> dict[Uuid, int]:
        """Return the number of partitions of each topic that exists."""
        counts = {}
        for topic_id in topic_ids:
            name = self._catalog.name_of(topic_id)
            topic = None if name is None else self._catalog.get(name)
            if topic is not None:
                counts[topic_id] = topic.partition_count
        return counts

    def metadata_hash(self, names: Collection[str]) -> int:
        """Return a signed 64-bit hash of the topics that exist, or 0 if no topic exists.

        The hash changes when a topic is created, deleted or recreated, or gets more partitions.
        """
        topics = [topic for name in sorted(names) if (topic := self._catalog.get(name)) is not None]
        if not topics:
            return 0
        digest = blake2b(digest_size=8)
        for topic in topics:
            digest.update(topic.topic_id.bytes)
            digest.update(topic.partition_count.to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True)
