"""Request dispatch: decode a frame, call the API's handler, encode the response."""

from kafkacore.broker.server._kafka_apis import MAX_ELEMENTS, KafkaApis

__all__ = ["MAX_ELEMENTS", "KafkaApis"]
