"""Select the ``kafka.*`` options that apply to kafkacore's clients.

The options have the setting names of Kafka's Java clients. Values are still text here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.security.java_names import JAVA_NAMES, security_arguments
from kafkacore.security.references import refuse_reference
from kafkacore.settings import SECURITY_PROTOCOLS, Config
from kafkacore.text import did_you_mean

logger = logger_of(__name__)

#: Settings of a group member. Spark's sources never join a group, so these settings have no effect, as in
#: Spark's own sources.
OF_A_MEMBER = frozenset(
    {
        "auto_commit_interval_ms", "group_instance_id", "group_protocol", "group_remote_assignor",
        "heartbeat_interval_ms", "internal_leave_group_on_close", "max_poll_interval_ms",
        "partition_assignment_strategy", "session_timeout_ms",
    }
)  # fmt: skip
#: Settings of Kafka's Java clients (consumer, producer, admin; 3.9 and 4.x) that have no counterpart here.
JAVA_ONLY = frozenset(
    {
        "auto_include_jmx_reporter", "config_providers", "default_api_timeout_ms", "enable_metrics_push",
        "internal_throw_on_fetch_stable_offset_unsupported", "metadata_max_idle_ms", "metric_reporters",
        "metrics_recording_level", "partitioner_adaptive_partitioning_enable",
        "partitioner_availability_timeout_ms", "partitioner_ignore_keys", "security_providers",
        "share_acknowledgement_mode", "max_poll_records",
    }
)  # fmt: skip
#: Arguments that cannot be given as text, or that exist in kafka-python but not in Java.
NOT_FROM_TEXT = frozenset(
    {
        "api_version", "consumer_timeout_ms", "default_offset_commit_callback", "interceptors",
        "kafka_client", "key_deserializer", "metric_group_prefix", "metric_reporters", "selector",
        "socket_options", "value_deserializer",
    }
)  # fmt: skip
#: Prefixes of encryption and authentication settings. They have no effect with PLAINTEXT, as in Java.
SECURE = ("ssl_", "sasl_")
PROTOCOL = "security_protocol"
PLAINTEXT = "PLAINTEXT"
#: Prefix of all client options.
PREFIX = "kafka."
#: Minimum similarity, from 0 to 1, at which an unknown name is reported as a misspelling of a known one.
NEAR = 0.87


def client_configs(
    given: Mapping[str, str], owned: Mapping[str, str], owner: str, names: Iterable[str]
) -> dict[str, str]:
    """Return the ``kafka.*`` options by argument name, such as ``fetch_max_bytes``, with text values.

    Options for a secure connection are checked, but keep Java's names, with underscores.
    :func:`secure_arguments` resolves secrets and parses login modules where a client is created.

    Settings of Java's clients that have no effect here are ignored with one warning, as in Java's clients.

    Parameters
    ----------
    given:
        All options, by lower-case name.
    owned:
        Options that the source or sink sets itself, each with what the user can do instead.
    owner:
        "source" or "sink", for the message.
    names:
        Names of the client's arguments.

    Raises
    ------
    KafkaConfigurationError
        ``kafka.bootstrap.servers`` is missing, an option is set by the owner or looks misspelled, or the
        settings of the secure connection are invalid.
    """
    configs = {}
    for name, value in given.items():
        if not name.startswith(PREFIX):
            continue
        if name in owned:
            raise KafkaConfigurationError(f"{name} is set by the {owner}: {owned[name]}")
        refuse_reference(value, name)
        configs[name.removeprefix(PREFIX).replace(".", "_")] = value
    if not configs.get("bootstrap_servers"):
        raise KafkaConfigurationError(
            "kafka.bootstrap.servers is missing: set .option('kafka.bootstrap.servers', 'host:9092')"
        )
    return _kept(configs, names)


def _kept(configs: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    known = set(names) - NOT_FROM_TEXT - OF_A_MEMBER
    kept, ignored = _kept_of_security(configs, known)
    for name, text in configs.items():
        if name in OF_A_MEMBER or is_of_security(name):
            continue
        if name in known:
            kept[name] = text
            continue
        hint = did_you_mean(name, known | JAVA_ONLY, cutoff=NEAR, show=option_name)
        if hint and name not in JAVA_ONLY:
            raise KafkaConfigurationError(f"unknown option {option_name(name)}: {hint}")
        ignored.append(option_name(name))
    if ignored:
        logger.warning("ignoring options that have no effect: %s", ", ".join(sorted(ignored)))
    return kept


def _kept_of_security(configs: Mapping[str, str], known: set[str]) -> tuple[dict[str, str], list[str]]:
    """Return the checked options of a secure connection, and the names of ignored options."""
    given = {name: text for name, text in configs.items() if is_of_security(name)}
    protocol = given.get(PROTOCOL, PLAINTEXT).strip().upper()
    if protocol == PLAINTEXT:
        return {}, [option_name(name) for name in given if name != PROTOCOL]
    if protocol not in SECURITY_PROTOCOLS:
        raise KafkaConfigurationError(
            f"{option_name(PROTOCOL)} must be one of {', '.join(SECURITY_PROTOCOLS)}"
        )
    arguments, ignored = security_arguments({_java(n): text for n, text in given.items()}, None, PREFIX)
    if strange := [option_name(name) for name in arguments if name not in known]:
        # Raise an error rather than ignore a security option that the user relies on.
        names = [PREFIX + name for name in JAVA_NAMES]
        advice = did_you_mean(strange[0], names, "kafkacore does not support it; remove it", cutoff=NEAR)
        raise KafkaConfigurationError(f"unknown option {strange[0]}: {advice}")
    return {name: text for name, text in given.items() if option_name(name) not in ignored}, ignored


def secure_arguments(configs: Mapping[str, str], lookup: Callable[[str, str], str]) -> Config:
    """Return the client arguments for a secure connection.

    All values are text, except for a token provider.

    Parameters
    ----------
    configs:
        Result of :func:`client_configs`.
    lookup:
        Function that resolves references to secrets in a text. Its second argument is the option's name.

    Raises
    ------
    KafkaConfigurationError
        A referenced secret does not exist or has an invalid value.
    """
    given = {_java(name): text for name, text in configs.items() if is_of_security(name)}
    arguments = security_arguments(given, lookup, PREFIX)[0]
    return arguments if arguments.get(PROTOCOL, PLAINTEXT) != PLAINTEXT else {}


def is_of_security(name: str) -> bool:
    """Return whether an argument name, or Java's name with underscores, is for a secure connection."""
    return name == PROTOCOL or name.startswith(SECURE)


def _java(name: str) -> str:
    return name.replace("_", ".")


def option_name(name: str) -> str:
    """Return the option of an argument: ``kafka.fetch.max.bytes`` for ``fetch_max_bytes``."""
    return PREFIX + _java(name)
