"""The description of a topic to create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NewTopic:
    """A topic to create.

    Parameters
    ----------
    name:
        Up to 249 letters, digits, ``.``, ``_`` and ``-``.
    num_partitions, replication_factor:
        Numbers of partitions and of replicas. -1 stands for the broker's default. With
        ``replica_assignments`` both must be -1.
    replica_assignments:
        Partition → ids of the brokers with its replicas, the preferred leader first.
    topic_configs:
        Configuration values by Kafka's names, such as ``{"retention.ms": "86400000"}``.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    topic_configs: Mapping[str, str] = field(default_factory=dict)
