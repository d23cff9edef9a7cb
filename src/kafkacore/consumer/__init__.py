"""Reading records: topics or partitions in, records or Arrow columns out.

Does not know: producing, the broker's insides.
"""

from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.hold import Hold
from kafkacore.consumer.interceptors import ConsumerInterceptor
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.listener import AsyncConsumerRebalanceListener, ConsumerRebalanceListener

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "Hold",
    "KafkaConsumer",
    "RecordDeserializationError",
]
