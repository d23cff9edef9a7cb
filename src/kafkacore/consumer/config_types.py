"""Types of the settings of the consumer; written by tools/settings.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kafkacore.client.config_types import ClientConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafkacore.settings.protocols import SupportsDeserialize


class ConsumerConfig(ClientConfig, total=False):
    """Keyword arguments of the consumer; docs/SETTINGS.md has their defaults."""

    group_id: str | None
    """Name of the consumer group; without one no partitions are assigned by a group and no offsets
    committed."""

    group_instance_id: str | None
    """Name of a static member, which may restart without a rebalance (KIP-345)."""

    key_deserializer: SupportsDeserialize | Callable[..., object] | None
    """Function of the key's bytes, or `Deserializer`; without one keys are bytes."""

    value_deserializer: SupportsDeserialize | Callable[..., object] | None
    """Function of the value's bytes, or `Deserializer`; without one values are bytes."""

    auto_offset_reset: str | None
    """Where a partition without a valid offset is read from; with `none` an error is raised."""

    isolation_level: Literal["read_uncommitted", "read_committed"]
    """Whether records of open and aborted transactions are returned."""

    fetch_min_bytes: int
    """Bytes that a broker waits for before it answers a fetch."""

    fetch_max_bytes: int
    """Most bytes of records in a response, unless the first batch is larger."""

    fetch_max_wait_ms: int
    """How long a broker waits for `fetch_min_bytes`."""

    max_partition_fetch_bytes: int
    """Most bytes of records of one partition in a response, unless the first batch is larger."""

    max_poll_records: int
    """Most records that `poll()` returns."""

    consumer_timeout_ms: float
    """How long iteration waits for a record before it ends."""

    check_crcs: bool
    """Whether the checksum of each batch is checked."""

    max_decompressed_size: float
    """Largest batch after decompression, so that a small response cannot fill the memory."""

    enable_incremental_fetch_sessions: bool
    """Whether fetches name only the partitions that have changed (KIP-227)."""

    exclude_internal_topics: bool
    """Whether a pattern leaves out the internal topics of Kafka."""

    allow_auto_create_topics: bool
    """Whether brokers may create a topic that does not exist."""

    client_rack: str | None
    """Rack of the consumer; it fetches from a replica there if there is one (KIP-392)."""

    interceptors: Sequence[object]
    """Objects that see records before they are returned and offsets once they are committed (KIP-42)."""

    enable_auto_commit: bool
    """Whether positions are committed in the background."""

    auto_commit_interval_ms: float
    """Time between two such commits."""

    default_offset_commit_callback: Callable[..., object] | None
    """Called with the offsets and the error, or `None`, after a commit in the background."""

    group_protocol: Literal["classic"]
    """Protocol of the group (KIP-848); only the classic one is supported."""

    partition_assignment_strategy: object
    """How the group divides its partitions, best first."""

    max_poll_interval_ms: float
    """Time between two calls of `poll()` after which the consumer leaves its group."""

    session_timeout_ms: float
    """Time without a heartbeat after which the group goes on without the member."""

    heartbeat_interval_ms: float
    """Time between two heartbeats."""
