"""kafka-python's import path of :class:`KafkaProducer`."""

from kafkacore.producer.kafka_producer import KafkaProducer

__all__ = ["KafkaProducer"]
