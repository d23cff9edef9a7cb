"""A topic that is to be created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; -1 leaves the number to the broker.

    Parameters
    ----------
    name:
        Letters, digits, ``.``, ``_`` and ``-``, at most 249.
    num_partitions, replication_factor:
        Both -1 where ``replica_assignments`` says it.
    replica_assignments:
        Partition → ids of the brokers that hold it, the preferred leader first.
    topic_configs:
        Such as ``{"retention.ms": "86400000"}``.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    topic_configs: Mapping[str, str] = field(default_factory=dict)
