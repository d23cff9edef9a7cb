"""The partitioners of the producer, under the module name that kafka-python has (``kafka.partitioner``)."""

from kafkacore.producer.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner, murmur2

__all__ = ["DefaultPartitioner", "Partitioner", "StickyPartitioner", "murmur2"]
