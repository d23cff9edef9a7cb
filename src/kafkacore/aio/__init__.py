"""Clients for asyncio, with aiokafka's API."""

from kafkacore.aio._admin import AIOKafkaAdminClient
from kafkacore.aio._batch_builder import BatchBuilder
from kafkacore.aio._consumer import AIOKafkaConsumer
from kafkacore.aio._producer import AIOKafkaProducer
from kafkacore.consumer import AsyncConsumerRebalanceListener as ConsumerRebalanceListener
from kafkacore.consumer import ConsumerRecord
from kafkacore.errors import ConsumerStoppedError, IllegalOperation
from kafkacore.producer._produce_future import ProduceFuture
from kafkacore.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

__all__ = [
    "AIOKafkaAdminClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "BatchBuilder",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "ProduceFuture",
    "TopicPartition",
]
