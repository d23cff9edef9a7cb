"""The consumer settings that a group member uses. Times are in milliseconds."""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.settings import Config
from kafkacore.structs import INT32_MAX

#: Time to wait for the JoinGroup response after the rebalance timeout, in milliseconds. The coordinator may
#: not answer before that timeout expires.
JOIN_GROUP_TIMEOUT_LAPSE_MS = 5000.0


class GroupSettings(NamedTuple):
    """Settings of a group member, under their names in the consumer's configuration."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: float = 45_000
    heartbeat_interval_ms: float = 3000
    max_poll_interval_ms: float = 300_000
    retry_backoff_ms: float = 100
    retry_backoff_max_ms: float = 1000
    request_timeout_ms: float = 30_000
    client_rack: str | None = None
    exclude_internal_topics: bool = True
    group_remote_assignor: str | None = None

    @classmethod
    def of(cls, config: Config) -> GroupSettings:
        """Return the settings of a group member from a consumer's configuration."""
        return cls(
            group_id=config["group_id"],
            group_instance_id=config["group_instance_id"],
            session_timeout_ms=config["session_timeout_ms"],
            heartbeat_interval_ms=config["heartbeat_interval_ms"],
            max_poll_interval_ms=config["max_poll_interval_ms"],
            retry_backoff_ms=config["retry_backoff_ms"],
            retry_backoff_max_ms=config["retry_backoff_max_ms"],
            request_timeout_ms=config["request_timeout_ms"],
            client_rack=config["client_rack"] or None,
            exclude_internal_topics=config["exclude_internal_topics"],
            group_remote_assignor=config["group_remote_assignor"] or None,
        )

    @property
    def is_static(self) -> bool:
        """Whether the member is static and keeps its partitions across restarts (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def rebalance_timeout_ms(self) -> int:
        """Rebalance timeout of JoinGroup: ``max_poll_interval_ms``, limited to 32 bits."""
        return int(min(self.max_poll_interval_ms, INT32_MAX))

    @property
    def join_timeout_ms(self) -> float:
        """Request timeout of JoinGroup, which the coordinator answers after all members have joined."""
        return max(self.request_timeout_ms, self.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)
