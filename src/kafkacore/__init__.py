"""kafkacore: the fastest way from Python to Apache Kafka.

    socket → Selector → KafkaChannel → NetworkReceive → message → record batch → Fetcher → KafkaConsumer
    socket ← Selector ← KafkaChannel ← NetworkSend    ← message ← record batch ← Sender  ← KafkaProducer

Layers, lowest first; a module imports only lower ones (``tests/unit/test_layers.py``)::

    0 errors, structs, clock   1 wire, metrics   2 protocol, record   3 network   4 client
    5 producer, consumer, admin, broker   6 spark, frames, bench   7 cli, testing
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient as KafkaAdminClient
    from kafkacore.consumer import AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener
    from kafkacore.consumer import ConsumerInterceptor as ConsumerInterceptor
    from kafkacore.consumer import ConsumerRebalanceListener as ConsumerRebalanceListener
    from kafkacore.consumer import ConsumerRecord as ConsumerRecord
    from kafkacore.consumer import KafkaConsumer as KafkaConsumer
    from kafkacore.consumer import SubscriptionPattern as SubscriptionPattern
    from kafkacore.frames import RecordDecoder as RecordDecoder
    from kafkacore.frames import read_topic as read_topic
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

    __version__: str

# Public name → module. A name is imported on first use, so that a program loads only what it uses.
_MODULE_OF = {
    "ConsumerGroupMetadata": "kafkacore.structs",
    "AsyncConsumerRebalanceListener": "kafkacore.consumer",
    "ConsumerInterceptor": "kafkacore.consumer",
    "ConsumerRebalanceListener": "kafkacore.consumer",
    "ConsumerRecord": "kafkacore.consumer",
    "DefaultSerializer": "kafkacore.serializer",
    "Deserializer": "kafkacore.serializer",
    "IsolationLevel": "kafkacore.structs",
    "JsonSerializer": "kafkacore.serializer",
    "KafkaAdminClient": "kafkacore.admin",
    "KafkaConsumer": "kafkacore.consumer",
    "KafkaProducer": "kafkacore.producer",
    "OffsetAndMetadata": "kafkacore.structs",
    "OffsetAndTimestamp": "kafkacore.structs",
    "OffsetSpec": "kafkacore.structs",
    "ProducerInterceptor": "kafkacore.producer",
    "ProducerRecord": "kafkacore.producer",
    "RecordDecoder": "kafkacore.frames",
    "Serializer": "kafkacore.serializer",
    "SubscriptionPattern": "kafkacore.consumer",
    "TopicPartition": "kafkacore.structs",
    "TopicPartitionReplica": "kafkacore.structs",
    "read_topic": "kafkacore.frames",
}


__all__ = sorted(_MODULE_OF)

_ONE_INTERPRETER = (
    "kafkacore's compiled modules can be loaded by only one interpreter per process, and this is a "
    "sub-interpreter. For mod_wsgi, set 'WSGIApplicationGroup %{GLOBAL}'. Use threads or processes instead "
    "of concurrent.interpreters."
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("kafkacore.installed_version").installed_version()
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(module_name)
    except ImportError as error:
        # In a subinterpreter, Cython raises this error with the message "module … does not support loading in
        # subinterpreters" or "Interpreter change detected".
        if "interpreter" in str(error).lower():
            raise ImportError(_ONE_INTERPRETER) from error
        raise
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, "__version__"})
