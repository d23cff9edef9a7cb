"""kafka-python's import path of :class:`KafkaAdminClient`."""

from kafkacore.admin.kafka_admin_client import KafkaAdminClient

__all__ = ["KafkaAdminClient"]
