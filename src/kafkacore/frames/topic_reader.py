"""Read a range of a topic into one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kafkacore.frames.positions import Positions, check_positions, ranges_to_read
from kafkacore.frames.record_decoder import TIMESTAMP_UNIT, TIMEZONE, RecordDecoder
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.consumer.config_types import ConsumerConfig

#: Maximum duration of one poll, in milliseconds.
POLL_MS = 500
#: Maximum bytes of the keys, values or headers of a partition that are decoded at once, unless a single
#: record is larger.
MAX_COLUMN_BYTES = 64 * 1024 * 1024


def read_topic(
    topic: str,
    *,
    start: Positions = "earliest",
    end: Positions = "latest",
    key_format: str = "binary",
    value_format: str = "binary",
    schema: pa.Schema | str | None = None,
    key_schema: pa.Schema | str | None = None,
    columns: Sequence[str] | None = None,
    flatten: bool = True,
    mode: str = "PERMISSIVE",
    format_options: Mapping[str, object] | None = None,
    idle_timeout_ms: float = 120_000,
    **configs: Unpack[ConsumerConfig],
) -> pa.Table:
    """Read the records of a topic into a ``pyarrow.Table``.

    The offsets at which the read ends are looked up once at its beginning, so that it also ends while
    producers write. It uses no group and commits nothing.

    Parameters
    ----------
    topic:
        Name of the topic.
    start, end:
        Where the read starts, and where it ends (exclusive). ``"earliest"``, ``"latest"``, an offset, a
        ``datetime`` with a time zone, or a mapping from partition numbers to these. A time means the first
        record at or after it. A partition that the mapping does not name is read from ``"earliest"``, or to
        ``"latest"``. An offset outside of the log means the nearest end of the log.
    key_format, value_format, schema, key_schema, columns, flatten, mode, format_options:
        As in :class:`RecordDecoder`. With Avro, a schema registry and no schema, the fields are those of the
        latest schema of the subject ``<topic>-value`` or ``<topic>-key``.
    idle_timeout_ms:
        Maximum time without progress, in milliseconds.
    **configs:
        Settings of the consumer, such as ``bootstrap_servers`` and ``isolation_level``.

    Returns
    -------
    pyarrow.Table
        The records in the order of partitions and offsets. By default, its columns are ``topic``,
        ``partition``, ``offset``, ``timestamp``, ``key``, ``value`` and ``headers``. See ``flatten`` in
        :class:`RecordDecoder` for values with fields.

    Raises
    ------
    ModuleNotFoundError
        pyarrow is not installed.
    KafkaConfigurationError
        An argument or a setting is invalid.
    UnknownTopicOrPartitionError
        The topic does not exist, or a mapping names a partition that does not exist.
    MalformedRecordError
        A record cannot be decoded, and ``mode`` is ``FAILFAST``.
    OffsetOutOfRangeError
        Retention deleted records during the read.
    KafkaTimeoutError
        The brokers returned nothing within ``idle_timeout_ms``.
    """
    check_positions("start", start)
    check_positions("end", end)
    if configs.get("group_id") is not None:
        raise KafkaConfigurationError("read_topic reads without a group: remove group_id")
    registry: dict[str, object] = {"value.subject": f"{topic}-value", "key.subject": f"{topic}-key"}
    proxy = configs.get("proxy_url") or configs.get("socks5_proxy")
    if proxy is not None:
        registry["schema.registry.proxy.url"] = proxy
    decoder = RecordDecoder(
        key_format=key_format,
        value_format=value_format,
        schema=schema,
        key_schema=key_schema,
        columns=columns,
        flatten=flatten,
        mode=mode,
        format_options={**registry, **(format_options or {})},
    )
    configs = {"auto_offset_reset": "none", "enable_auto_commit": False, **configs}
    with KafkaConsumer(**configs) as consumer:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise UnknownTopicOrPartitionError(f"topic {topic!r} does not exist")
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        ranges = ranges_to_read(consumer, partitions, start, end)
        return read_ranges(consumer, ranges, decoder, idle_timeout_ms)


def read_ranges(
    consumer: KafkaConsumer,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    decoder: RecordDecoder,
    idle_timeout_ms: float,
    clock: Clock = SYSTEM_CLOCK,
) -> pa.Table:
    """Read ranges of offsets into one table.

    Parameters
    ----------
    consumer:
        Consumer that has no assignment.
    ranges:
        Partition → first offset, and offset at which to stop.
    decoder:
        Decoder of the records.
    idle_timeout_ms:
        Maximum time without progress, in milliseconds.
    clock:
        Clock that measures ``idle_timeout_ms``.

    Raises
    ------
    KafkaTimeoutError
        The brokers returned nothing within ``idle_timeout_ms``.
    """
    import pyarrow as pa

    consumer.assign(list(ranges))
    for tp, (first, _) in ranges.items():
        consumer.seek(tp, first)
    ends = {tp: end for tp, (_, end) in ranges.items()}
    found: dict[TopicPartition, list[pa.RecordBatch]] = {tp: [] for tp in sorted(ranges)}
    positions = {tp: first for tp, (first, _) in ranges.items()}
    last_progress_ms = clock.monotonic_ms()
    while unread := [tp for tp, end in ends.items() if positions[tp] < end]:
        polled = consumer.poll_arrow(
            min(POLL_MS, idle_timeout_ms),
            columns=decoder.fetched,
            timestamp_unit=TIMESTAMP_UNIT,
            timezone=TIMEZONE,
            end_offsets=ends,
            max_column_bytes=MAX_COLUMN_BYTES,
        )
        for tp, columns in polled.items():
            found[tp] += decoder.batches(tp, columns)
        before, positions = positions, {tp: consumer.position(tp) for tp in ranges}
        if positions != before:
            last_progress_ms = clock.monotonic_ms()
        elif clock.monotonic_ms() - last_progress_ms > idle_timeout_ms:
            raise KafkaTimeoutError(
                f"{partition_name(unread[0])}: received no record from offset {positions[unread[0]]} within "
                f"{idle_timeout_ms} ms (idle_timeout_ms); the read ends at offset {ends[unread[0]]}"
            )
    return pa.Table.from_batches(
        [batch for batches in found.values() for batch in batches], schema=decoder.schema
    )
