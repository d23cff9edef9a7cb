"""The broker's configuration, as one checked immutable object.

Field names are Kafka's setting names with underscores (``num.partitions`` → ``num_partitions``). Their
defaults are in the table of ``config_keys``. A setting that changes a default of topics
(``log.segment.bytes``) is stored in ``log_defaults`` under the name of the topic setting (``segment.bytes``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from kafkacore.broker.config.config_keys import BROKER_KEYS, BrokerSetting, as_text, broker_default, resolve
from kafkacore.broker.config.group_limits import check_consumer_groups, checked_assignors, checked_protocols
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

#: Fields that are shown as the properties ``listeners`` and ``advertised.listeners``.
_ADDRESSES = frozenset(
    {"host", "port", "security_protocol", "listeners"}
    | {"advertised_host", "advertised_port", "advertised_listeners"}
)


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """The configuration with which a broker starts.

    docs/BROKER.md describes every setting; the parameters below need more explanation.

    Parameters
    ----------
    data_dir:
        Folder of the logs, created with mode 0700 if it is missing. Only one broker can use it.
    host, port:
        Address of the first listener. Port 0 chooses a free port. A host that other machines can reach
        requires that clients authenticate, or ``allow_remote``.
    listeners, listener_security_protocol_map, advertised_listeners:
        Kafka's settings for several listeners or other protocols. ``host`` and ``port`` are the address of
        the first listener. Without ``listeners`` there is one listener, named after ``security_protocol``.
    security_protocol:
        Protocol of the only listener if ``listeners`` is not set.
    listener_properties:
        Kafka's listener settings under their names with dots, and passwords of users (``sasl.user.alice``).
        :func:`~kafkacore.broker.config.listeners.checked_property` checks each of them.
    self_made_certificate:
        For development: whether the broker creates a certificate for TLS listeners without a key store.
    advertised_host:
        Host that clients of the first listener connect to; defaults to ``host``. Required if ``host`` stands
        for every address.
    advertised_port:
        Port that clients of the first listener connect to if it is not the bound port, for example the port
        of a proxy such as ``kafkacore.testing.FaultProxy``.
    flush:
        ``"ack"``: the broker acknowledges a record (acks=1 or acks=all) after ``fdatasync`` has returned
        (on macOS, ``fcntl`` with ``F_FULLFSYNC``).
        ``"os"``: it acknowledges a record after writing it to the operating system. The record then survives
        a crash of the process, but not a power failure.
    fetch_max_bytes:
        Maximum bytes of records in one Fetch response, whatever the client requests.
    max_decompressed_batch_bytes:
        Maximum bytes of a producer's compressed batch after decompression.
    log_cleaner_enable, log_cleaner_backoff_ms, log_cleaner_dedupe_buffer_size, \
    log_cleaner_io_buffer_load_factor, log_cleaner_io_buffer_size, log_cleaner_io_max_bytes_per_second:
        Settings of log compaction, as in Kafka, in bytes and milliseconds.
    log_defaults:
        Name of a topic setting, such as ``segment.bytes`` → its default, as text.

    Raises
    ------
    KafkaConfigurationError
        A value is invalid. The message names the setting, the value and the valid values.
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
    controller_quota_window_num: int = broker_default("controller_quota_window_num")
    controller_quota_window_size_seconds: int = broker_default("controller_quota_window_size_seconds")
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
    group_consumer_assignment_interval_ms: int = broker_default("group_consumer_assignment_interval_ms")
    group_consumer_assignors: str = broker_default("group_consumer_assignors")
    group_consumer_heartbeat_interval_ms: int = broker_default("group_consumer_heartbeat_interval_ms")
    group_consumer_max_assignment_interval_ms: int = broker_default(
        "group_consumer_max_assignment_interval_ms"
    )
    group_consumer_max_heartbeat_interval_ms: int = broker_default("group_consumer_max_heartbeat_interval_ms")
    group_consumer_max_session_timeout_ms: int = broker_default("group_consumer_max_session_timeout_ms")
    group_consumer_max_size: int = broker_default("group_consumer_max_size")
    group_consumer_migration_policy: str = broker_default("group_consumer_migration_policy")
    group_consumer_min_assignment_interval_ms: int = broker_default(
        "group_consumer_min_assignment_interval_ms"
    )
    group_consumer_min_heartbeat_interval_ms: int = broker_default("group_consumer_min_heartbeat_interval_ms")
    group_consumer_min_session_timeout_ms: int = broker_default("group_consumer_min_session_timeout_ms")
    group_consumer_regex_refresh_interval_ms: int = broker_default("group_consumer_regex_refresh_interval_ms")
    group_consumer_session_timeout_ms: int = broker_default("group_consumer_session_timeout_ms")
    group_coordinator_rebalance_protocols: str = broker_default("group_coordinator_rebalance_protocols")
    offset_metadata_max_bytes: int = broker_default("offset_metadata_max_bytes")
    offsets_commit_timeout_ms: int = broker_default("offsets_commit_timeout_ms")
    offsets_load_buffer_size: int = broker_default("offsets_load_buffer_size")
    offsets_retention_check_interval_ms: int = broker_default("offsets_retention_check_interval_ms")
    offsets_retention_minutes: int = broker_default("offsets_retention_minutes")
    offsets_topic_compression_codec: int = broker_default("offsets_topic_compression_codec")
    offsets_topic_num_partitions: int = broker_default("offsets_topic_num_partitions")
    offsets_topic_segment_bytes: int = broker_default("offsets_topic_segment_bytes")
    producer_id_expiration_check_interval_ms: int = broker_default("producer_id_expiration_check_interval_ms")
    producer_id_expiration_ms: int = broker_default("producer_id_expiration_ms")
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = broker_default(
        "transaction_abort_timed_out_transaction_cleanup_interval_ms"
    )
    transaction_max_timeout_ms: int = broker_default("transaction_max_timeout_ms")
    transaction_partition_verification_enable: bool = broker_default(
        "transaction_partition_verification_enable"
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = broker_default(
        "transaction_remove_expired_transaction_cleanup_interval_ms"
    )
    transaction_state_log_load_buffer_size: int = broker_default("transaction_state_log_load_buffer_size")
    transaction_state_log_num_partitions: int = broker_default("transaction_state_log_num_partitions")
    transaction_state_log_segment_bytes: int = broker_default("transaction_state_log_segment_bytes")
    transactional_id_expiration_ms: int = broker_default("transactional_id_expiration_ms")
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
        self._normalise_consumer_groups()
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
        check_consumer_groups(self)
        object.__setattr__(self, "host", self.node_listeners[0].host)
        if self.listeners:
            object.__setattr__(self, "listeners", ",".join(str(each) for each in self._endpoints()))
        for listener in self.node_listeners:
            self._check_exposure(listener)
            check_security(listener, has_certificate=self.self_made_certificate)
        if self.users and not any(listener.has_sasl for listener in self.node_listeners):
            raise KafkaConfigurationError(
                f"{USER_PREFIX}{min(self.users)} has no effect because no listener authenticates clients: "
                "set security.protocol=SASL_SSL (kafkacore broker --security-protocol SASL_SSL)"
            )
        for name in ("producer", "consumer", "request"):
            parse_overrides(f"quota.{name}.overrides", getattr(self, f"quota_{name}_overrides"))
        self.connection_overrides()
        self.super_user_names()
        if self.queued_max_request_bytes == 0:
            raise KafkaConfigurationError("queued.max.request.bytes=0 must be -1 (no limit) or more than 0")
        self._check_log_defaults()

    def _normalise_consumer_groups(self) -> None:
        """Remove blanks from the lists. Convert the policy to lower case, because Kafka ignores its case."""
        normal = {
            "group_consumer_assignors": checked_assignors(self.group_consumer_assignors),
            "group_consumer_migration_policy": self.group_consumer_migration_policy.strip().lower(),
            "group_coordinator_rebalance_protocols": checked_protocols(
                self.group_coordinator_rebalance_protocols
            ),
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)

    @cached_property
    def node_listeners(self) -> tuple[Listener, ...]:
        """Listeners of a node. The first listener has the address ``host`` and ``port``."""
        if self.listeners and self.security_protocol != "PLAINTEXT":
            raise KafkaConfigurationError(
                f"security.protocol={self.security_protocol} applies only when 'listeners' is not set. "
                "Remove it, or set the protocol in 'listeners'"
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
        """Set a missing host of a listener: every address if remote clients are allowed, else loopback."""
        if listener.host:
            return listener
        host = "0.0.0.0" if self.allow_remote or listener.authenticates else "127.0.0.1"
        return replace(listener, host=host, advertised_host=listener.advertised_host or host)

    def _check_exposure(self, listener: Listener) -> None:
        """Raise an error if unauthenticated clients could connect remotely, or if no client could connect."""
        if not (self.allow_remote or listener.authenticates or is_loopback(listener.host)):
            raise KafkaConfigurationError(
                f"other machines could connect to {listener.host} without authentication: listen on "
                "127.0.0.1, use SASL_SSL, or set allow.remote=true (kafkacore broker --allow-remote) to "
                "allow unauthenticated access"
            )
        if listener.advertised_host in EVERY_ADDRESS:
            raise KafkaConfigurationError(
                f"clients cannot connect to {listener.advertised_host}: set advertised.host or "
                "advertised.listeners to a name or address of this machine"
            )

    @property
    def users(self) -> dict[str, Secret]:
        """Passwords by user name, from the settings ``sasl.user.<name>``."""
        found = self.listener_properties.items()
        return {
            name.removeprefix(USER_PREFIX): Secret(value)
            for name, value in found
            if name.startswith(USER_PREFIX)
        }

    def super_user_names(self) -> list[str]:
        """Return the principals in ``super.users``, as text."""
        names = [part.strip() for part in self.super_users.split(";") if part.strip()]
        for name in names:
            kind, colon, user = name.partition(":")
            if not (kind and colon and user):
                raise KafkaConfigurationError(
                    f"super.users={self.super_users} must be a list of type:name separated by semicolons, "
                    f"for example User:admin;User:alice; {name} is invalid"
                )
        return names

    def connection_overrides(self) -> dict[str, int]:
        """Return the connection limits in ``max.connections.per.ip.overrides``, by address."""
        found: dict[str, int] = {}
        text = self.max_connections_per_ip_overrides
        for part in filter(None, (part.strip() for part in text.split(","))):
            host, colon, count = part.rpartition(":")
            if not colon or not host or not count.isdecimal():
                raise KafkaConfigurationError(
                    f"max.connections.per.ip.overrides={text} must be a list of address:count separated by "
                    "commas, for example 127.0.0.1:100,::1:200"
                )
            found[host.removeprefix("[").removesuffix("]")] = int(count)
        return found

    def _check_log_defaults(self) -> None:
        checked = {"max.message.bytes": str(self.message_max_bytes)}
        for name, text in self.log_defaults.items():
            key = TOPIC_CONFIG.get(name)
            if key is None:
                raise KafkaConfigurationError(f"log_defaults: unknown topic setting {name}")
            if not key.broker_name:
                raise KafkaConfigurationError(f"log_defaults: {name} can be set for single topics only")
            try:
                checked[name] = checked_value(key, str(text))
            except InvalidConfigurationError as error:
                raise KafkaConfigurationError(str(error.args[0])) from None
        object.__setattr__(self, "log_defaults", checked)

    @property
    def client_host(self) -> str:
        """Advertised host of the first listener."""
        return self.node_listeners[0].advertised_host

    def topic_defaults(self) -> dict[str, str]:
        """Return the default of every topic setting."""
        return {name: self.log_defaults.get(name, key.default) for name, key in TOPIC_CONFIG.items()}

    def properties(self) -> dict[str, PropertyValue]:
        """Return the settings that differ from their defaults, without address, folder and flush.

        Names are Kafka's, values are text, and secret values are a :class:`Secret`. ``from_properties``
        creates the same configuration from these settings together with ``data_dir``, ``listen`` and
        ``flush``.
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
        """Return every setting that has a value, as in a properties file; secret values are hidden."""
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
        """Create a configuration from Kafka's setting names (``num.partitions`` or ``num_partitions``).

        Parameters
        ----------
        properties:
            Values by name, typed or as text.

        Raises
        ------
        KafkaConfigurationError
            A name is unknown or a value is invalid.
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
