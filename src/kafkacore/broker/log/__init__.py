"""The broker's log: segments, indexes, recovery, retention, producers' state, in Kafka's on-disk format."""

from kafkacore.broker.log.config import LogConfig

__all__ = ["LogConfig"]
