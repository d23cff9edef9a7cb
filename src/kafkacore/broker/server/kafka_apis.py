"""From a frame to its answer: see :class:`~kafkacore.broker.server._kafka_apis.KafkaApis`."""

from kafkacore.broker.server._kafka_apis import MAX_ELEMENTS, KafkaApis

__all__ = ["MAX_ELEMENTS", "KafkaApis"]
