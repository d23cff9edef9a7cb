"""The broker's configuration: arguments or Kafka's property names in, one checked immutable object out.

Field names are Kafka's property names with underscores (``num.partitions`` → ``num_partitions``). What sets
a default of topics (``log.segment.bytes``) lands in ``log_defaults`` under the topic's key. Does not know:
how anything is used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from kafkacore.broker.config.config_keys import BROKER_KEYS, BrokerSetting, as_text, resolve
from kafkacore.broker.config.listener_keys import DEFAULT_PROTOCOL_MAP, USER_PREFIX
from kafkacore.broker.config.listeners import (
    EVERY_ADDRESS,
    Endpoint,
    Listener,
    PropertyValue,
    check_security,
    configured_listeners,
    parse_endpoints,
    parse_protocol_map,
)
from kafkacore.broker.config.quota_overrides import parse_overrides
from kafkacore.broker.config.topic_config import TOPIC_CONFIG, checked_value
from kafkacore.errors import InvalidConfigurationError, KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.loopback import is_loopback
from kafkacore.settings.texts import InvalidTextError, check_choice, check_limits
from kafkacore.structs import INT32_MAX

#: Fields that the two properties of listeners say together.
_ADDRESSES = frozenset(
    {"host", "port", "security_protocol", "listeners"}
    | {"advertised_host", "advertised_port", "advertised_listeners"}
)


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """What a broker is told at start.

    Parameters
    ----------
    data_dir:
        Folder of the logs; made (mode 0700) if it is missing. One broker per folder.
    host, port:
        Where the first listener is. Port 0 takes a free one. A host that other machines can reach is refused
        unless clients have to authenticate there, or ``allow_remote`` is set.
    listeners, listener_security_protocol_map, advertised_listeners:
        As Kafka has them, for several listeners and other protocols; the first one's address is ``host`` and
        ``port``. Without ``listeners`` there is one, of the name of its ``security_protocol``.
    security_protocol:
        What the one listener speaks, where ``listeners`` is not given.
    listener_properties:
        Kafka's properties of listeners, with dots, and passwords of users (``sasl.user.alice``); checked by
        :func:`~kafkacore.broker.config.listeners.checked_property`.
    self_made_certificate:
        For development: a listener with TLS that has no key store gets a certificate of our own making.
    advertised_host:
        What clients of the first listener are told to connect to; ``host`` if not given, and needed where
        that is every address.
    advertised_port:
        The port that clients are told, where it is not the one listened on: that of a proxy in front of the
        broker, such as ``kafkacore.testing.FaultProxy``.
    flush:
        ``"ack"``: the broker acknowledges a record, with acks=1 or acks=all, when ``fdatasync`` has returned.
        ``"os"``: when the record is written to the operating system. It then survives the death of the
        process, but not a loss of power.
    fetch_max_bytes:
        Most bytes of records in one Fetch response, whatever the client asks for.
    max_decompressed_batch_bytes:
        Most bytes that a producer's compressed batch may have in it; one with more is too large.
    log_cleaner_enable, log_cleaner_backoff_ms, log_cleaner_dedupe_buffer_size,
    log_cleaner_io_buffer_load_factor, log_cleaner_io_buffer_size, log_cleaner_io_max_bytes_per_second:
        Of the compaction of logs, as in Kafka; bytes, and milliseconds.
    log_defaults:
        Topic configuration key → text; what a topic gets that does not say otherwise.

    Raises
    ------
    KafkaConfigurationError
        Names the field, its value and what it may be.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 9092
    security_protocol: str = "PLAINTEXT"
    listeners: str = ""
    listener_security_protocol_map: str = DEFAULT_PROTOCOL_MAP
    advertised_listeners: str = ""
    advertised_host: str | None = None
    advertised_port: int | None = None
    allow_remote: bool = False
    self_made_certificate: bool = False
    connection_setup_timeout_ms: int = 10_000
    connection_failed_authentication_delay_ms: int = 100
    authorizer_class_name: str = ""
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False
    status_port: int = -1
    flush: str = "ack"
    node_id: int = 1
    rack: str | None = None
    num_partitions: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    message_max_bytes: int = 1_048_588
    socket_request_max_bytes: int = 100 * 1024 * 1024
    fetch_max_bytes: int = 55 * 1024 * 1024
    max_incremental_fetch_session_cache_slots: int = 1000
    quota_producer_default: int | None = None
    quota_producer_overrides: str = ""
    quota_consumer_default: int | None = None
    quota_consumer_overrides: str = ""
    quota_request_default: int | None = None
    quota_request_overrides: str = ""
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    connections_max_idle_ms: int = 600_000
    max_connections: int = 10_000
    max_connections_per_ip: int = INT32_MAX
    max_connections_per_ip_overrides: str = ""
    queued_max_request_bytes: int = 256 * 1024 * 1024
    max_partitions: int = 100_000
    max_decompressed_batch_bytes: int = 64 * 1024 * 1024
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = INT32_MAX
    offset_metadata_max_bytes: int = 4096
    offsets_commit_timeout_ms: int = 5_000
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    offsets_retention_check_interval_ms: int = 600_000
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_topic_compression_codec: int = 0
    offsets_topic_num_partitions: int = 50
    offsets_topic_segment_bytes: int = 100 * 1024 * 1024
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 128 * 1024 * 1024
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_buffer_size: int = 512 * 1024
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    log_defaults: Mapping[str, str] = field(default_factory=dict)
    listener_properties: Mapping[str, PropertyValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_dir", Path(self.data_dir).absolute())
        for key in BROKER_KEYS:
            _check(key, getattr(self, key.field))
        if self.num_partitions > self.max_partitions:
            raise KafkaConfigurationError(
                f"num.partitions={self.num_partitions} must be between 1 and {self.max_partitions}"
            )
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise KafkaConfigurationError(
                f"group.min.session.timeout.ms={self.group_min_session_timeout_ms} must not be larger than "
                f"group.max.session.timeout.ms={self.group_max_session_timeout_ms}"
            )
        object.__setattr__(self, "host", self.node_listeners[0].host)
        if self.listeners:
            object.__setattr__(self, "listeners", ",".join(str(each) for each in self._endpoints()))
        for listener in self.node_listeners:
            self._check_reach(listener)
            check_security(listener, has_certificate=self.self_made_certificate)
        if self.users and not any(listener.has_sasl for listener in self.node_listeners):
            raise KafkaConfigurationError(
                f"{USER_PREFIX}{min(self.users)}: no listener asks who a client is; let one speak SASL_SSL "
                "(security.protocol=SASL_SSL, kafkacore broker --security-protocol SASL_SSL)"
            )
        for name in ("producer", "consumer", "request"):
            parse_overrides(f"quota.{name}.overrides", getattr(self, f"quota_{name}_overrides"))
        self.connection_overrides()
        self.super_user_names()
        if self.queued_max_request_bytes == 0:
            raise KafkaConfigurationError("queued.max.request.bytes=0 must be -1 (no limit) or more than 0")
        self._check_log_defaults()

    @cached_property
    def node_listeners(self) -> tuple[Listener, ...]:
        """Where a node listens and how; the first has ``host`` and ``port``."""
        if self.listeners and self.security_protocol != "PLAINTEXT":
            raise KafkaConfigurationError(
                f"security.protocol={self.security_protocol} is of the one listener of a broker that has no "
                "listeners property; leave it out, and say it in listeners"
            )
        endpoints = [Endpoint(self.security_protocol, self.host, self.port)]
        if self.listeners:
            endpoints = parse_endpoints("listeners", self.listeners)
            endpoints[0] = endpoints[0]._replace(host=self.host, port=self.port)
        text = self.advertised_listeners
        told = {each.name: each for each in parse_endpoints("advertised.listeners", text)} if text else {}
        first = endpoints[0].name
        if self.advertised_host or self.advertised_port:
            known = told.get(first, Endpoint(first, endpoints[0].host, 0))
            told[first] = Endpoint(
                first, self.advertised_host or known.host, self.advertised_port or known.port
            )
        made = configured_listeners(
            endpoints, told, parse_protocol_map(self.listener_security_protocol_map), self.listener_properties
        )
        return tuple(self._with_host(listener) for listener in made)

    def _with_host(self, listener: Listener) -> Listener:
        """A listener that names no host is on every address if it may be, else on this machine's own."""
        if listener.host:
            return listener
        host = "0.0.0.0" if self.allow_remote or listener.authenticates else "127.0.0.1"
        return replace(listener, host=host, advertised_host=listener.advertised_host or host)

    def _check_reach(self, listener: Listener) -> None:
        """Refuse what lets other machines in without asking them, and what no client could connect to."""
        if not (self.allow_remote or listener.authenticates or is_loopback(listener.host)):
            raise KafkaConfigurationError(
                f"listening on {listener.host} lets other machines in and no authentication is configured "
                f"there; listen on 127.0.0.1, let the listener speak SASL_SSL, or say allow.remote=true "
                "(kafkacore broker --allow-remote) if that is meant"
            )
        if listener.advertised_host in EVERY_ADDRESS:
            raise KafkaConfigurationError(
                f"clients cannot connect to {listener.advertised_host}; say which of this machine's names "
                "or addresses they are to be told with advertised.host, or advertised.listeners"
            )

    @property
    def users(self) -> dict[str, Secret]:
        """User → password, of the properties ``sasl.user.<name>``."""
        found = self.listener_properties.items()
        return {
            name.removeprefix(USER_PREFIX): Secret(value)
            for name, value in found
            if name.startswith(USER_PREFIX)
        }

    def super_user_names(self) -> list[str]:
        """``super.users``: principals, as text."""
        names = [part.strip() for part in self.super_users.split(";") if part.strip()]
        for name in names:
            kind, colon, user = name.partition(":")
            if not (kind and colon and user):
                raise KafkaConfigurationError(
                    f"super.users={self.super_users} must be type:name with semicolons between, for example "
                    f"User:admin;User:alice; {name} is not"
                )
        return names

    def connection_overrides(self) -> dict[str, int]:
        """``max.connections.per.ip.overrides``: address → connections."""
        found: dict[str, int] = {}
        text = self.max_connections_per_ip_overrides
        for part in filter(None, (part.strip() for part in text.split(","))):
            host, colon, count = part.rpartition(":")
            if not colon or not host or not count.isdecimal():
                raise KafkaConfigurationError(
                    f"max.connections.per.ip.overrides={text} must be address:count, "
                    "for example 127.0.0.1:100,::1:200"
                )
            found[host.removeprefix("[").removesuffix("]")] = int(count)
        return found

    def _check_log_defaults(self) -> None:
        checked = {"max.message.bytes": str(self.message_max_bytes)}
        for name, text in self.log_defaults.items():
            key = TOPIC_CONFIG.get(name)
            if key is None:
                raise KafkaConfigurationError(f"log_defaults: unknown topic config name {name}")
            if not key.broker_name:
                raise KafkaConfigurationError(f"log_defaults: {name} can only be said of a topic")
            try:
                checked[name] = checked_value(key, str(text))
            except InvalidConfigurationError as error:
                raise KafkaConfigurationError(str(error.args[0])) from None
        object.__setattr__(self, "log_defaults", checked)

    @property
    def client_host(self) -> str:
        """The host that clients of the first listener are told."""
        return self.node_listeners[0].advertised_host

    def topic_defaults(self) -> dict[str, str]:
        """Every topic configuration key with the value that a topic gets when it says nothing."""
        return {name: self.log_defaults.get(name, key.default) for name, key in TOPIC_CONFIG.items()}

    def properties(self) -> dict[str, PropertyValue]:
        """What differs from the defaults, as Kafka's property names and text; not address, folder or flush.

        ``from_properties`` of these, with ``data_dir``, ``listen`` and ``flush`` added, gives this
        configuration. What is secret is a :class:`Secret`.
        """
        given: dict[str, PropertyValue] = {}
        left_out = ("data_dir", "host", "port", "flush", "log_defaults", "listener_properties")
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in left_out or value == item.default:
                continue
            given[item.name.replace("_", ".")] = as_text(value)
        for name, text in self.log_defaults.items():
            key = TOPIC_CONFIG[name]
            if key.broker_name and text != key.default:
                given[key.broker_name] = text
        return {**given, **self.listener_properties}

    def effective_properties(self) -> dict[str, str]:
        """Every property that is set, by Kafka's name and as text, as a file of properties would say it.

        What is secret is said to be hidden.
        """
        told = [
            Endpoint(each.name, each.advertised_host, each.advertised_port or each.port)
            for each in self.node_listeners
        ]
        shown = {
            "listeners": ",".join(str(each) for each in self._endpoints()),
            "advertised.listeners": ",".join(map(str, told)),
        }
        for key in BROKER_KEYS:
            value = getattr(self, key.field)
            if key.field not in _ADDRESSES and value is not None:
                shown[key.name] = as_text(value)
        for name, text in self.topic_defaults().items():
            if TOPIC_CONFIG[name].broker_name:
                shown[TOPIC_CONFIG[name].broker_name] = text
        shown |= {name: as_text(value) for name, value in self.listener_properties.items()}
        return dict(sorted(shown.items()))

    def _endpoints(self) -> list[Endpoint]:
        return [Endpoint(each.name, each.host, each.port) for each in self.node_listeners]

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> BrokerConfig:
        """Build from Kafka's names (``num.partitions`` or ``num_partitions``), values typed or as text.

        Raises
        ------
        KafkaConfigurationError
            For a name that is not known, or a value that the property may not have.
        """
        return cls(**resolve([("given", properties)]).arguments)


def _check(key: BrokerSetting, value: object) -> None:
    try:
        if isinstance(value, int | float):
            check_limits(key, value)
        if value is not None:
            check_choice(key, value)
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{key.name}={value} {error}") from None
