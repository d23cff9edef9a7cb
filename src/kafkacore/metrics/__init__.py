"""Metrics of a client: sensors record values, and metrics compute rates, averages and maxima from them.

Names and meanings are those of kafka-python and Apache Kafka.
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
