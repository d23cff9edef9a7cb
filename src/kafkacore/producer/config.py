"""The producer's settings: keyword arguments in, a checked dictionary out. Does not know: what they do.

Names and defaults are kafka-python's; what all clients share is in ``client.config``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from kafkacore.client.config import (
    CLIENT_SETTINGS,
    Setting,
    at_least,
    boolean,
    refuse,
    resolve,
    text_or_none,
    whole,
)
from kafkacore.client.interceptors import objects_with
from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.idempotence import MAX_IN_FLIGHT
from kafkacore.producer.partitioner import FunctionPartitioner
from kafkacore.record.compression import CODECS, check_level
from kafkacore.structs import INT32_MAX, Compression

log = logging.getLogger("kafkacore.producer")


COMPRESSIONS = {codec.name.lower(): codec for codec in Compression}


class ProducerConfigurationError(KafkaConfigurationError, ValueError):
    """A setting that cannot be; a ``ValueError`` too, as kafka-python's producer raises."""


def _acks(name: str, value: Any) -> int:
    acks = {"all": -1, "-1": -1, "0": 0, "1": 1}.get(value, value) if isinstance(value, str) else value
    if isinstance(acks, bool) or acks not in (-1, 0, 1):
        raise refuse(name, value, "0, 1 or 'all'")
    return int(acks)


def _compression(name: str, value: Any) -> Compression:
    codec = COMPRESSIONS.get("none" if value is None else value) if isinstance(value, str | None) else None
    if codec is None:
        raise refuse(name, value, f"None or one of {', '.join(COMPRESSIONS)}")
    return codec


def _level(name: str, value: Any) -> int | None:
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


def _serializer(name: str, value: Any) -> Any:
    if value is not None and not callable(getattr(value, "serialize", value)):
        raise refuse(
            name, value, "None, a function of the value, or an object with serialize(topic, headers, data)"
        )
    return value


def _partitioner(name: str, value: Any) -> Any:
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


def _finite(name: str, value: Any) -> Any:
    if at_least(0)(name, value) == math.inf:
        raise refuse(name, value, "a finite number")
    return value


def _transactional_id(name: str, value: Any) -> str | None:
    checked = text_or_none(name, value)
    if checked == "":
        raise refuse(name, value, "a name that this producer keeps over restarts, or None")
    return checked


def _transaction_timeout(name: str, value: Any) -> int:
    timeout_ms = int(whole(1)(name, value))
    if timeout_ms > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX} milliseconds")
    return timeout_ms


def _settle_idempotence(config: dict[str, Any], given: Mapping[str, Any]) -> None:
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
        log.warning(
            "enable_idempotence is off because of %s: after a lost answer a record may be written twice",
            ", ".join(conflicts),
        )
        config["enable_idempotence"] = False


# fmt: off
#: Times in milliseconds, sizes in bytes.
PRODUCER_SETTINGS: dict[str, Setting] = {
    "client_id":                Setting(None, text_or_none),
    "key_serializer":           Setting(None, _serializer),
    "value_serializer":         Setting(None, _serializer),
    "interceptors":             Setting((), objects_with("on_send", "on_acknowledgement", "close")),  # KIP-42
    "acks":                     Setting(-1, _acks),
    "enable_idempotence":       Setting(True, boolean),  # KIP-679
    "transactional_id":         Setting(None, _transactional_id),
    "transaction_timeout_ms":   Setting(60_000, _transaction_timeout),
    "delivery_timeout_ms":      Setting(120_000, at_least(0)),
    "retries":                  Setting(math.inf, at_least(0)),
    "compression_type":         Setting(Compression.NONE, _compression),
    "compression_level":        Setting(None, _level),  # KIP-390
    "batch_size":               Setting(16_384, whole(0)),
    "linger_ms":                Setting(0, _finite),
    "partitioner":              Setting(None, _partitioner),
    "partitioner_adaptive_partitioning_enable": Setting(True, boolean),  # KIP-794, as the next two
    "partitioner_availability_timeout_ms": Setting(0, _finite),
    "partitioner_ignore_keys":  Setting(False, boolean),
    "buffer_memory":            Setting(33_554_432, whole(1)),
    "max_block_ms":             Setting(60_000, _finite),
    "max_request_size":         Setting(1_048_576, whole(1)),
    "allow_auto_create_topics": Setting(True, boolean),
}
# fmt: on


def producer_defaults() -> dict[str, Any]:
    """Every setting of a producer with its default."""
    return {name: setting.default for name, setting in (CLIENT_SETTINGS | PRODUCER_SETTINGS).items()}


def resolve_producer(given: Mapping[str, Any]) -> dict[str, Any]:
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
