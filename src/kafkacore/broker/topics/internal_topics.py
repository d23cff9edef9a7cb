"""Names and settings of the internal topics, as in Kafka's ``Topic`` and coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_GROUPS_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})
#: Name of the log in which Kafka's controllers store the cluster's state. Clients cannot use it as a topic.
CLUSTER_METADATA: Final = "__cluster_metadata"


def is_internal(name: str | None) -> bool:
    """Return whether a topic is internal. Clients may not produce to internal topics."""
    return name in INTERNAL_TOPICS


def offsets_topic_settings(config: BrokerConfig) -> tuple[int, dict[str, str]]:
    """Return the number of partitions and the configuration with which to create ``__consumer_offsets``."""
    return config.offsets_topic_num_partitions, {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }


def transactions_topic_settings(config: BrokerConfig) -> tuple[int, dict[str, str]]:
    """Return the number of partitions and the configuration with which to create ``__transaction_state``."""
    return config.transaction_state_log_num_partitions, {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": str(config.transaction_state_log_segment_bytes),
    }
