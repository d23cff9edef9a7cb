"""The producer, which sends records to a cluster.

A record and its acknowledgement pass through these classes::
    KafkaProducer.send → RecordSender → RecordAppender → PartitionQueue → ProducerBatch
        → RecordAccumulator.drain → Sender → NetworkClient
    FutureRecordMetadata ← ProduceResult ← ProducerBatch.complete ← Sender ← NetworkClient
"""

from kafkacore.future import Future
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.interceptors import ProducerInterceptor, ProducerRecord
from kafkacore.producer.kafka_producer import KafkaProducer
from kafkacore.producer.record_metadata import RecordMetadata

# Register the class, because some programs for kafka-python check isinstance(producer.send(…), Future).
Future.register(FutureRecordMetadata)

__all__ = [
    "BatchFuture",
    "FutureRecordMetadata",
    "KafkaProducer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
]
