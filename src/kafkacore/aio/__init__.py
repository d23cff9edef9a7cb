"""Clients for asyncio, with aiokafka's API."""

from kafkacore.aio._admin import AIOKafkaAdminClient
from kafkacore.aio._batch_builder import BatchBuilder
from kafkacore.aio._consumer import AIOKafkaConsumer
from kafkacore.aio._producer import AIOKafkaProducer
from kafkacore.producer._produce_future import ProduceFuture

__all__ = ["AIOKafkaAdminClient", "AIOKafkaConsumer", "AIOKafkaProducer", "BatchBuilder", "ProduceFuture"]
