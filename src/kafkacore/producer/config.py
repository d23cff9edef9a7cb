"""The settings of the producer and their checks.

Names and defaults are those of kafka-python. Settings that all clients share are in ``client.config``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kafkacore.client.config import defaults, resolve
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.producer._producer_id_state import MAX_IN_FLIGHT
from kafkacore.producer.partitioner import FunctionPartitioner
from kafkacore.record.compression import CODECS, check_level
from kafkacore.settings import Config, SettingType, table
from kafkacore.settings.checks import (
    at_least,
    boolean,
    checks,
    finite,
    literal,
    objects_with,
    refuse,
    setting,
    text_or_none,
    whole,
)
from kafkacore.structs import INT32_MAX, Compression

logger = logger_of("kafkacore.producer")


COMPRESSIONS = {codec.name.lower(): codec for codec in Compression}


class ProducerConfigurationError(KafkaConfigurationError, ValueError):
    """A setting is unknown or has an invalid value.

    The class is also a ``ValueError``, because kafka-python's producer raises a ``ValueError``.
    """


@checks('int | Literal["all", "-1", "0", "1"]', "0, 1, -1 or `all`")
def _acks(name: str, value: object) -> int:
    acks = {"all": -1, "-1": -1, "0": 0, "1": 1}.get(value, value) if isinstance(value, str) else value
    if isinstance(acks, bool) or not isinstance(acks, int | float) or acks not in (-1, 0, 1):
        raise refuse(name, value, "0, 1 or 'all'")
    return int(acks)


@checks(f"{literal(COMPRESSIONS)} | None")
def _compression(name: str, value: object) -> Compression:
    codec = COMPRESSIONS.get("none" if value is None else value) if isinstance(value, str | None) else None
    if codec is None:
        raise refuse(name, value, f"None or one of {', '.join(COMPRESSIONS)}")
    return codec


@checks("int | None", "a level of the codec", SettingType.INT)
def _level(name: str, value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise refuse(name, value, "a whole number, or None for the codec's default")
    return value


def _check_level(codec: Compression, level: int | None) -> None:
    try:
        if level is not None:
            check_level(codec, level)
    except ValueError:
        levels = CODECS[codec].levels
        assert levels is not None, "check_level accepts any level of a codec without levels"
        wanted = f"between {levels.lowest} and {levels.highest} for {codec.name.lower()}"
        raise refuse("compression_level", level, wanted) from None


@checks("SupportsSerialize | Callable[..., object] | None", kind=SettingType.CLASS)
def _serializer(name: str, value: object) -> object:
    if value is not None and not callable(getattr(value, "serialize", value)):
        raise refuse(
            name, value, "None, a function of the value, or an object with serialize(topic, headers, data)"
        )
    return value


@checks("SupportsPartition | Callable[..., int] | None", kind=SettingType.CLASS)
def _partitioner(name: str, value: object) -> object:
    if value is None or (callable(getattr(value, "partition", None)) and not isinstance(value, type)):
        return value
    if isinstance(value, type) or not callable(value):
        raise refuse(
            name,
            value,
            "an object with a method partition(), such as a kafkacore.partitioner.Partitioner, or a function "
            "of the key's bytes, all partitions and the available partitions",
        )
    return FunctionPartitioner(value)


@checks("str | None", "not empty")
def _transactional_id(name: str, value: object) -> str | None:
    checked = text_or_none(name, value)
    if checked == "":
        raise refuse(name, value, "a name that stays the same across restarts, or None")
    return checked


@checks("int", "at least 1", SettingType.INT)
def _transaction_timeout(name: str, value: object) -> int:
    timeout_ms = whole(1)(name, value)
    if timeout_ms > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX} milliseconds")
    return timeout_ms


def _settle_idempotence(config: Config, given: Mapping[str, object]) -> None:
    """Disable idempotence if another setting excludes it.

    If idempotence was requested explicitly, raise an error instead (KIP-679).
    """
    is_transactional = config["transactional_id"] is not None
    if not config["enable_idempotence"]:
        if is_transactional:
            raise KafkaConfigurationError(
                f"transactional_id={config['transactional_id']!r} needs idempotence: "
                "remove enable_idempotence=False"
            )
        return
    in_flight = "max_in_flight_requests_per_connection"
    conflicts = [
        f"{name}={given[name]!r}"
        for name, is_conflict in (
            ("acks", config["acks"] != -1),
            ("retries", config["retries"] == 0),
            (in_flight, config[in_flight] > MAX_IN_FLIGHT),
        )
        if is_conflict
    ]
    if conflicts and (is_transactional or "enable_idempotence" in given):
        asked = "transactional_id" if is_transactional else "enable_idempotence=True"
        raise KafkaConfigurationError(
            f"{asked} needs acks='all', retries above 0 and at most {MAX_IN_FLIGHT} {in_flight}, "
            f"not {', '.join(conflicts)}"
        )
    if conflicts:
        logger.warning(
            "idempotence is disabled because of %s: a record may be written twice if a response is lost",
            ", ".join(conflicts),
        )
        config["enable_idempotence"] = False


def _settle_delivery_timeout(config: Config, given: Mapping[str, object]) -> None:
    """Reject a ``delivery_timeout_ms`` below ``linger_ms`` + ``request_timeout_ms``, as in Java's producer.

    If the user did not set ``delivery_timeout_ms``, raise the default to that sum.
    """
    least_ms = config["linger_ms"] + config["request_timeout_ms"]
    if config["delivery_timeout_ms"] >= least_ms:
        return
    if "delivery_timeout_ms" in given:
        raise KafkaConfigurationError(
            f"delivery_timeout_ms={config['delivery_timeout_ms']!r}: it must be at least linger_ms + "
            f"request_timeout_ms = {config['linger_ms']} + {config['request_timeout_ms']} = {least_ms}"
        )
    logger.warning(
        "delivery_timeout_ms is raised to linger_ms + request_timeout_ms = %s; set delivery_timeout_ms to at "
        "least this value",
        least_ms,
    )
    config["delivery_timeout_ms"] = least_ms


_INTERCEPTORS: Final = objects_with("on_send", "on_acknowledgement", "close")

# fmt: off
#: Times in milliseconds, sizes in bytes.
PRODUCER_SETTINGS: Final = table(
    setting("client_id", None, text_or_none,
            "Name of this producer in the logs, metrics and quotas of the brokers. By default the "
            "client generates a name with a number."),
    setting("key_serializer", None, _serializer,
            "Converts a key to bytes: a function of the key, or a `Serializer`. Without a serializer, "
            "keys must be bytes."),
    setting("value_serializer", None, _serializer,
            "Converts a value to bytes: a function of the value, or a `Serializer`. Without a "
            "serializer, values must be bytes."),
    setting("interceptors", (), _INTERCEPTORS,
            "Objects whose methods are called with each record before it is serialized, and after "
            "it is acknowledged or has failed (KIP-42). See `ProducerInterceptor`."),
    setting("acks", -1, _acks,
            "How many replicas must have written a record before the broker acknowledges it. "
            "`all` (or -1) is all in-sync replicas, the safest. 1 is the leader alone: a record "
            "is lost if the leader fails before the record is replicated. 0 does not wait for any "
            "response: failures go unnoticed and offsets are unknown."),
    setting("enable_idempotence", True, boolean,
            "Whether the producer prevents retries from duplicating or reordering records within a "
            'partition (KIP-679). This needs `acks="all"`, `retries` above 0 and at most 5 '
            "`max_in_flight_requests_per_connection`. If another value is given for one of these "
            "settings, idempotence is switched off with a warning. If `enable_idempotence=True` is "
            "given too, an error is raised."),
    setting("transactional_id", None, _transactional_id,
            "Name that identifies this producer across restarts and enables transactions. Only one "
            "process at a time may use a name: a new producer fences the earlier one with the same "
            "name. Transactions need brokers that support them, such as Apache Kafka."),
    setting("transaction_timeout_ms", 60_000, _transaction_timeout,
            "How long a transaction may stay open, in milliseconds, before the broker aborts it. "
            "It must not exceed the broker's `transaction.max.timeout.ms` (15 minutes by "
            "default)."),
    setting("delivery_timeout_ms", 120_000, at_least(0),
            "Time after `send()`, in milliseconds, within which a record is acknowledged or "
            "fails. It covers the wait in the batch, all retries and the wait for responses, and must "
            "be at least `linger_ms` plus `request_timeout_ms`. A "
            "record that has failed by this limit may be in the log nevertheless: see "
            "`possibly_persisted`."),
    setting("retries", math.inf, at_least(0),
            "Maximum number of retries of a batch after retriable errors. By default "
            "`delivery_timeout_ms` is the only limit. To change the limit, set `delivery_timeout_ms` "
            "rather than `retries`. 0 switches retries and idempotence off."),
    setting("compression_type", Compression.NONE, _compression,
            'Codec of batches. `None` and `"none"` do not compress. `lz4` and `zstd` are good '
            "first choices. Larger batches compress better: see `batch_size` and `linger_ms`."),
    setting("compression_level", None, _level,
            "Level of the codec (KIP-390): 1 to 9 for gzip, 1 to 17 for lz4, -131072 to 22 for "
            "zstd; snappy has none. A higher level is slower and compresses more. `None` is the "
            "codec's default level."),
    setting("batch_size", 16_384, whole(0),
            "Largest batch of one partition, in bytes. A record that is larger has a batch of its "
            "own. A larger batch gives more throughput and takes more memory. 0 puts each record "
            "in a batch of its own."),
    setting("linger_ms", 0, finite(0),
            "How long a batch that is not full waits for more records, in milliseconds. 0 sends "
            "as soon as the connection allows; records that arrive in the meantime still share a "
            "batch. 5 to 50 gives larger batches and more throughput."),
    setting("partitioner", None, _partitioner,
            "Chooses the partition if `send()` gets no partition: a `Partitioner`, or a function of "
            "the key's bytes, all partitions and the available partitions. By default the hash of "
            "the key decides, as in Kafka's Java client, and records without a key go to the same "
            "partition until a batch is full."),
    setting("partitioner_adaptive_partitioning_enable", True, boolean,
            "Whether records without a key are sent less often to partitions whose broker is slow. "
            "The length of a partition's queue shows how slow the broker is (KIP-794)."),
    setting("partitioner_availability_timeout_ms", 0, finite(0),
            "Time, in milliseconds, after which records without a key avoid a partition whose "
            "broker accepts no batches (KIP-794). 0 switches this off. The setting has an effect only "
            "with `partitioner_adaptive_partitioning_enable`."),
    setting("partitioner_ignore_keys", False, boolean,
            "Whether to choose the partition of a record with a key as if the record had no key "
            "(KIP-794). Records with equal keys are then in different partitions."),
    setting("buffer_memory", 33_554_432, whole(1),
            "Memory for all records that are not yet acknowledged, in bytes. When it is used up, "
            "`send()` waits for up to `max_block_ms`."),
    setting("max_block_ms", 60_000, finite(0),
            "How long `send()` waits for metadata or for memory, in milliseconds, before it "
            "raises `KafkaTimeoutError`. It also limits the calls of transactions that have no "
            "time limit of their own."),
    setting("max_request_size", 1_048_576, whole(1),
            "Largest request, and largest record before compression, in bytes. A larger record "
            "raises `MessageSizeTooLargeError`. The broker's `message.max.bytes` and the topic's "
            "`max.message.bytes` are limits too."),
    setting("allow_auto_create_topics", True, boolean,
            "Whether the broker may create a topic that does not exist when a record is sent to "
            "it. The broker's `auto.create.topics.enable` must allow this too."),
)
# fmt: on


def producer_defaults() -> Config:
    """Return the default of every setting of a producer."""
    return defaults(PRODUCER_SETTINGS)


def resolve_producer(given: Mapping[str, object]) -> Config:
    """Check the given settings and return all settings of a producer.

    Raises
    ------
    ProducerConfigurationError
        A setting is unknown or has an invalid value.
    """
    try:
        config = resolve(PRODUCER_SETTINGS, given)
        _check_level(config["compression_type"], config["compression_level"])
        _settle_idempotence(config, given)
        _settle_delivery_timeout(config, given)
        return config
    except KafkaConfigurationError as error:
        raise ProducerConfigurationError(str(error)) from None
