"""Asking and changing the cluster: topics so far. ``client`` is the façade; ``requester`` asks and waits."""

from kafkacore.admin.client import KafkaAdminClient
from kafkacore.admin.new_topic import NewTopic

__all__ = ["KafkaAdminClient", "NewTopic"]
