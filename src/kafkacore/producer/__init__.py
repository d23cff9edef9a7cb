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

# Some programs check isinstance(producer.send(…), Future), as with kafka-python.
Future.register(FutureRecordMetadata)

__all__ = [
    "BatchFuture",
    "FutureRecordMetadata",
    "KafkaProducer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
]
