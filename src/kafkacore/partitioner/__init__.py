"""The partitioners of the producer, in a module with the name of kafka-python's ``kafka.partitioner``."""

from kafkacore.producer.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner, murmur2

__all__ = ["DefaultPartitioner", "Partitioner", "StickyPartitioner", "murmur2"]
