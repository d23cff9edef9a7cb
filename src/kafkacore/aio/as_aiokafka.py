"""Let programs and libraries that import aiokafka use kafkacore instead.

    import kafkacore.aio.as_aiokafka  # before anything that imports aiokafka
    from faststream.kafka import KafkaBroker

The import registers modules with aiokafka's names, such as ``aiokafka.structs``, that contain kafkacore's
classes.

Raises
------
ImportError
    aiokafka has already been imported in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

from kafkacore import errors, structs
from kafkacore.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafkacore.aio._admin import AIOKafkaAdminClient
from kafkacore.aio._aiokafka_record import AiokafkaRecord, AnyRecord
from kafkacore.aio._consumer import AIOKafkaConsumer
from kafkacore.aio._producer import AIOKafkaProducer
from kafkacore.consumer import ConsumerRebalanceListener
from kafkacore.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafkacore.producer.partitioner import DefaultPartitioner
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.security.sasl.oauthbearer import AbstractTokenProvider
from kafkacore.structs import TopicPartition


class _AdminClient(AIOKafkaAdminClient):
    """An admin client whose results have aiokafka's form where FastStream reads them."""

    async def create_topics(  # type: ignore[override]
        self, new_topics: Iterable[NewTopic], timeout_ms: int | None = None, validate_only: bool = False
    ) -> _CreatedTopics:
        created = await super().create_topics(new_topics, timeout_ms, validate_only, raise_errors=False)
        return _CreatedTopics(
            [(each["name"], each["error_code"], each["error_message"]) for each in created["topics"]]
        )


class _CreatedTopics:
    """The result of ``create_topics`` in aiokafka's form."""

    def __init__(self, topic_errors: list[tuple[str, int, str | None]]) -> None:
        self.topic_errors = topic_errors

    def to_object(self) -> dict[str, Any]:
        """Return the fields of the response as a dict."""
        names = ("topic", "error_code", "error_message")
        return {"topic_errors": [dict(zip(names, each, strict=True)) for each in self.topic_errors]}


class _Consumer(AIOKafkaConsumer):
    """A consumer with aiokafka's records, and the private names of aiokafka that FastStream reads."""

    async def getone(self, *partitions: TopicPartition) -> AnyRecord:  # type: ignore[override]
        return AiokafkaRecord.of(await super().getone(*partitions))

    async def __anext__(self) -> AnyRecord:  # type: ignore[override]
        return AiokafkaRecord.of(await super().__anext__())

    async def getmany(  # type: ignore[override]
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[AnyRecord]]:
        found = await super().getmany(*partitions, timeout_ms=timeout_ms, max_records=max_records)
        return {tp: [AiokafkaRecord.of(record) for record in records] for tp, records in found.items()}

    @property
    def _group_id(self) -> str | None:
        group_id: str | None = self._consumer.config["group_id"]
        return group_id

    @property
    def _coordinator(self) -> SimpleNamespace:
        member_id = "" if self._group_id is None else self.group_metadata().member_id
        return SimpleNamespace(member_id=member_id)

    @property
    def _subscription(self) -> SimpleNamespace:
        return SimpleNamespace(topics=self.subscription())


class _Producer(AIOKafkaProducer):
    """A producer with the private name of aiokafka that FastStream reads."""

    @property
    def _closed(self) -> bool:
        return self._producer is not None and self._producer._accumulator.records.closed


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


_CONSUMER = {"AIOKafkaConsumer": _Consumer}
_PRODUCER = {"AIOKafkaProducer": _Producer}
_ADMIN = {"AIOKafkaAdminClient": _AdminClient}
_ADMIN_TYPES = {
    "ConfigResource": ConfigResource,
    "ConfigResourceType": ConfigResourceType,
    "NewPartitions": NewPartitions,
    "NewTopic": NewTopic,
}
_STRUCTS = {**_public(structs), "ConsumerRecord": AiokafkaRecord, "RecordMetadata": RecordMetadata}
_ABC = {
    "AbstractTokenProvider": AbstractTokenProvider,
    "ConsumerRebalanceListener": ConsumerRebalanceListener,
}
_ASSIGNORS = "aiokafka.coordinator.assignors"

#: Name of a module → its contents.
_CONTENTS: dict[str, dict[str, Any]] = {
    "aiokafka": {
        **_CONSUMER,
        **_PRODUCER,
        "ConsumerRebalanceListener": ConsumerRebalanceListener,
        "ConsumerRecord": AiokafkaRecord,
        "OffsetAndMetadata": structs.OffsetAndMetadata,
        "OffsetAndTimestamp": structs.OffsetAndTimestamp,
        "TopicPartition": structs.TopicPartition,
        # The release whose API the clients have.
        "__version__": "0.14.0",
    },
    "aiokafka.abc": _ABC,
    "aiokafka.admin": _ADMIN | _ADMIN_TYPES,
    "aiokafka.admin.client": _ADMIN,
    "aiokafka.consumer": _CONSUMER,
    "aiokafka.consumer.consumer": _CONSUMER,
    "aiokafka.coordinator": {},
    _ASSIGNORS: {},
    f"{_ASSIGNORS}.abstract": {"AbstractPartitionAssignor": AbstractPartitionAssignor},
    f"{_ASSIGNORS}.range": {"RangePartitionAssignor": RangePartitionAssignor},
    f"{_ASSIGNORS}.roundrobin": {"RoundRobinPartitionAssignor": RoundRobinPartitionAssignor},
    f"{_ASSIGNORS}.sticky": {},
    f"{_ASSIGNORS}.sticky.sticky_assignor": {"StickyPartitionAssignor": StickyPartitionAssignor},
    "aiokafka.errors": _public(errors),
    "aiokafka.partitioner": {"DefaultPartitioner": DefaultPartitioner},
    "aiokafka.producer": _PRODUCER,
    "aiokafka.producer.producer": {**_PRODUCER, "_missing": object()},
    "aiokafka.structs": _STRUCTS,
}


def _register() -> None:
    if "aiokafka" in sys.modules:
        raise ImportError("aiokafka has already been imported: import kafkacore.aio.as_aiokafka before it")
    for name, contents in _CONTENTS.items():
        module = ModuleType(name, f"kafkacore's classes under the name {name}.")
        module.__path__ = []
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


_register()
