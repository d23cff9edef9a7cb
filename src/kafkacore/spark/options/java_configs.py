"""Kafka's own names of client settings, as ``kafka.*`` options have them: which mean something here.

Options in, arguments of a client out. Does not know: what a setting does, its type.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.java_names import JAVA_NAMES, security_arguments
from kafkacore.security.references import refuse_reference
from kafkacore.settings import SECURITY_PROTOCOLS, Config
from kafkacore.text import did_you_mean

logger = logging.getLogger(__name__)

#: Of a member of a group, which Spark's sources never are: without effect in Spark's own source as well.
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
#: Arguments that no text can give, or that kafka-python has and Java has not.
NOT_FROM_TEXT = frozenset(
    {
        "api_version", "consumer_timeout_ms", "default_offset_commit_callback", "interceptors",
        "kafka_client", "key_deserializer", "metric_group_prefix", "metric_reporters", "selector",
        "socket_options", "value_deserializer",
    }
)  # fmt: skip
#: Encryption and logins: without effect on a plaintext connection, in Java too.
SECURE = ("ssl_", "sasl_")
PROTOCOL = "security_protocol"
PLAINTEXT = "PLAINTEXT"
#: What all options of a client begin with.
PREFIX = "kafka."
#: A name this near to one that there is, is taken for a mistake.
NEAR = 0.87


def client_configs(
    given: Mapping[str, str], owned: Mapping[str, str], owner: str, names: Iterable[str]
) -> dict[str, str]:
    """``kafka.fetch.max.bytes`` → ``fetch_max_bytes``: a client's own names of arguments, values still text.

    Those of a secure connection are checked and keep Java's names, with underscores: a secret is looked up,
    and a login module read, where a client is made (:func:`secure_arguments`).

    Settings of Java's clients that mean nothing here are left out with one warning, as Java's clients do.

    Parameters
    ----------
    given:
        All options, names in lower case.
    owned:
        Those that the source or sink sets itself, and what to use instead.
    owner:
        "source" or "sink", for the message.
    names:
        The arguments that the client has.

    Raises
    ------
    KafkaConfigurationError
        ``kafka.bootstrap.servers`` is missing; an option is the owner's, or nearly one that there is; or what
        is said of a secure connection cannot be.
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
            "kafka.bootstrap.servers is missing: .option('kafka.bootstrap.servers', 'host:9092')"
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
        logger.warning("options without effect here: %s", ", ".join(sorted(ignored)))
    return kept


def _kept_of_security(configs: Mapping[str, str], known: set[str]) -> tuple[dict[str, str], list[str]]:
    """What a secure connection is told, and the options that it is not."""
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
        # Not ignored: whoever writes it relies on it.
        names = [PREFIX + name for name in JAVA_NAMES]
        advice = did_you_mean(strange[0], names, "kafkacore has none of that name; leave it out", cutoff=NEAR)
        raise KafkaConfigurationError(f"unknown option {strange[0]}: {advice}")
    return {name: text for name, text in given.items() if option_name(name) not in ignored}, ignored


def secure_arguments(configs: Mapping[str, str], lookup: Callable[[str, str], str]) -> Config:
    """Those settings of a client that are of a secure connection, as its arguments; texts, but for a provider
    of tokens.

    Parameters
    ----------
    configs:
        Of :func:`client_configs`.
    lookup:
        Replaces references to secrets in a text; gets the option's name, too.

    Raises
    ------
    KafkaConfigurationError
        A secret is not where its reference says, or what it says cannot be.
    """
    given = {_java(name): text for name, text in configs.items() if is_of_security(name)}
    arguments = security_arguments(given, lookup, PREFIX)[0]
    return arguments if arguments.get(PROTOCOL, PLAINTEXT) != PLAINTEXT else {}


def is_of_security(name: str) -> bool:
    """Whether an argument, or one of Java's names with underscores, is of a secure connection."""
    return name == PROTOCOL or name.startswith(SECURE)


def _java(name: str) -> str:
    return name.replace("_", ".")


def option_name(name: str) -> str:
    """``fetch_max_bytes`` → ``kafka.fetch.max.bytes``."""
    return PREFIX + _java(name)
