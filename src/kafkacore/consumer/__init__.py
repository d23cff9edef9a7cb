"""The consumer: reads records from Kafka, as Python objects or as Arrow columns."""

from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.hold import Hold
from kafkacore.consumer.interceptors import ConsumerInterceptor
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.listener import AsyncConsumerRebalanceListener, ConsumerRebalanceListener
from kafkacore.consumer.subscription_pattern import SubscriptionPattern

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "Hold",
    "KafkaConsumer",
    "RecordDeserializationError",
    "SubscriptionPattern",
]
