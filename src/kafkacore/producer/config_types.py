"""Types of the settings of the producer; written by tools/settings.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kafkacore.client.config_types import ClientConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafkacore.settings.protocols import SupportsPartition, SupportsSerialize


class ProducerConfig(ClientConfig, total=False):
    """Keyword arguments of the producer; the reference has their defaults."""

    key_serializer: SupportsSerialize | Callable[..., object] | None
    """Converts a key to bytes: a function of the key, or a `Serializer`. Without a serializer, keys must be
    bytes."""

    value_serializer: SupportsSerialize | Callable[..., object] | None
    """Converts a value to bytes: a function of the value, or a `Serializer`. Without a serializer, values
    must be bytes."""

    interceptors: Sequence[object]
    """Objects whose methods are called with each record before it is serialized, and after it is
    acknowledged or has failed (KIP-42). See `ProducerInterceptor`."""

    acks: int | Literal["all", "-1", "0", "1"]
    """How many replicas must have written a record before the broker acknowledges it. `all` (or -1) is all
    in-sync replicas, the safest. 1 is the leader alone: a record is lost if the leader fails before the
    record is replicated. 0 does not wait for any response: failures go unnoticed and offsets are
    unknown."""

    enable_idempotence: bool
    """Whether the producer prevents retries from duplicating or reordering records within a partition
    (KIP-679). This needs `acks="all"`, `retries` above 0 and at most 5
    `max_in_flight_requests_per_connection`. If another value is given for one of these settings,
    idempotence is switched off with a warning. If `enable_idempotence=True` is given too, an error is
    raised."""

    transactional_id: str | None
    """Name that identifies this producer across restarts and enables transactions. Only one process at a
    time may use a name: a new producer fences the earlier one with the same name. Transactions need brokers
    that support them, such as Apache Kafka."""

    transaction_timeout_ms: int
    """How long a transaction may stay open, in milliseconds, before the broker aborts it. It must not
    exceed the broker's `transaction.max.timeout.ms` (15 minutes by default)."""

    delivery_timeout_ms: float
    """Time after `send()`, in milliseconds, within which a record is acknowledged or fails. It covers the
    wait in the batch, all retries and the wait for responses, and must be at least `linger_ms` plus
    `request_timeout_ms`. A record that has failed by this limit may be in the log nevertheless: see
    `possibly_persisted`."""

    retries: float
    """Maximum number of retries of a batch after retriable errors. By default `delivery_timeout_ms` is the
    only limit. To change the limit, set `delivery_timeout_ms` rather than `retries`. 0 switches retries and
    idempotence off."""

    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    """Codec of batches. `None` and `"none"` do not compress. `lz4` and `zstd` are good first choices.
    Larger batches compress better: see `batch_size` and `linger_ms`."""

    compression_level: int | None
    """Level of the codec (KIP-390): 1 to 9 for gzip, 1 to 17 for lz4, -131072 to 22 for zstd; snappy has
    none. A higher level is slower and compresses more. `None` is the codec's default level."""

    batch_size: int
    """Largest batch of one partition, in bytes. A record that is larger has a batch of its own. A larger
    batch gives more throughput and takes more memory. 0 puts each record in a batch of its own."""

    linger_ms: float
    """How long a batch that is not full waits for more records, in milliseconds. 0 sends as soon as the
    connection allows; records that arrive in the meantime still share a batch. 5 to 50 gives larger batches
    and more throughput."""

    partitioner: SupportsPartition | Callable[..., int] | None
    """Chooses the partition if `send()` gets no partition: a `Partitioner`, or a function of the key's
    bytes, all partitions and the available partitions. By default the hash of the key decides, as in
    Kafka's Java client, and records without a key go to the same partition until a batch is full."""

    partitioner_adaptive_partitioning_enable: bool
    """Whether records without a key are sent less often to partitions whose broker is slow. The length of a
    partition's queue shows how slow the broker is (KIP-794)."""

    partitioner_availability_timeout_ms: float
    """Time, in milliseconds, after which records without a key avoid a partition whose broker accepts no
    batches (KIP-794). 0 switches this off. The setting has an effect only with
    `partitioner_adaptive_partitioning_enable`."""

    partitioner_ignore_keys: bool
    """Whether to choose the partition of a record with a key as if the record had no key (KIP-794). Records
    with equal keys are then in different partitions."""

    buffer_memory: int
    """Memory for all records that are not yet acknowledged, in bytes. When it is used up, `send()` waits
    for up to `max_block_ms`."""

    max_block_ms: float
    """How long `send()` waits for metadata or for memory, in milliseconds, before it raises
    `KafkaTimeoutError`. It also limits the calls of transactions that have no time limit of their own."""

    max_request_size: int
    """Largest request, and largest record before compression, in bytes. A larger record raises
    `MessageSizeTooLargeError`. The broker's `message.max.bytes` and the topic's `max.message.bytes` are
    limits too."""

    allow_auto_create_topics: bool
    """Whether the broker may create a topic that does not exist when a record is sent to it. The broker's
    `auto.create.topics.enable` must allow this too."""
