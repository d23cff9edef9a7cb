"""The broker's configuration: one checked immutable object.

Field names are Kafka's property names with underscores (``num.partitions`` → ``num_partitions``); their
defaults are in the rows of ``config_keys``. A property that sets a default of topics (``log.segment.bytes``)
is in ``log_defaults`` under the topic's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from kafkacore.broker.config.config_keys import BROKER_KEYS, BrokerSetting, as_text, broker_default, resolve
from kafkacore.broker.config.listener_keys import USER_PREFIX
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

#: Fields that the two properties of listeners say together.
_ADDRESSES = frozenset(
    {"host", "port", "security_protocol", "listeners"}
    | {"advertised_host", "advertised_port", "advertised_listeners"}
)


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """The configuration of a broker when it starts.

    Parameters
    ----------
    data_dir:
        Folder of the logs; created (mode 0700) if it is missing. One broker per folder.
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
        The host that clients of the first listener connect to; ``host`` if not given. Required if ``host`` is
        every address.
    advertised_port:
        The port that clients of the first listener connect to, if it is not the one listened on: that of a
        proxy in front of the broker, such as ``kafkacore.testing.FaultProxy``.
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
        Topic configuration key → text: the defaults of topics.

    Raises
    ------
    KafkaConfigurationError
        Names the field, its value and what it may be.
    """

    data_dir: Path
    host: str = broker_default("host")
    port: int = broker_default("port")
    security_protocol: str = broker_default("security_protocol")
    listeners: str = broker_default("listeners")
    listener_security_protocol_map: str = broker_default("listener_security_protocol_map")
    advertised_listeners: str = broker_default("advertised_listeners")
    advertised_host: str | None = broker_default("advertised_host")
    advertised_port: int | None = broker_default("advertised_port")
    allow_remote: bool = broker_default("allow_remote")
    self_made_certificate: bool = broker_default("self_made_certificate")
    connection_setup_timeout_ms: int = broker_default("connection_setup_timeout_ms")
    connection_failed_authentication_delay_ms: int = broker_default(
        "connection_failed_authentication_delay_ms"
    )
    authorizer_class_name: str = broker_default("authorizer_class_name")
    super_users: str = broker_default("super_users")
    allow_everyone_if_no_acl_found: bool = broker_default("allow_everyone_if_no_acl_found")
    status_port: int = broker_default("status_port")
    flush: str = broker_default("flush")
    node_id: int = broker_default("node_id")
    rack: str | None = broker_default("rack")
    num_partitions: int = broker_default("num_partitions")
    auto_create_topics_enable: bool = broker_default("auto_create_topics_enable")
    delete_topic_enable: bool = broker_default("delete_topic_enable")
    message_max_bytes: int = broker_default("message_max_bytes")
    socket_request_max_bytes: int = broker_default("socket_request_max_bytes")
    fetch_max_bytes: int = broker_default("fetch_max_bytes")
    max_incremental_fetch_session_cache_slots: int = broker_default(
        "max_incremental_fetch_session_cache_slots"
    )
    quota_producer_default: int | None = broker_default("quota_producer_default")
    quota_producer_overrides: str = broker_default("quota_producer_overrides")
    quota_consumer_default: int | None = broker_default("quota_consumer_default")
    quota_consumer_overrides: str = broker_default("quota_consumer_overrides")
    quota_request_default: int | None = broker_default("quota_request_default")
    quota_request_overrides: str = broker_default("quota_request_overrides")
    quota_window_num: int = broker_default("quota_window_num")
    quota_window_size_seconds: int = broker_default("quota_window_size_seconds")
    connections_max_idle_ms: int = broker_default("connections_max_idle_ms")
    max_connections: int = broker_default("max_connections")
    max_connections_per_ip: int = broker_default("max_connections_per_ip")
    max_connections_per_ip_overrides: str = broker_default("max_connections_per_ip_overrides")
    queued_max_request_bytes: int = broker_default("queued_max_request_bytes")
    max_partitions: int = broker_default("max_partitions")
    max_decompressed_batch_bytes: int = broker_default("max_decompressed_batch_bytes")
    group_min_session_timeout_ms: int = broker_default("group_min_session_timeout_ms")
    group_max_session_timeout_ms: int = broker_default("group_max_session_timeout_ms")
    group_initial_rebalance_delay_ms: int = broker_default("group_initial_rebalance_delay_ms")
    group_max_size: int = broker_default("group_max_size")
    offset_metadata_max_bytes: int = broker_default("offset_metadata_max_bytes")
    offsets_commit_timeout_ms: int = broker_default("offsets_commit_timeout_ms")
    offsets_load_buffer_size: int = broker_default("offsets_load_buffer_size")
    offsets_retention_check_interval_ms: int = broker_default("offsets_retention_check_interval_ms")
    offsets_retention_minutes: int = broker_default("offsets_retention_minutes")
    offsets_topic_compression_codec: int = broker_default("offsets_topic_compression_codec")
    offsets_topic_num_partitions: int = broker_default("offsets_topic_num_partitions")
    offsets_topic_segment_bytes: int = broker_default("offsets_topic_segment_bytes")
    log_cleaner_enable: bool = broker_default("log_cleaner_enable")
    log_cleaner_backoff_ms: int = broker_default("log_cleaner_backoff_ms")
    log_cleaner_dedupe_buffer_size: int = broker_default("log_cleaner_dedupe_buffer_size")
    log_cleaner_io_buffer_load_factor: float = broker_default("log_cleaner_io_buffer_load_factor")
    log_cleaner_io_buffer_size: int = broker_default("log_cleaner_io_buffer_size")
    log_cleaner_io_max_bytes_per_second: float = broker_default("log_cleaner_io_max_bytes_per_second")
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
        parsed = parse_endpoints("advertised.listeners", text) if text else []
        advertised = {each.name: each for each in parsed}
        first = endpoints[0].name
        if self.advertised_host or self.advertised_port:
            known = advertised.get(first, Endpoint(first, endpoints[0].host, 0))
            advertised[first] = Endpoint(
                first, self.advertised_host or known.host, self.advertised_port or known.port
            )
        made = configured_listeners(
            endpoints,
            advertised,
            parse_protocol_map(self.listener_security_protocol_map),
            self.listener_properties,
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
                f"clients cannot connect to {listener.advertised_host}; set advertised.host or "
                "advertised.listeners to a name or an address of this machine"
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
        """The advertised host of the first listener."""
        return self.node_listeners[0].advertised_host

    def topic_defaults(self) -> dict[str, str]:
        """Every topic configuration key with its default for topics."""
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
        """Every property that is set, by Kafka's name, as text of a properties file; secrets are hidden."""
        advertised = [
            Endpoint(each.name, each.advertised_host, each.advertised_port or each.port)
            for each in self.node_listeners
        ]
        shown = {
            "listeners": ",".join(str(each) for each in self._endpoints()),
            "advertised.listeners": ",".join(map(str, advertised)),
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
