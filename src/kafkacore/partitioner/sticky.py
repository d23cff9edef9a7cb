"""kafka-python's import path of :class:`StickyPartitioner`."""

from kafkacore.producer.partitioner import StickyPartitioner

__all__ = ["StickyPartitioner"]
