"""Figures of a client: values in as things happen, rates, averages and maxima of the last while out.

Sensor.record → samples of some seconds each → KafkaMetric.value, by name in a Metrics. Names and meanings are
kafka-python's and Apache Kafka's. Does not know: what is counted.
"""

from kafkacore.metrics._sensor import Sensor
from kafkacore.metrics.authentications import Authentications
from kafkacore.metrics.metric import KafkaMetric, MetricName
from kafkacore.metrics.registry import MetricConfig, Metrics
from kafkacore.metrics.reporter import DictReporter, MetricsReporter

__all__ = [
    "Authentications",
    "DictReporter",
    "KafkaMetric",
    "MetricConfig",
    "MetricName",
    "Metrics",
    "MetricsReporter",
    "Sensor",
]
