"""kafka-python's import path of :class:`Partitioner`."""

from kafkacore.producer.partitioner import Partitioner

__all__ = ["Partitioner"]
