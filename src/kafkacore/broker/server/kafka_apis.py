"""From a frame to its answer: see :class:`~kafkacore.broker.server._kafka_apis.KafkaApis`."""

from kafkacore.broker.server._kafka_apis import MOST_ELEMENTS, KafkaApis

__all__ = ["MOST_ELEMENTS", "KafkaApis"]
