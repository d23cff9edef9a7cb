"""The producer: records in, acknowledgements out.

KafkaProducer.send → RecordAppender → PartitionQueue → ProducerBatch
    → RecordAccumulator.drain → Sender → NetworkClient
FutureRecordMetadata ← ProduceResult ← ProducerBatch.complete ← Sender ← NetworkClient
"""

from kafkacore.producer.future import FutureRecordMetadata
from kafkacore.producer.kafka import KafkaProducer
from kafkacore.producer.record_metadata import RecordMetadata

__all__ = ["FutureRecordMetadata", "KafkaProducer", "RecordMetadata"]
