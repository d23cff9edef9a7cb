"""Topics that are the broker's own: which they are, and what they are made with.

Does not know: what is in them. Source: Kafka's ``Topic`` and ``GroupCoordinatorService``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_GROUPS_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})
#: What Kafka's controllers keep the cluster's state in, which is no topic of clients.
CLUSTER_METADATA: Final = "__cluster_metadata"


def is_internal(name: str | None) -> bool:
    """Whether Metadata says ``is_internal`` of a topic, and clients may not produce to it."""
    return name in INTERNAL_TOPICS


def offsets_topic_settings(config: BrokerConfig) -> tuple[int, dict[str, str]]:
    """Partitions and configs of ``__consumer_offsets`` when it is made."""
    return config.offsets_topic_num_partitions, {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }
