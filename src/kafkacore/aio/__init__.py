"""Clients for asyncio, with aiokafka's API."""

from kafkacore.aio._consumer import AIOKafkaConsumer

__all__ = ["AIOKafkaConsumer"]
