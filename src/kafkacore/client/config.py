"""The settings that all clients have in common, and the checks of keyword arguments.

A client adds a table of its own settings to :data:`CLIENT_SETTINGS` and calls :func:`resolve`::

    SETTINGS = table(setting("group_id", None, text_or_none, "Name of the consumer group."))
    config = resolve(SETTINGS, configs)

Names and defaults are those of kafka-python, except that ``reconnect_backoff_max_ms`` has the default of
Kafka's Java client. Settings whose description names a KIP are Kafka's settings in snake case.
"""

from __future__ import annotations

import selectors
import socket
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.security.secret import HIDDEN
from kafkacore.security.settings import SECRET_SETTINGS, SECURITY_SETTINGS
from kafkacore.settings import Check, ClientSetting, Config, SettingType, suggestion, table
from kafkacore.settings.checks import (
    anything,
    at_least,
    boolean,
    buffer_size,
    checks,
    finite,
    one_of,
    refuse,
    setting,
    text_or_none,
    whole,
)

logger = logger_of(__name__)


@checks("Sequence[Callable[[], object]]", "classes derived from `MetricsReporter`", SettingType.LIST)
def reporters(name: str, value: object) -> list[object]:
    """Accept a list of metrics reporter classes, or of functions without arguments that create reporters."""
    if not isinstance(value, list | tuple) or not all(callable(each) for each in value):
        raise refuse(
            name, value, "a list of classes with the methods init, metric_change, metric_removal and close"
        )
    return list(value)


@checks("object", kind=SettingType.CLASS)
def without_effect(name: str, value: object) -> object:
    """Accept any value and warn, so that a program written for kafka-python can pass the setting."""
    if value is not None:
        warn(name, "this setting has no effect; remove it")
    return value


def warn(name: str, what: str) -> None:
    """Warn about a setting. The warning names the line of the program that calls kafkacore."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("kafkacore."):
        frame = frame.f_back
        level += 1
    warnings.warn(f"{name}: {what}", DeprecationWarning, stacklevel=level)


@checks("Sequence[tuple[int, int, int | bytes]]", "arguments of `setsockopt`", SettingType.LIST)
def socket_options(name: str, value: object) -> tuple[tuple[int, int, int | bytes], ...]:
    """Accept arguments of ``setsockopt`` that a new TCP socket accepts."""
    if not isinstance(value, list | tuple):
        raise refuse(name, value, "a list of tuples (level, option, value)")
    options = tuple(tuple(each) for each in value)
    with socket.socket() as sock:
        for option in options:
            try:
                sock.setsockopt(*option)
            except (TypeError, OSError) as error:
                raise KafkaConfigurationError(
                    f"{name}: setsockopt rejects the arguments {option!r}: {error}"
                ) from None
    return options


@checks("tuple[int, ...] | list[int] | str | None", "such as (2, 8)", SettingType.LIST)
def api_version(name: str, value: object) -> tuple[int, ...] | None:
    """Accept the version of a broker that supports record batches of format 2.

    If a version is given, the constructor does not wait for a broker. The version has no other effect,
    because the client negotiates API versions with each broker.
    """
    if value is None or value == "auto":
        return None
    try:
        parts = value.split(".") if isinstance(value, str) else value
        if not isinstance(parts, Iterable):
            raise TypeError
        version = tuple(int(part) for part in parts)
    except (TypeError, ValueError):
        raise refuse(name, value, "None, 'auto' or a broker version such as (2, 8)") from None
    if version < OLDEST_BROKER:
        raise KafkaConfigurationError(
            f"{name}={value!r}: kafkacore requires brokers of version {'.'.join(map(str, OLDEST_BROKER))} or "
            "newer, because older brokers do not support record batches of format 2"
        )
    return version


@checks("type[selectors.BaseSelector] | None", "a class of `selectors`", SettingType.CLASS)
def selector(name: str, value: object) -> str | None:
    """Convert a class of Python's ``selectors`` to its backend: ``epoll``, ``kqueue``, or ``poll``."""
    for selector_class, backend in SELECTORS.items():
        if value is selector_class:
            return backend
    if value is not None and value is not selectors.DefaultSelector:
        warn(name, f"{value!r} has no effect: kafkacore waits with epoll, kqueue, or poll")
    return None


#: Selectors of the standard library that this system has → backend of our Selector.
SELECTORS: dict[type[selectors.BaseSelector], str] = {
    getattr(selectors, name): backend
    for name, backend in (("EpollSelector", "epoll"), ("KqueueSelector", "kqueue"), ("PollSelector", "poll"))
    if hasattr(selectors, name)
}
#: First broker version with record batches of format 2.
OLDEST_BROKER = (0, 11)


_LOOKUPS: Final = one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_RECOVERIES: Final = one_of("rebootstrap", "none")
_SERVERS: Final = anything("str | Sequence[str] | set[str] | frozenset[str]", SettingType.LIST)

# fmt: off
#: Settings of every client. Times are in milliseconds, sizes in bytes.
CLIENT_SETTINGS: Final = table(
    setting("bootstrap_servers", "localhost", _SERVERS,
            "Brokers to connect to first, as `host:port`: a list, tuple or set, or one text with "
            "commas. The client learns all other brokers from them, so two or three are enough. The "
            "port is 9092 if it is not given. The security protocol may precede the host, as in "
            "`SSL://host:port`, and must equal `security_protocol`."),
    setting("client_id", "kafkacore", text_or_none,
            "Name of the client in the logs, metrics and quotas of the brokers."),
    setting("client_dns_lookup", "use_all_dns_ips", _LOOKUPS,
            "How to use the addresses of a host name. `use_all_dns_ips` tries them one after "
            "another. `resolve_canonical_bootstrap_servers_only` replaces each bootstrap server "
            "by its canonical names, which Kerberos may need."),
    setting("request_timeout_ms", 30_000, finite(1),
            "How long the client waits for the response to a request, in milliseconds. After that "
            "time it closes the connection and retries the request where that is safe."),
    setting("retry_backoff_ms", 100, finite(0),
            "Pause before the first retry of a request, in milliseconds. It doubles with each "
            "further retry up to `retry_backoff_max_ms`."),
    setting("retry_backoff_max_ms", 1000, finite(0),
            "Longest pause between two retries of a request, in milliseconds (KIP-580)."),
    setting("reconnect_backoff_ms", 50, finite(0),
            "Pause before the first attempt to reconnect to a broker, in milliseconds. It doubles "
            "with each further attempt up to `reconnect_backoff_max_ms`."),
    # Java's default; kafka-python: 30_000.
    setting("reconnect_backoff_max_ms", 1000, finite(0),
            "Longest pause between two attempts to reconnect to a broker, in milliseconds."),
    setting("socket_connection_setup_timeout_ms", 10_000, finite(1),
            "How long the first attempt to connect to a broker may take, in milliseconds. It "
            "doubles with each further attempt up to `socket_connection_setup_timeout_max_ms` "
            "(KIP-601)."),
    setting("socket_connection_setup_timeout_max_ms", 30_000, finite(1),
            "Longest time that an attempt to connect may take, in milliseconds (KIP-601)."),
    setting("connections_max_idle_ms", 540_000, at_least(0),
            "Time without traffic, in milliseconds, after which the client closes a connection. "
            "`math.inf` keeps connections open."),
    setting("max_in_flight_requests_per_connection", 5, at_least(1),
            "How many requests may be in flight on one connection. A producer with idempotence "
            "allows at most 5. Without idempotence a value above 1 can reorder records when a "
            "request is retried."),
    setting("metadata_max_age_ms", 300_000, finite(0),
            "Age of the metadata, in milliseconds, after which the client fetches it again. This "
            "is how new partitions and brokers are found when no error reports them."),
    setting("metadata_recovery_strategy", "rebootstrap", _RECOVERIES,
            "How the client recovers when it cannot reach any known broker. `rebootstrap` connects "
            "to `bootstrap_servers` again (KIP-899). `none` keeps trying the known brokers."),
    setting("metadata_recovery_rebootstrap_trigger_ms", 300_000, at_least(0),
            "How long all known brokers may be out of reach, in milliseconds, before the client connects to "
            "`bootstrap_servers` again (KIP-1102)."),
    setting("bootstrap_timeout_ms", 30_000, at_least(0),
            "How long the constructor tries to reach a first broker, in milliseconds, before it raises "
            "`NoBrokersAvailable`. The constructor of a consumer or producer does not wait if this is 0, or "
            "if `api_version` is given."),
    setting("receive_message_max_bytes", 100_000_000, at_least(1),
            "Maximum size of a response, in bytes. The client closes the connection if a response is "
            "larger."),
    setting("receive_buffer_bytes", -1, buffer_size,
            "Size of the socket's receive buffer (`SO_RCVBUF`), in bytes. With -1, the operating "
            "system chooses the size."),
    setting("send_buffer_bytes", -1, buffer_size,
            "Size of the socket's send buffer (`SO_SNDBUF`), in bytes. With -1, the operating "
            "system chooses the size."),
    setting("api_version", None, api_version,
            "Version of the brokers. The client negotiates versions with each broker anyway. If a "
            "version is given, the constructor does not wait for a broker. If none is given, "
            "`client.config[\"api_version\"]` holds the version of the first connected broker, such as "
            "`(4, 3)`."),
    setting("metric_reporters", [], reporters,
            "Classes that are notified when metrics are added or removed. Each is created without "
            "arguments: see `MetricsReporter`."),
    setting("metrics_enabled", True, boolean,
            "Whether the client records metrics. Without them the client is slightly faster, and "
            "`metrics()` returns nothing."),
    setting("metrics_num_samples", 2, whole(1),
            "Number of samples from which averages, maxima and rates are computed."),
    setting("metrics_sample_window_ms", 30_000, finite(1),
            "Length of one sample, in milliseconds. With the defaults, a rate covers the last "
            "minute."),
    setting("metric_group_prefix", "", text_or_none,
            "First word of the names of metric groups, such as `producer` in `producer-metrics`."),
    setting("selector", None, selector,
            "System call with which the client waits for sockets: `selectors.EpollSelector`, "
            "`selectors.KqueueSelector`, or `selectors.PollSelector`. The default is epoll on Linux "
            "and kqueue on macOS."),
    setting("kafka_client", None, without_effect,
            "Accepted so that programs for kafka-python run. It has no effect."),
    setting("socket_options", [(6, 1, 1)], socket_options,
            "Options that are set on every socket, as arguments of `socket.setsockopt`. The "
            "default switches Nagle's algorithm off (`TCP_NODELAY`)."),
    *SECURITY_SETTINGS.values(),
)
# fmt: on
#: Settings that kafka-python removed in 3.0 → their replacement, or ``None``.
RETIRED_SETTINGS: dict[str, str | None] = {
    "api_version_auto_timeout_ms": "bootstrap_timeout_ms",
    "bootstrap_topics_filter": None,
    "legacy_iterator": None,
    "sock_chunk_buffer_count": None,
    "sock_chunk_bytes": None,
}


def all_settings(own: Mapping[str, ClientSetting]) -> dict[str, ClientSetting]:
    """Return the settings of a client. The table ``own`` overrides the settings that all clients share."""
    return {**CLIENT_SETTINGS, **own}


def defaults(own: Mapping[str, ClientSetting]) -> Config:
    """Return every setting of a client with its default."""
    return {name: row.default for name, row in all_settings(own).items()}


def resolve(own: Mapping[str, ClientSetting], given: Mapping[str, object]) -> Config:
    """Return all settings of a client: the checked keyword arguments, and defaults for all other settings.

    Parameters
    ----------
    own:
        The client's own table. A setting in it replaces the setting of the same name in
        :data:`CLIENT_SETTINGS`.
    given:
        The user's keyword arguments.

    Raises
    ------
    KafkaConfigurationError
        A setting is unknown or has an invalid value. The message suggests a similar name, and never contains
        the value of a secret.
    """
    known = all_settings(own)
    given = _without_retired(known, given)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise KafkaConfigurationError(_unknown(unknown, known))
    config = defaults(own)
    for name, value in given.items():
        config[name] = _checked(name, value, known[name].check)
    if config["socks5_proxy"] is not None:
        warn("socks5_proxy", "use proxy_url instead")
        config["proxy_url"] = config["proxy_url"] or config["socks5_proxy"]
    if config["sasl_mechanism"] and not config["security_protocol"].startswith("SASL_"):
        logger.warning(
            "sasl_mechanism=%r has no effect with security_protocol=%r: set security_protocol='SASL_SSL', or "
            "remove sasl_mechanism",
            config["sasl_mechanism"],
            config["security_protocol"],
        )
    return config


def _without_retired(known: Mapping[str, ClientSetting], given: Mapping[str, object]) -> dict[str, object]:
    kept = {name: value for name, value in given.items() if name in known or name not in RETIRED_SETTINGS}
    for name in given.keys() - kept.keys():
        today = RETIRED_SETTINGS[name]
        if today is None:
            warn(name, "kafka-python removed this setting in 3.0, and it has no effect; remove it")
        else:
            kept.setdefault(today, given[name])
    return kept


def _checked(name: str, value: object, check: Check[object]) -> object:
    if name not in SECRET_SETTINGS:
        return check(name, value)
    try:
        return check(name, value)
    except KafkaConfigurationError as error:
        raise KafkaConfigurationError(str(error).replace(repr(value), HIDDEN)) from None


def refuse_positional(client: str, positional: Iterable[object]) -> None:
    """Raise ``TypeError`` for a positional argument, such as the settings dictionary of confluent-kafka."""
    for argument in positional:
        what = "" if isinstance(argument, Mapping) else f", not as {type(argument).__name__}"
        raise TypeError(
            f"pass settings as keyword arguments{what}: {client}(**config); dots in names become "
            "underscores: bootstrap.servers -> bootstrap_servers"
        )


def _unknown(names: list[str], known: Mapping[str, ClientSetting]) -> str:
    sentences = []
    for name in names:
        if "." in name and (underscored := name.replace(".", "_")) in known:
            sentences.append(
                f"unknown setting {name!r}: use {underscored!r}, with underscores instead of dots"
            )
            continue
        longer = next((f"did you mean {each!r}?" for each in known if name in each), "")
        sentences.append(f"unknown setting {name!r}{suggestion(name, known.keys(), longer, show=repr)}")
    return ". ".join(sentences)


def servers_text(config: Mapping[str, object]) -> str:
    """Return ``bootstrap_servers`` as one text, for messages."""
    servers = config["bootstrap_servers"]
    if isinstance(servers, set | frozenset):
        servers = sorted(servers)
    return ",".join(map(str, servers)) if isinstance(servers, list | tuple) else str(servers)


def redacted(config: Mapping[str, object]) -> Config:
    """Return ``config`` for the log, without the values of secrets."""
    return {
        name: HIDDEN if name in SECRET_SETTINGS and value is not None else value
        for name, value in config.items()
    }
