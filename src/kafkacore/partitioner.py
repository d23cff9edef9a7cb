"""The producer's partitioners, where kafka-python has them (``kafka.partitioner``)."""

from kafkacore.producer.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner, murmur2

__all__ = ["DefaultPartitioner", "Partitioner", "StickyPartitioner", "murmur2"]
