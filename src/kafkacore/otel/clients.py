"""Create clients with OpenTelemetry interceptors in one call."""

from __future__ import annotations

from typing import Unpack

from kafkacore.consumer import KafkaConsumer
from kafkacore.consumer.config_types import ConsumerConfig
from kafkacore.otel.consumer_interceptor import OpenTelemetryConsumerInterceptor
from kafkacore.otel.producer_interceptor import OpenTelemetryProducerInterceptor
from kafkacore.producer import KafkaProducer
from kafkacore.producer.config_types import ProducerConfig


def traced_producer(**configs: Unpack[ProducerConfig]) -> KafkaProducer:
    """Return a producer with an :class:`OpenTelemetryProducerInterceptor` after its other interceptors.

    Parameters
    ----------
    **configs:
        Settings of :class:`~kafkacore.KafkaProducer`.
    """
    telemetry = OpenTelemetryProducerInterceptor(configs.get("client_id"))
    configs["interceptors"] = [*configs.get("interceptors", ()), telemetry]
    return KafkaProducer(**configs)


def traced_consumer(
    *topics: str, **configs: Unpack[ConsumerConfig]
) -> tuple[KafkaConsumer, OpenTelemetryConsumerInterceptor]:
    """Return a consumer with an :class:`OpenTelemetryConsumerInterceptor`, and the interceptor.

    Parameters
    ----------
    *topics:
        Topics to subscribe to.
    **configs:
        Settings of :class:`~kafkacore.KafkaConsumer`.
    """
    telemetry = OpenTelemetryConsumerInterceptor(configs.get("group_id"), configs.get("client_id"))
    configs["interceptors"] = [telemetry, *configs.get("interceptors", ())]
    return KafkaConsumer(*topics, **configs), telemetry
