"""kafka-python's import path of :class:`DefaultPartitioner`."""

from kafkacore.producer.partitioner import DefaultPartitioner, murmur2

__all__ = ["DefaultPartitioner", "murmur2"]
