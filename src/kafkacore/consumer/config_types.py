"""Types of the settings of the consumer; written by tools/settings.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kafkacore.client.config_types import ClientConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafkacore.settings.protocols import SupportsDeserialize
    from kafkacore.structs import IsolationLevel


class ConsumerConfig(ClientConfig, total=False):
    """Keyword arguments of the consumer; the reference has their defaults."""

    group_id: str | None
    """Name of the consumer group. All consumers with the same name share the partitions of their topics,
    and each continues at the offsets that the group has committed. With `None` the consumer belongs to no
    group: it reads all partitions and cannot commit offsets."""

    group_instance_id: str | None
    """Name that identifies this member of the group across restarts (static membership, KIP-345). A member
    that returns within `session_timeout_ms` gets the same partitions without a rebalance. Each member needs
    a name of its own."""

    key_deserializer: SupportsDeserialize | Callable[..., object] | None
    """Function or `Deserializer` that converts the bytes of a key to an object. By default keys are
    bytes."""

    value_deserializer: SupportsDeserialize | Callable[..., object] | None
    """Function or `Deserializer` that converts the bytes of a value to an object. By default values are
    bytes."""

    auto_offset_reset: str | None
    """Where to start in a partition that has no committed offset, or whose offset has been deleted from the
    log: `earliest` is the first record, `latest` is the end, `by_duration:PT1H` is one hour ago, and `none`
    raises an error. It has no effect where a valid offset is committed."""

    isolation_level: IsolationLevel | Literal["read_uncommitted", "read_committed"]
    """Whether to return records of transactions that are open or aborted. `read_committed` returns only
    records of committed transactions and records outside of transactions, and reads up to the first open
    transaction."""

    fetch_min_bytes: int
    """Minimum amount of data, in bytes, that a broker collects before it answers a fetch, unless
    `fetch_max_wait_ms` passes first. A larger value costs latency and saves requests."""

    fetch_max_bytes: int
    """Maximum number of record bytes in the response to one fetch. A first batch that is larger is returned
    nevertheless, so that the consumer can make progress."""

    fetch_max_wait_ms: int
    """How long a broker waits for `fetch_min_bytes`, in milliseconds. The time must be less than
    `request_timeout_ms`."""

    busy_poll_ms: float
    """How long `poll()` looks for responses without sleeping, in milliseconds, before it waits for them. A
    record that arrives in this time is returned sooner by the time that a thread needs to wake up, some
    0.05 ms. In return the consumer uses up to a whole processor core."""

    max_partition_fetch_bytes: int
    """Maximum number of record bytes of one partition in the response to one fetch. A first batch that is
    larger is returned nevertheless. To load large partitions faster, raise this limit together with
    `fetch_max_bytes`."""

    max_poll_records: int
    """Maximum number of records that one call of `poll()` returns. This limit does not change how much is
    fetched: the consumer keeps the other records for the next call. Use a lower value if the program cannot
    process so many records within `max_poll_interval_ms`."""

    consumer_timeout_ms: float
    """How long a `for` loop over the consumer waits for the next record, in milliseconds, before the loop
    ends. By default the loop waits without limit."""

    check_crcs: bool
    """Whether to verify the checksum of each batch. Without this check the consumer may return records that
    were damaged on the disk or in the network."""

    max_decompressed_size: float
    """Largest size of a batch after decompression, in bytes. A larger batch raises
    `DecompressedTooLargeError`, so that a small response cannot exhaust the memory."""

    enable_incremental_fetch_sessions: bool
    """Whether a fetch request names only the partitions that have changed since the previous request
    (KIP-227). This saves bandwidth when the consumer reads many partitions."""

    exclude_internal_topics: bool
    """Whether a subscription by pattern leaves out Kafka's internal topics, such as
    `__consumer_offsets`."""

    allow_auto_create_topics: bool
    """Whether the broker may create a topic that the consumer subscribes to and that does not exist. The
    broker's `auto.create.topics.enable` must allow it too."""

    client_rack: str | None
    """Rack or availability zone of the consumer, such as `eu-west-1a`. The consumer then fetches from a
    replica in the same rack if the brokers have a replica selector (KIP-392)."""

    interceptors: Sequence[object]
    """Objects whose methods are called with the records before `poll()` returns them, and with the offsets
    after a commit (KIP-42). See `ConsumerInterceptor`."""

    enable_auto_commit: bool
    """Whether the consumer commits its positions by itself: every `auto_commit_interval_ms`, in `close()`,
    and before it gives up partitions. Records that `poll()` has returned may be committed before the
    program has processed them. If no record may be lost, commit offsets yourself. Without a `group_id`
    nothing is committed."""

    auto_commit_interval_ms: float
    """Time between two automatic commits, in milliseconds, if `enable_auto_commit` is true. After a crash,
    records read since the last commit may be read again."""

    default_offset_commit_callback: Callable[..., object] | None
    """Function that is called after each automatic commit, and after `commit_async()` without a callback,
    with the offsets and the error (`None` on success)."""

    group_protocol: Literal["classic", "consumer"]
    """Protocol of group membership. With `classic` a member of the group assigns the partitions. With
    `consumer` the broker assigns them (KIP-848). This protocol requires Apache Kafka 4.0 or newer."""

    group_remote_assignor: str | None
    """Name of the broker's assignor, such as `uniform` or `range`, with `group_protocol="consumer"`. With
    `None` the broker uses the first assignor of its `group.consumer.assignors`."""

    partition_assignment_strategy: object
    """How the group assigns partitions to its members: one or several assignors, each a class, an object or
    a name (`range`, `roundrobin`, `sticky`, `cooperative-sticky`). The group uses the first assignor that
    all members support. It cannot be set with `group_protocol="consumer"`: use `group_remote_assignor`."""

    max_poll_interval_ms: float
    """Longest time between two calls of `poll()`, in milliseconds. After that time the consumer leaves the
    group, and its partitions are assigned to other members. If processing takes longer, raise this time,
    lower `max_poll_records`, or use `hold()`."""

    session_timeout_ms: float
    """How long the group waits for a heartbeat, in milliseconds, before it considers the member dead and
    assigns its partitions to other members. It must be larger than `heartbeat_interval_ms`, and within the
    broker's `group.min.session.timeout.ms` and `group.max.session.timeout.ms`. It cannot be set with
    `group_protocol="consumer"`: the broker's `group.consumer.session.timeout.ms` applies."""

    heartbeat_interval_ms: float
    """Time between two heartbeats, in milliseconds. A heartbeat shows that the member is alive, and its
    response announces rebalances. The interval should be at most a third of `session_timeout_ms`.
    Heartbeats do not depend on calls of `poll()` and do not need the GIL. The interval cannot be set with
    `group_protocol="consumer"`: the broker's `group.consumer.heartbeat.interval.ms` applies."""
