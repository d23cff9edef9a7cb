"""kafka-python's import path of the future and the result of ``send()``."""

from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.record_metadata import RecordMetadata

__all__ = ["FutureRecordMetadata", "RecordMetadata"]
