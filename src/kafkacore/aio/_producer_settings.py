"""The settings of ``AIOKafkaProducer``: those of ``KafkaProducer``, and aiokafka's names for some of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

from kafkacore.aio._settings import DEFAULTS, default_sasl_mechanism
from kafkacore.producer.config import ProducerConfigurationError, resolve_producer
from kafkacore.producer.config_types import ProducerConfig
from kafkacore.settings import Config

#: Arguments that aiokafka has deprecated, and ignores or will ignore.
DEPRECATED = ("api_version", "loop")


class AIOKafkaProducerConfig(ProducerConfig, total=False):
    """Keyword arguments of ``AIOKafkaProducer``."""

    max_batch_size: int
    """aiokafka's name of `batch_size`."""

    loop: object
    """Has no effect and is deprecated: the producer runs in the event loop that calls `start()`."""


def resolve_aio_producer(given: Mapping[str, object]) -> Config:
    """Check the arguments of ``AIOKafkaProducer``, and return all settings of a producer.

    Raises
    ------
    ProducerConfigurationError
        A setting is unknown or has an invalid value.
    """
    # aiokafka's default of acks is a bare object(), which FastStream passes on.
    named = {**DEFAULTS, **{name: value for name, value in given.items() if type(value) is not object}}
    for name in DEPRECATED:
        if named.pop(name, None) is not None:
            warnings.warn(f"{name} has no effect; remove it", DeprecationWarning, stacklevel=3)
    if "max_batch_size" in named:
        if "batch_size" in named:
            raise ProducerConfigurationError("batch_size and max_batch_size are the same setting: remove one")
        named["batch_size"] = named.pop("max_batch_size")
    if type(named.get("partitioner")).__module__.startswith("aiokafka."):
        # aiokafka's default partitioner, which FastStream passes on, hashes keys as the built-in one does.
        del named["partitioner"]
    if "connections_max_idle_ms" in named and named["connections_max_idle_ms"] is None:
        named["connections_max_idle_ms"] = math.inf
    default_sasl_mechanism(named)
    return resolve_producer(named)
