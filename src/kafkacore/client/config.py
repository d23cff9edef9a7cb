"""Settings of all clients: keyword arguments in, a complete and checked dictionary out.

A façade adds a table of its own settings to :data:`CLIENT_SETTINGS` and calls :func:`resolve`::

    SETTINGS = {"group_id": Setting(None, text_or_none), "fetch_min_bytes": Setting(1, at_least(0))}
    config = resolve(SETTINGS, configs)

Names and defaults are kafka-python's, except that ``reconnect_backoff_max_ms`` has Java's default. Settings
marked with a KIP are Kafka's in snake case.
"""

from __future__ import annotations

import logging
import math
import selectors
import socket
import ssl
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.references import SECRET_SETTINGS
from kafkacore.security.secret import HIDDEN
from kafkacore.security.tls_contexts import TLS_VERSIONS
from kafkacore.text import did_you_mean

logger = logging.getLogger(__name__)

Check = Callable[[str, Any], Any]


class Setting(NamedTuple):
    """One setting.

    Attributes
    ----------
    default:
        Used where none is given; not checked.
    check:
        Name and value in, the value to use out, or :class:`~kafkacore.errors.KafkaConfigurationError`.
    """

    default: Any
    check: Check | None = None


def refuse(name: str, value: object, allowed: str) -> KafkaConfigurationError:
    """The error of a value that cannot be."""
    return KafkaConfigurationError(f"{name}={value!r}: it must be {allowed}")


def at_least(least: float) -> Check:
    """A number (:data:`math.inf` too) that is not below ``least``."""

    def check(name: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise refuse(name, value, f"a number, at least {least:g}")
        return value

    return check


def finite(least: float) -> Check:
    """As :func:`at_least`, and a wait must end some time."""
    bounded = at_least(least)

    def check(name: str, value: Any) -> Any:
        if bounded(name, value) == math.inf:
            raise refuse(name, value, "a finite number")
        return value

    return check


def one_of(*choices: Any) -> Check:
    def check(name: str, value: Any) -> Any:
        if value not in choices:
            raise refuse(name, value, f"one of {', '.join(map(str, choices))}")
        return value

    return check


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "text")
    return value


def between(least: float, most: float) -> Check:
    """A number, both ends included."""

    def check(name: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise refuse(name, value, f"a number from {least:g} to {most:g}")
        return value

    return check


def secret_or_none(name: str, value: Any) -> Secret | None:
    """A password, which is not seen any more from here on."""
    if value is None or isinstance(value, Secret):
        return value
    if not isinstance(value, str | bytes):
        raise refuse(name, value, "text, bytes or None")
    return Secret(value)


def ssl_context_or_none(name: str, value: Any) -> ssl.SSLContext | None:
    if value is not None and not isinstance(value, ssl.SSLContext):
        raise refuse(name, value, "an ssl.SSLContext or None")
    return value


def tls_versions_or_none(name: str, value: Any) -> tuple[str, ...] | None:
    """A list of names, or text with commas between them, as Java takes it."""
    if value is None:
        return None
    given = value.split(",") if isinstance(value, str) else value
    known = " and ".join(TLS_VERSIONS)
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise refuse(name, value, f"a list of {known}")
    names = tuple(each.strip() for each in given)
    if not names or not set(names) <= TLS_VERSIONS.keys():
        raise refuse(name, value, f"one or both of {known}; older ones are not spoken")
    return names


def text_or_none(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise refuse(name, value, "text or None")
    return value


def buffer_size(name: str, value: Any) -> int:
    """Bytes of a socket buffer; ``None`` and -1 leave it to the operating system."""
    if value is None or value == -1:
        return -1
    return int(at_least(1)(name, value))


def whole(least: int) -> Check:
    """A whole number that is not below ``least``."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise refuse(name, value, f"a whole number, at least {least}")
        return value

    return check


def reporters(name: str, value: Any) -> list[Any]:
    """Classes of metrics reporters, each made without arguments."""
    if not isinstance(value, list | tuple) or not all(callable(each) for each in value):
        raise refuse(name, value, "a list of classes with init, metric_change, metric_removal and close")
    return list(value)


def no_effect(name: str, value: Any) -> Any:
    """Accepted, so that programs written for kafka-python run, but not needed here."""
    return value


def means_nothing(name: str, value: Any) -> Any:
    """Accepted as well, and said so: whoever sets it expects something."""
    if value is not None:
        warn_once(name, "it has no effect here; leave it out")
    return value


_warned: set[str] = set()


def warn_once(name: str, what: str) -> None:
    """A ``DeprecationWarning`` of a setting, once in a process, at the line that is not ours."""
    if name in _warned:
        return
    _warned.add(name)
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("kafkacore."):
        frame = frame.f_back
        level += 1
    warnings.warn(f"{name}: {what}", DeprecationWarning, stacklevel=level)


def not_yet(default: Any) -> Setting:
    """A setting whose name is known, but of which only the default works."""

    def check(name: str, value: Any) -> Any:
        if value != default:
            raise KafkaConfigurationError(
                f"{name}={value!r}: kafkacore does not support this yet; leave it out"
            )
        return value

    return Setting(default, check)


def socket_options(name: str, value: Any) -> tuple[tuple[int, int, int | bytes], ...]:
    """Arguments of ``setsockopt``, tried on a socket."""
    if not isinstance(value, list | tuple):
        raise refuse(name, value, "a list of (level, option, value)")
    options = tuple(map(tuple, value))
    with socket.socket() as sock:
        for option in options:
            try:
                sock.setsockopt(*option)
            except (TypeError, OSError) as error:
                raise KafkaConfigurationError(
                    f"{name} has {option!r}, which no socket takes: {error}"
                ) from None
    return options


def api_version(name: str, value: Any) -> tuple[int, ...] | None:
    """A broker's version: what has none of our record batches is refused. Else it says that nobody need wait
    for a broker to find it out; what is spoken with each broker is agreed on with it.
    """
    if value is None or value == "auto":
        return None
    try:
        version = tuple(int(part) for part in (value.split(".") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise refuse(name, value, "None, or a broker's version, as (2, 8)") from None
    if version < OLDEST_BROKER:
        raise KafkaConfigurationError(
            f"{name}={value!r}: brokers before {'.'.join(map(str, OLDEST_BROKER))} do not know the record "
            "batches that kafkacore writes and reads"
        )
    return version


def selector(name: str, value: Any) -> str | None:
    """Which of Python's selectors, for the one here: by the system call that it stands for."""
    for selector_class, backend in SELECTORS.items():
        if value is selector_class:
            return backend
    if value is not None and value is not selectors.DefaultSelector:
        warn_once(name, f"{value!r} has no effect: the compiled one here waits by epoll or poll")
    return None


#: Selectors of the standard library that say how to wait.
SELECTORS: dict[Any, str] = {
    getattr(selectors, name): backend
    for name, backend in (("EpollSelector", "epoll"), ("PollSelector", "poll"))
    if hasattr(selectors, name)
}
#: The first that has record batches of format 2.
OLDEST_BROKER = (0, 11)


#: The values of ``security_protocol``.
SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOOKUPS = one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_RECOVERIES = one_of("rebootstrap", "none")

# fmt: off
#: What every client has. Times in milliseconds, sizes in bytes.
CLIENT_SETTINGS: dict[str, Setting] = {
    "bootstrap_servers":                        Setting("localhost"),
    "client_id":                                Setting("kafkacore", text_or_none),
    "client_dns_lookup":                        Setting("use_all_dns_ips", _LOOKUPS),
    "request_timeout_ms":                       Setting(30_000, finite(1)),
    "retry_backoff_ms":                         Setting(100, finite(0)),
    "retry_backoff_max_ms":                     Setting(1000, finite(0)),  # KIP-580
    "reconnect_backoff_ms":                     Setting(50, finite(0)),
    "reconnect_backoff_max_ms":                 Setting(1000, finite(0)),  # Java's; kafka-python: 30_000
    "socket_connection_setup_timeout_ms":       Setting(10_000, finite(1)),  # KIP-601
    "socket_connection_setup_timeout_max_ms":   Setting(30_000, finite(1)),
    "connections_max_idle_ms":                  Setting(540_000, at_least(0)),
    "max_in_flight_requests_per_connection":    Setting(5, at_least(1)),
    "metadata_max_age_ms":                      Setting(300_000, finite(0)),
    "metadata_recovery_strategy":               Setting("rebootstrap", _RECOVERIES),  # KIP-899
    "metadata_recovery_rebootstrap_trigger_ms": Setting(300_000, at_least(0)),
    "bootstrap_timeout_ms":                     Setting(30_000, at_least(0)),
    "receive_message_max_bytes":                Setting(100_000_000, at_least(1)),
    "receive_buffer_bytes":                     Setting(-1, buffer_size),
    "send_buffer_bytes":                        Setting(-1, buffer_size),
    "api_version":                              Setting(None, api_version),
    "metric_reporters":                         Setting([], reporters),
    "metrics_enabled":                          Setting(True, boolean),
    "metrics_num_samples":                      Setting(2, whole(1)),
    "metrics_sample_window_ms":                 Setting(30_000, finite(1)),
    "metric_group_prefix":                      Setting("", text_or_none),
    "selector":                                 Setting(None, selector),
    "kafka_client":                             Setting(None, means_nothing),
    "socket_options":                           Setting([(6, 1, 1)], socket_options),
    "security_protocol":                        Setting("PLAINTEXT", one_of(*SECURITY_PROTOCOLS)),
    "ssl_context":                              Setting(None, ssl_context_or_none),
    "ssl_check_hostname":                       Setting(True, boolean),
    "ssl_cafile":                               Setting(None, text_or_none),
    "ssl_certfile":                             Setting(None, text_or_none),
    "ssl_keyfile":                              Setting(None, secret_or_none),
    "ssl_crlfile":                              Setting(None, text_or_none),
    "ssl_password":                             Setting(None, secret_or_none),
    "ssl_ciphers":                              Setting(None, text_or_none),
    "ssl_enabled_protocols":                    Setting(None, tls_versions_or_none),
    "sasl_mechanism":                           Setting(None, text_or_none),
    "sasl_plain_username":                      Setting(None, text_or_none),
    "sasl_plain_password":                      Setting(None, secret_or_none),
    "sasl_allow_plain_over_plaintext":          Setting(False, boolean),
    "sasl_kerberos_name":                       Setting(None),
    "sasl_kerberos_service_name":               Setting("kafka", text),
    "sasl_kerberos_domain_name":                Setting(None, text_or_none),
    "sasl_kerberos_principal":                  Setting(None, text_or_none),
    "sasl_kerberos_keytab":                     Setting(None, text_or_none),
    "sasl_aws_region":                          Setting(None, text_or_none),
    "sasl_oauth_token_provider":                Setting(None),
    # KIP-768, KIP-1139
    "sasl_oauthbearer_token_endpoint_url":      Setting(None, text_or_none),
    "sasl_oauthbearer_client_credentials_client_id":     Setting(None, text_or_none),
    "sasl_oauthbearer_client_credentials_client_secret": Setting(None, secret_or_none),
    "sasl_oauthbearer_scope":                   Setting(None, text_or_none),
    "sasl_oauthbearer_header_urlencode":        Setting(False, boolean),
    "sasl_oauthbearer_https_cafile":            Setting(None, text_or_none),
    "sasl_login_connect_timeout_ms":            Setting(10_000, finite(1)),
    "sasl_login_read_timeout_ms":               Setting(10_000, finite(1)),
    "sasl_login_retry_backoff_ms":              Setting(100, finite(0)),
    "sasl_login_retry_backoff_max_ms":          Setting(10_000, finite(0)),
    "sasl_login_refresh_window_factor":         Setting(0.8, between(0.5, 1.0)),
    "sasl_login_refresh_window_jitter":         Setting(0.05, between(0.0, 0.25)),
    "sasl_login_refresh_min_period_seconds":    Setting(60, between(0, 900)),
    "sasl_login_refresh_buffer_seconds":        Setting(300, between(0, 3600)),
    "proxy_url":                                not_yet(None),
    "socks5_proxy":                             not_yet(None),
}
# fmt: on
#: Names that kafka-python had before 3.0, and which says the same today; ``None`` for none.
RETIRED_SETTINGS: dict[str, str | None] = {
    "api_version_auto_timeout_ms": "bootstrap_timeout_ms",
    "bootstrap_topics_filter": None,
    "legacy_iterator": None,
    "sock_chunk_buffer_count": None,
    "sock_chunk_bytes": None,
}


def resolve(own: Mapping[str, Setting | Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a client: defaults, what was given in their place, each checked.

    Parameters
    ----------
    own:
        The façade's own table, of :class:`Setting` or of bare defaults. It may repeat a name of
        :data:`CLIENT_SETTINGS` to change its default or check.
    given:
        The user's keyword arguments.

    Raises
    ------
    KafkaConfigurationError
        For an unknown name, with the nearest one that there is, and for a value that cannot be. The values of
        secrets are not in it.
    """
    table = CLIENT_SETTINGS | {
        name: entry if isinstance(entry, Setting) else Setting(entry) for name, entry in own.items()
    }
    given = _without_retired(table, given)
    unknown = [name for name in given if name not in table]
    if unknown:
        raise KafkaConfigurationError(_unknown(unknown, table))
    config = {name: setting.default for name, setting in table.items()}
    for name, value in given.items():
        check = table[name].check
        config[name] = value if check is None else _checked(name, value, check)
    if config["sasl_mechanism"] and not config["security_protocol"].startswith("SASL_"):
        logger.warning(
            "sasl_mechanism=%r is not used with security_protocol=%r: use SASL_SSL, or leave it out",
            config["sasl_mechanism"],
            config["security_protocol"],
        )
    return config


def _without_retired(table: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in given.items() if name in table or name not in RETIRED_SETTINGS}
    for name in given.keys() - kept.keys():
        today = RETIRED_SETTINGS[name]
        if today is None:
            warn_once(name, "kafka-python had it before 3.0; it has no effect any more, leave it out")
        else:
            kept.setdefault(today, given[name])
    return kept


def _checked(name: str, value: Any, check: Check) -> Any:
    if name not in SECRET_SETTINGS:
        return check(name, value)
    try:
        return check(name, value)
    except KafkaConfigurationError as error:
        raise KafkaConfigurationError(str(error).replace(repr(value), HIDDEN)) from None


def refuse_positional(client: str, positional: Iterable[object]) -> None:
    """Raise ``TypeError`` for settings given as a dict, as in confluent-kafka, or for any other positional
    argument of a client that takes none.
    """
    for argument in positional:
        what = "" if isinstance(argument, Mapping) else f", not as {type(argument).__name__}"
        raise TypeError(
            f"pass settings as keyword arguments{what}: {client}(**config); dots in names become "
            "underscores: bootstrap.servers -> bootstrap_servers"
        )


def _unknown(names: list[str], table: Mapping[str, Setting]) -> str:
    sentences = []
    for name in names:
        if "." in name and (underscored := name.replace(".", "_")) in table:
            sentences.append(f"there is no setting {name!r}: dots become underscores, {underscored!r}")
            continue
        longer = next((f"did you mean {known!r}?" for known in table if name in known), "")
        hint = did_you_mean(name, table, longer, show=repr)
        sentences.append(f"there is no setting {name!r}" + (f"; {hint}" if hint else ""))
    return ". ".join(sentences)


def servers_text(config: Mapping[str, Any]) -> str:
    """``bootstrap_servers`` as one text, for messages."""
    servers = config["bootstrap_servers"]
    return servers if isinstance(servers, str) else ",".join(map(str, servers))


def redacted(config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` as it may be logged."""
    return {
        name: HIDDEN if name in SECRET_SETTINGS and value is not None else value
        for name, value in config.items()
    }
