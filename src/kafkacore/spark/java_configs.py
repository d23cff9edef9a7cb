"""Kafka's own names of client settings, as ``kafka.*`` options have them: which mean something here.

Options in, arguments of a client out. Does not know: what a setting does, its type.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping

from kafkacore.errors import KafkaConfigurationError

log = logging.getLogger(__name__)

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
#: A name this near to one that there is, is taken for a mistake.
NEAR = 0.87


def client_configs(
    given: Mapping[str, str], owned: Mapping[str, str], owner: str, names: Iterable[str]
) -> dict[str, str]:
    """``kafka.fetch.max.bytes`` → ``fetch_max_bytes``: a client's own names of arguments, values still text.

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
        ``kafka.bootstrap.servers`` is missing; an option is the owner's, or nearly one that there is; or the
        connection is to be an encrypted one.
    """
    configs = {}
    for name, value in given.items():
        if not name.startswith("kafka."):
            continue
        if name in owned:
            raise KafkaConfigurationError(f"{name} is set by the {owner}: {owned[name]}")
        configs[name.removeprefix("kafka.").replace(".", "_")] = value
    if not configs.get("bootstrap_servers"):
        raise KafkaConfigurationError(
            "kafka.bootstrap.servers is missing: .option('kafka.bootstrap.servers', 'host:9092')"
        )
    return _kept(configs, names)


def _kept(configs: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    protocol = configs.get("security_protocol", "PLAINTEXT")
    if protocol.strip().upper() != "PLAINTEXT" and "${" not in protocol:
        raise KafkaConfigurationError(
            "kafka.security.protocol must be PLAINTEXT: kafkacore has no TLS and no SASL yet"
        )
    known = set(names) - NOT_FROM_TEXT - OF_A_MEMBER
    kept = {}
    ignored = []
    for name, text in configs.items():
        if name in OF_A_MEMBER:
            continue
        if name in known and not name.startswith(SECURE):
            kept[name] = text
            continue
        if name not in JAVA_ONLY and not name.startswith(SECURE):
            near = difflib.get_close_matches(name, known | JAVA_ONLY, n=1, cutoff=NEAR)
            if near:
                raise KafkaConfigurationError(
                    f"unknown option {option_name(name)}: did you mean {option_name(near[0])}?"
                )
        ignored.append(option_name(name))
    if ignored:
        log.warning("options without effect here: %s", ", ".join(sorted(ignored)))
    return kept


def option_name(name: str) -> str:
    """``fetch_max_bytes`` → ``kafka.fetch.max.bytes``."""
    return f"kafka.{name.replace('_', '.')}"
