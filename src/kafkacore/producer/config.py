"""The producer's settings: keyword arguments in, a checked dictionary out. Does not know: what they do.

Names and defaults are kafka-python's; what all clients share is in ``client.config``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Final

from kafkacore.client.config import defaults, resolve
from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.partitioner import FunctionPartitioner
from kafkacore.producer.producer_id_state import MAX_IN_FLIGHT
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

logger = logging.getLogger("kafkacore.producer")


COMPRESSIONS = {codec.name.lower(): codec for codec in Compression}


class ProducerConfigurationError(KafkaConfigurationError, ValueError):
    """A setting that cannot be; a ``ValueError`` too, as kafka-python's producer raises."""


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
        raise refuse(name, value, "a whole number, or None for the codec's own")
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
            "an object with a method partition, such as a kafkacore.partitioner.Partitioner, or a function "
            "of the key's bytes, all partitions and those available",
        )
    return FunctionPartitioner(value)


@checks("str | None", "not empty")
def _transactional_id(name: str, value: object) -> str | None:
    checked = text_or_none(name, value)
    if checked == "":
        raise refuse(name, value, "a name that this producer keeps over restarts, or None")
    return checked


@checks("int", "at least 1", SettingType.INT)
def _transaction_timeout(name: str, value: object) -> int:
    timeout_ms = whole(1)(name, value)
    if timeout_ms > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX} milliseconds")
    return timeout_ms


def _settle_idempotence(config: Config, given: Mapping[str, object]) -> None:
    """Switch idempotence off where another setting rules it out, unless it was asked for (KIP-679)."""
    is_transactional = config["transactional_id"] is not None
    if not config["enable_idempotence"]:
        if is_transactional:
            raise KafkaConfigurationError(
                f"transactional_id={config['transactional_id']!r} needs idempotence: "
                "leave enable_idempotence out"
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
            f"{asked} needs acks='all', retries and at most {MAX_IN_FLIGHT} {in_flight}: "
            f"not {', '.join(conflicts)}"
        )
    if conflicts:
        logger.warning(
            "enable_idempotence is off because of %s: after a lost answer a record may be written twice",
            ", ".join(conflicts),
        )
        config["enable_idempotence"] = False


_INTERCEPTORS: Final = objects_with("on_send", "on_acknowledgement", "close")

# fmt: off
#: Times in milliseconds, sizes in bytes.
PRODUCER_SETTINGS: Final = table(
    setting("client_id", None, text_or_none,
            "Name of the producer in the logs, metrics and quotas of brokers; made up if not given."),
    setting("key_serializer", None, _serializer,
            "Function of the key, or `Serializer`, that returns its bytes; without one keys must be bytes."),
    setting("value_serializer", None, _serializer,
            "Function of the value, or `Serializer`, that returns its bytes; without one values must be "
            "bytes."),
    setting("interceptors", (), _INTERCEPTORS,
            "Objects that see each record before it is serialized and once it has its outcome (KIP-42)."),
    setting("acks", -1, _acks,
            "Replicas that must have a record before it counts as written: all in-sync replicas (`all`, -1), "
            "the leader (1), none (0)."),
    setting("enable_idempotence", True, boolean,
            "Whether retries keep each record in the log once and in order (KIP-679)."),
    setting("transactional_id", None, _transactional_id,
            "Name that this producer keeps over restarts; records are sent in transactions."),
    setting("transaction_timeout_ms", 60_000, _transaction_timeout,
            "Time after which the broker aborts an open transaction."),
    setting("delivery_timeout_ms", 120_000, at_least(0),
            "Time after `send()` by which each record has an outcome."),
    setting("retries", math.inf, at_least(0),
            "How often a batch is sent again after an error that may pass."),
    setting("compression_type", Compression.NONE, _compression, "Codec of batches."),
    setting("compression_level", None, _level, "Level of the codec; its own default if not given (KIP-390)."),
    setting("batch_size", 16_384, whole(0), "Largest batch of records, unless a single record is larger."),
    setting("linger_ms", 0, finite(0), "How long a batch waits for more records."),
    setting("partitioner", None, _partitioner,
            "Chooses partitions: a `Partitioner`, or a function of the key's bytes, all partitions and "
            "those available. By default the hash of the key, as in Java."),
    setting("partitioner_adaptive_partitioning_enable", True, boolean,
            "Whether records without a key go less often to partitions with a longer queue (KIP-794)."),
    setting("partitioner_availability_timeout_ms", 0, finite(0),
            "Time after which records without a key avoid a broker that accepts nothing; 0 for never "
            "(KIP-794)."),
    setting("partitioner_ignore_keys", False, boolean,
            "Whether records with a key are partitioned as those without (KIP-794)."),
    setting("buffer_memory", 33_554_432, whole(1),
            "Memory of all batches; `send()` waits when it is used up."),
    setting("max_block_ms", 60_000, finite(0), "How long `send()` waits for metadata or memory."),
    setting("max_request_size", 1_048_576, whole(1), "Largest request, and largest record."),
    setting("allow_auto_create_topics", True, boolean,
            "Whether brokers may create a topic that does not exist."),
)
# fmt: on


def producer_defaults() -> Config:
    """Every setting of a producer with its default."""
    return defaults(PRODUCER_SETTINGS)


def resolve_producer(given: Mapping[str, object]) -> Config:
    """All settings of a producer, each checked.

    Raises
    ------
    ProducerConfigurationError
        For an unknown name, and for a value that cannot be.
    """
    try:
        config = resolve(PRODUCER_SETTINGS, given)
        _check_level(config["compression_type"], config["compression_level"])
        _settle_idempotence(config, given)
        return config
    except KafkaConfigurationError as error:
        raise ProducerConfigurationError(str(error)) from None
