"""Create topics on a broker, and wait until it serves them."""

from __future__ import annotations

from eventually import BUDGET_MS, eventually

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.errors import InvalidReplicationFactorError


def create_topics(servers: str, *topics: NewTopic) -> None:
    """Create topics, and wait until the leaders of all partitions serve them.

    Apache Kafka lists a partition before it serves it. In between, it may reject a producer's first batch and
    accept the second one, after which the first one is permanently out of order. A broker that stood still
    longer than its session can have no replicas until its next heartbeat.
    """
    counts = {topic.name: len(topic.replica_assignments) or topic.num_partitions for topic in topics}
    places = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    with KafkaAdminClient(bootstrap_servers=servers) as admin:

        def is_created() -> bool:
            try:
                admin.create_topics(list(topics))
            except InvalidReplicationFactorError:
                return False
            return True

        eventually(is_created)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        assert len(consumer.end_offsets(places, timeout_ms=BUDGET_MS)) == len(places)
