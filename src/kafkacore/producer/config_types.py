"""Types of the settings of the producer; written by tools/settings.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kafkacore.client.config_types import ClientConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafkacore.settings.protocols import SupportsPartition, SupportsSerialize


class ProducerConfig(ClientConfig, total=False):
    """Keyword arguments of the producer; docs/SETTINGS.md has their defaults."""

    key_serializer: SupportsSerialize | Callable[..., object] | None
    """Function of the key, or `Serializer`, that returns its bytes; without one keys must be bytes."""

    value_serializer: SupportsSerialize | Callable[..., object] | None
    """Function of the value, or `Serializer`, that returns its bytes; without one values must be bytes."""

    interceptors: Sequence[object]
    """Objects that see each record before it is serialized and once it has its outcome (KIP-42)."""

    acks: int | Literal["all", "-1", "0", "1"]
    """Replicas that must have a record before it counts as written: all in-sync replicas (`all`, -1), the
    leader (1), none (0)."""

    enable_idempotence: bool
    """Whether retries keep each record in the log once and in order (KIP-679)."""

    transactional_id: str | None
    """Name that this producer keeps over restarts; records are sent in transactions."""

    transaction_timeout_ms: int
    """Time after which the broker aborts an open transaction."""

    delivery_timeout_ms: float
    """Time after `send()` by which each record has an outcome."""

    retries: float
    """How often a batch is sent again after an error that may pass."""

    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    """Codec of batches."""

    compression_level: int | None
    """Level of the codec; its own default if not given (KIP-390)."""

    batch_size: int
    """Largest batch of records, unless a single record is larger."""

    linger_ms: float
    """How long a batch waits for more records."""

    partitioner: SupportsPartition | Callable[..., int] | None
    """Chooses partitions: a `Partitioner`, or a function of the key's bytes, all partitions and those
    available. By default the hash of the key, as in Java."""

    partitioner_adaptive_partitioning_enable: bool
    """Whether records without a key go less often to partitions with a longer queue (KIP-794)."""

    partitioner_availability_timeout_ms: float
    """Time after which records without a key avoid a broker that accepts nothing; 0 for never (KIP-794)."""

    partitioner_ignore_keys: bool
    """Whether records with a key are partitioned as those without (KIP-794)."""

    buffer_memory: int
    """Memory of all batches; `send()` waits when it is used up."""

    max_block_ms: float
    """How long `send()` waits for metadata or memory."""

    max_request_size: int
    """Largest request, and largest record."""

    allow_auto_create_topics: bool
    """Whether brokers may create a topic that does not exist."""
