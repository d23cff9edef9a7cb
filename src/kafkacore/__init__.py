"""kafkacore: the fastest way from Python to Apache Kafka.

    socket → Selector → KafkaChannel → NetworkReceive → message → record batch → Fetcher → KafkaConsumer
    socket ← Selector ← KafkaChannel ← NetworkSend    ← message ← record batch ← Sender  ← KafkaProducer

Layers, lowest first; a module imports only lower ones (``tests/test_layers.py``)::

    0 errors, structs, clock   1 wire, metrics   2 protocol, record   3 network   4 client
    5 producer, consumer, admin, broker   6 spark, bench   7 cli, testing
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacore.consumer import AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener
    from kafkacore.consumer import ConsumerInterceptor as ConsumerInterceptor
    from kafkacore.consumer import ConsumerRebalanceListener as ConsumerRebalanceListener
    from kafkacore.consumer import ConsumerRecord as ConsumerRecord
    from kafkacore.consumer import KafkaConsumer as KafkaConsumer
    from kafkacore.producer import KafkaProducer as KafkaProducer
    from kafkacore.producer import ProducerInterceptor as ProducerInterceptor
    from kafkacore.producer import ProducerRecord as ProducerRecord
    from kafkacore.serializer import DefaultSerializer as DefaultSerializer
    from kafkacore.serializer import Deserializer as Deserializer
    from kafkacore.serializer import JsonSerializer as JsonSerializer
    from kafkacore.serializer import Serializer as Serializer
    from kafkacore.structs import ConsumerGroupMetadata as ConsumerGroupMetadata
    from kafkacore.structs import IsolationLevel as IsolationLevel
    from kafkacore.structs import OffsetAndMetadata as OffsetAndMetadata
    from kafkacore.structs import OffsetAndTimestamp as OffsetAndTimestamp
    from kafkacore.structs import OffsetSpec as OffsetSpec
    from kafkacore.structs import TopicPartition as TopicPartition
    from kafkacore.structs import TopicPartitionReplica as TopicPartitionReplica

# Public name → where it lives. Imported when it is used: a part of the package does not load all of it.
_HOME = {
    "ConsumerGroupMetadata": "kafkacore.structs",
    "AsyncConsumerRebalanceListener": "kafkacore.consumer",
    "ConsumerInterceptor": "kafkacore.consumer",
    "ConsumerRebalanceListener": "kafkacore.consumer",
    "ConsumerRecord": "kafkacore.consumer",
    "DefaultSerializer": "kafkacore.serializer",
    "Deserializer": "kafkacore.serializer",
    "IsolationLevel": "kafkacore.structs",
    "JsonSerializer": "kafkacore.serializer",
    "KafkaConsumer": "kafkacore.consumer",
    "KafkaProducer": "kafkacore.producer",
    "OffsetAndMetadata": "kafkacore.structs",
    "OffsetAndTimestamp": "kafkacore.structs",
    "OffsetSpec": "kafkacore.structs",
    "ProducerInterceptor": "kafkacore.producer",
    "ProducerRecord": "kafkacore.producer",
    "Serializer": "kafkacore.serializer",
    "TopicPartition": "kafkacore.structs",
    "TopicPartitionReplica": "kafkacore.structs",
}


__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
