"""OpenTelemetry: spans, metrics and W3C trace context of producers and consumers.

This package needs the extra ``kafkacore[otel]``, which installs OpenTelemetry's API. The program chooses the
SDK and its exporters. Names follow the semantic conventions for messaging and Kafka (version 1.27 and later).
"""

from kafkacore.otel.clients import traced_consumer, traced_producer
from kafkacore.otel.consumer_interceptor import OpenTelemetryConsumerInterceptor
from kafkacore.otel.producer_interceptor import OpenTelemetryProducerInterceptor

__all__ = [
    "OpenTelemetryConsumerInterceptor",
    "OpenTelemetryProducerInterceptor",
    "traced_consumer",
    "traced_producer",
]
