"""The table of the broker's settings, and the conversion of properties to fields of ``BrokerConfig``.

To add a setting, add a row with its default to :data:`BROKER_KEYS` and a typed field to ``BrokerConfig``.
Names and syntax follow Kafka's ``KafkaConfig``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafkacore.broker.config.group_limits import MIGRATION_POLICIES
from kafkacore.broker.config.kafka_keys import (
    CLIENT_OR_JAVA,
    REPLICATION_FACTORS,
    SECURITY_PREFIXES,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_PREFIXES,
)
from kafkacore.broker.config.listener_keys import (
    CLIENT_AUTH,
    DEFAULT_PROTOCOL_MAP,
    LISTENER_KEYS,
    LISTENER_PREFIX,
    USER_PREFIX,
    is_listener_property,
)
from kafkacore.broker.config.listeners import (
    Endpoint,
    PropertyValue,
    checked_property,
    parse_endpoints,
    parse_protocol_map,
)
from kafkacore.broker.config.topic_config import BROKER_SYNONYMS, TOPIC_CONFIG
from kafkacore.errors import KafkaConfigurationError
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.settings import SECURITY_PROTOCOLS, Config, SettingType, suggestion, table
from kafkacore.settings.setting import Setting
from kafkacore.settings.texts import InvalidTextError, read, words
from kafkacore.structs import INT32_MAX, INT64_MAX, Compression

_CODEC_NUMBERS = ", ".join(f"{codec.value} {codec.name.lower()}" for codec in Compression)
#: Kafka's name of the only authorizer that this broker has.
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class BrokerSetting(Setting):
    """A setting of the broker, under Kafka's name if Kafka has it.

    Parameters
    ----------
    field:
        Name of the field of ``BrokerConfig`` that the setting changes.
    """

    field: str = ""


def _key(
    name: str,
    field: str,
    kind: SettingType,
    default: object,
    low: float | None = None,
    high: float | None = None,
    *,
    documentation: str,
    choices: tuple[str, ...] = (),
    is_dynamic: bool = False,
) -> BrokerSetting:
    return BrokerSetting(
        name, kind, default, documentation, low, high, choices, is_dynamic=is_dynamic, field=field
    )


_B, _S, _I, _L = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT, SettingType.LONG
_D = SettingType.DOUBLE

# fmt: off
BROKER_KEYS: Final = (
    _key("log.dirs", "data_dir", _S, None,
         documentation="Folder for the logs of all partitions. The broker creates a missing folder with "
                       "mode 0700. Only one folder is supported, and only one broker can use it."),
    _key("listeners", "listeners", _S, "",
         documentation="Addresses that clients connect to, as a comma-separated list of "
                       "`NAME://host:port`. Port 0 chooses a free port. Without a host, the listener is "
                       "limited to this machine unless its clients authenticate or `allow.remote` is set."),
    _key("host", "host", _S, "127.0.0.1",
         documentation="Host of the first listener, as an alternative to `listeners`."),
    _key("port", "port", _I, 9092, 0, 65535,
         documentation="Port of the first listener, as an alternative to `listeners`. 0 chooses a free "
                       "port."),
    _key("security.protocol", "security_protocol", _S, "PLAINTEXT", choices=SECURITY_PROTOCOLS,
         documentation="Security protocol of the only listener if `listeners` is not set."),
    _key("listener.security.protocol.map", "listener_security_protocol_map", _S, DEFAULT_PROTOCOL_MAP,
         documentation="Security protocol of each listener whose name is not a protocol, for example "
                       "`OUTSIDE:SASL_SSL,INSIDE:PLAINTEXT`."),
    _key("advertised.listeners", "advertised_listeners", _S, "",
         documentation="Addresses that the broker returns to clients if they differ from `listeners`, as a "
                       "list of `NAME://host:port`. A client gets the address of the listener it is "
                       "connected to. Port 0 stands for the port that the listener is bound to."),
    _key("advertised.host", "advertised_host", _S, None,
         documentation="Advertised host of the first listener, as an alternative to `advertised.listeners`."),
    _key("advertised.port", "advertised_port", _I, None, 1, 65535,
         documentation="Advertised port of the first listener, for example the port of a proxy in front of "
                       "the broker."),
    _key("allow.remote", "allow_remote", _B, False,
         documentation="Whether a listener without authentication may accept connections from other "
                       "machines."),
    _key("self.made.certificate", "self_made_certificate", _B, False,
         documentation="Whether the broker creates a certificate for each TLS listener without a key "
                       "store. Use it for development only. It requires the package `cryptography`; "
                       "clients must trust `tls/ca.pem` in the data folder."),
    _key("connection.setup.timeout.ms", "connection_setup_timeout_ms", _I, 10_000, 1, INT32_MAX,
         documentation="Time in milliseconds that a client has to complete TLS and authentication. The "
                       "same limit applies from the first to the last byte of the first request."),
    _key("connection.failed.authentication.delay.ms", "connection_failed_authentication_delay_ms", _I, 100,
         0, INT32_MAX,
         documentation="Time in milliseconds that the broker waits before it answers a failed "
                       "authentication."),
    _key("authorizer.class.name", "authorizer_class_name", _S, "", choices=("", STANDARD_AUTHORIZER),
         documentation="Authorizer that checks each request. The only valid class is "
                       "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`, which uses access "
                       "control lists (ACLs). If empty, every client may do everything."),
    _key("super.users", "super_users", _S, "",
         documentation="Principals that may do everything regardless of ACLs, separated by semicolons: "
                       "`User:admin;User:alice`."),
    _key("allow.everyone.if.no.acl.found", "allow_everyone_if_no_acl_found", _B, False,
         documentation="Whether every client may access a resource that has no ACL."),
    _key("status.port", "status_port", _I, -1, -1, 65535,
         documentation="Port of the status page and the Prometheus metrics on 127.0.0.1. 0 chooses a free "
                       "port; -1 disables both. The default of `kafkacore broker` is 0."),
    _key("flush", "flush", _S, "ack", choices=("ack", "os"),
         documentation="When the broker acknowledges a record: after it is on disk (`ack`), or after it "
                       "was passed to the operating system (`os`). With `os`, a power failure can lose "
                       "acknowledged records."),
    _key("node.id", "node_id", _I, 1, 0, INT32_MAX,
         documentation="ID of this node. The data folder stores the ID of its first start, and the broker "
                       "does not start with a different ID."),
    _key("broker.rack", "rack", _S, None,
         documentation="Rack of this broker. Clients see it in the cluster metadata."),
    _key("num.partitions", "num_partitions", _I, 1, 1, INT32_MAX,
         documentation="Number of partitions of a new topic if its creator does not set one."),
    _key("auto.create.topics.enable", "auto_create_topics_enable", _B, True,
         documentation="Whether the broker creates a missing topic when a client requests its metadata."),
    _key("delete.topic.enable", "delete_topic_enable", _B, True,
         documentation="Whether topics can be deleted."),
    _key("message.max.bytes", "message_max_bytes", _I, int(TOPIC_CONFIG["max.message.bytes"].default), 0,
         INT32_MAX,
         documentation="Maximum size in bytes of a record batch, for topics that do not set "
                       "`max.message.bytes`."),
    _key("socket.request.max.bytes", "socket_request_max_bytes", _I, 100 * 1024 * 1024, 1, INT32_MAX,
         documentation="Maximum size in bytes of a request. The broker closes the connection on a larger "
                       "request, and on a request with more than 100,000 array elements."),
    _key("fetch.max.bytes", "fetch_max_bytes", _I, 55 * 1024 * 1024, 1024, INT32_MAX,
         documentation="Maximum bytes of records in one Fetch response."),
    _key("max.incremental.fetch.session.cache.slots", "max_incremental_fetch_session_cache_slots", _I,
         1000, 0, INT32_MAX,
         documentation="Maximum number of incremental fetch sessions. In a session, the client and the "
                       "broker send only what has changed since the previous fetch."),
    _key("quota.producer.default", "quota_producer_default", _L, None, 1, INT64_MAX,
         documentation="Bytes per second that a client ID may produce before it is throttled. No limit if "
                       "not set."),
    _key("quota.producer.overrides", "quota_producer_overrides", _S, "",
         documentation="Produce quotas in bytes per second for single client IDs: `client=limit, "
                       "client=limit`."),
    _key("quota.consumer.default", "quota_consumer_default", _L, None, 1, INT64_MAX,
         documentation="Bytes per second that a client ID may fetch before it is throttled. No limit if "
                       "not set."),
    _key("quota.consumer.overrides", "quota_consumer_overrides", _S, "",
         documentation="Fetch quotas in bytes per second for single client IDs: `client=limit, "
                       "client=limit`."),
    _key("quota.request.default", "quota_request_default", _L, None, 1, INT64_MAX,
         documentation="Percentage of the network thread's time that a client ID may use before it is "
                       "throttled. No limit if not set."),
    _key("quota.request.overrides", "quota_request_overrides", _S, "",
         documentation="Request quotas in percent of the network thread's time for single client IDs: "
                       "`client=limit, client=limit`."),
    _key("quota.window.num", "quota_window_num", _I, 11, 2, 3600,
         documentation="Number of samples kept to compute a client's rate."),
    _key("quota.window.size.seconds", "quota_window_size_seconds", _I, 1, 1, 3600,
         documentation="Duration in seconds of each sample of a client's rate."),
    _key("controller.quota.window.num", "controller_quota_window_num", _I, 11, 1, 3600,
         documentation="Number of samples of the quota `controller_mutation_rate`. After an idle "
                       "time of this many samples, a client may at once change as many partitions as the "
                       "quota allows in that time."),
    _key("controller.quota.window.size.seconds", "controller_quota_window_size_seconds", _I, 1, 1, 3600,
         documentation="Duration in seconds of each sample of the quota `controller_mutation_rate`."),
    _key("connections.max.idle.ms", "connections_max_idle_ms", _L, 600_000, -1, INT32_MAX,
         documentation="Idle time in milliseconds after which the broker closes a connection. -1 keeps "
                       "idle connections open."),
    _key("max.connections", "max_connections", _I, 10_000, 1, INT32_MAX, is_dynamic=True,
         documentation="Maximum number of connections to the broker. The broker closes further "
                       "connections immediately."),
    _key("max.connections.per.ip", "max_connections_per_ip", _I, INT32_MAX, 0, INT32_MAX, is_dynamic=True,
         documentation="Maximum number of connections from one IP address. The broker closes further "
                       "connections immediately."),
    _key("max.connections.per.ip.overrides", "max_connections_per_ip_overrides", _S, "", is_dynamic=True,
         documentation="Maximum number of connections for single IP addresses: `127.0.0.1:100,::1:200`."),
    _key("queued.max.request.bytes", "queued_max_request_bytes", _L, 256 * 1024 * 1024, -1, INT64_MAX,
         documentation="Maximum bytes of requests that the broker has received but not yet answered. At "
                       "the limit, the broker stops reading until it has sent a response. -1 means no "
                       "limit."),
    _key("group.min.session.timeout.ms", "group_min_session_timeout_ms", _I, 6_000, 0, INT32_MAX,
         documentation="Minimum `session.timeout.ms`, in milliseconds, that a group member may request."),
    _key("group.max.session.timeout.ms", "group_max_session_timeout_ms", _I, 1_800_000, 0, INT32_MAX,
         documentation="Maximum `session.timeout.ms`, in milliseconds, that a group member may request."),
    _key("group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms", _I, 3_000, 0, INT32_MAX,
         documentation="Time in milliseconds that the first rebalance of an empty group waits for further "
                       "members. Each new member extends the wait."),
    _key("group.max.size", "group_max_size", _I, INT32_MAX, 1, INT32_MAX,
         documentation="Maximum number of members in a group. The broker rejects further members with "
                       "GROUP_MAX_SIZE_REACHED."),
    _key("group.consumer.assignment.interval.ms", "group_consumer_assignment_interval_ms", _I, 1_000, 0,
         INT32_MAX, is_dynamic=True,
         documentation="Minimum time in milliseconds between two assignments of a consumer group (KIP-848), "
                       "unless the group sets `consumer.assignment.interval.ms`."),
    _key("group.consumer.assignors", "group_consumer_assignors", _S, "uniform,range",
         documentation="Assignors of consumer groups (KIP-848), as a comma-separated list: `uniform`, "
                       "`range`, or the names of their classes in Apache Kafka. The first assignor is used "
                       "for a group whose members do not choose one."),
    _key("group.consumer.heartbeat.interval.ms", "group_consumer_heartbeat_interval_ms", _I, 5_000, 1,
         INT32_MAX,
         documentation="Time in milliseconds between two heartbeats of a member of a consumer group "
                       "(KIP-848), unless the group sets `consumer.heartbeat.interval.ms`."),
    _key("group.consumer.max.assignment.interval.ms", "group_consumer_max_assignment_interval_ms", _I,
         15_000, 0, INT32_MAX,
         documentation="Maximum `consumer.assignment.interval.ms` of a group, in milliseconds."),
    _key("group.consumer.max.heartbeat.interval.ms", "group_consumer_max_heartbeat_interval_ms", _I, 15_000,
         1, INT32_MAX,
         documentation="Maximum `consumer.heartbeat.interval.ms` of a group, in milliseconds."),
    _key("group.consumer.max.session.timeout.ms", "group_consumer_max_session_timeout_ms", _I, 60_000, 1,
         INT32_MAX,
         documentation="Maximum `consumer.session.timeout.ms` of a group, in milliseconds."),
    _key("group.consumer.max.size", "group_consumer_max_size", _I, INT32_MAX, 1, INT32_MAX,
         documentation="Maximum number of members in a consumer group (KIP-848). The broker rejects further "
                       "members with GROUP_MAX_SIZE_REACHED."),
    _key("group.consumer.migration.policy", "group_consumer_migration_policy", _S, "bidirectional",
         choices=MIGRATION_POLICIES,
         documentation="How a group with members can change its protocol. With `upgrade`, a classic group "
                       "becomes a consumer group when a member of the consumer protocol joins. With "
                       "`downgrade`, a consumer group becomes a classic group when only classic members "
                       "are left. `bidirectional` allows both, and `disabled` neither. A group without "
                       "members can always change."),
    _key("group.consumer.min.assignment.interval.ms", "group_consumer_min_assignment_interval_ms", _I, 0, 0,
         INT32_MAX,
         documentation="Minimum `consumer.assignment.interval.ms` of a group, in milliseconds."),
    _key("group.consumer.min.heartbeat.interval.ms", "group_consumer_min_heartbeat_interval_ms", _I, 5_000,
         1, INT32_MAX,
         documentation="Minimum `consumer.heartbeat.interval.ms` of a group, in milliseconds."),
    _key("group.consumer.min.session.timeout.ms", "group_consumer_min_session_timeout_ms", _I, 45_000, 1,
         INT32_MAX,
         documentation="Minimum `consumer.session.timeout.ms` of a group, in milliseconds."),
    _key("group.consumer.regex.refresh.interval.ms", "group_consumer_regex_refresh_interval_ms", _I,
         600_000, 10_000, INT32_MAX,
         documentation="Interval in milliseconds at which the broker matches the regular expressions of "
                       "consumer groups (KIP-848) against the topics again."),
    _key("group.consumer.session.timeout.ms", "group_consumer_session_timeout_ms", _I, 45_000, 1, INT32_MAX,
         documentation="Time in milliseconds without a heartbeat after which a member of a consumer group "
                       "(KIP-848) is removed, unless the group sets `consumer.session.timeout.ms`."),
    _key("group.coordinator.rebalance.protocols", "group_coordinator_rebalance_protocols", _S,
         "classic,consumer,streams",
         documentation="Group protocols that clients may use, as a comma-separated list. Without "
                       "`consumer`, the broker refuses the protocol of KIP-848. `classic` is required; "
                       "`share` and `streams` are accepted but have no effect."),
    _key("max.partitions", "max_partitions", _I, 100_000, 1, INT32_MAX,
         documentation="Maximum number of partitions of all topics together."),
    _key("log.cleaner.enable", "log_cleaner_enable", _B, True,
         documentation="Whether the broker compacts topics with `cleanup.policy=compact`."),
    _key("log.cleaner.backoff.ms", "log_cleaner_backoff_ms", _L, 15_000, 0, INT64_MAX, is_dynamic=True,
         documentation="Time in milliseconds that the log cleaner sleeps when no log needs cleaning."),
    _key("log.cleaner.dedupe.buffer.size", "log_cleaner_dedupe_buffer_size", _L, 128 * 1024 * 1024,
         24 * 1024, INT64_MAX, is_dynamic=True,
         documentation="Maximum memory in bytes for the keys of the log being cleaned, at 24 bytes per "
                       "key. It is allocated only during cleaning."),
    _key("log.cleaner.io.buffer.load.factor", "log_cleaner_io_buffer_load_factor", _D, 0.9, 0.01, 0.99,
         is_dynamic=True,
         documentation="Fraction of `log.cleaner.dedupe.buffer.size` that keys may fill. A higher value "
                       "cleans more of a log at once but is slower."),
    _key("log.cleaner.io.buffer.size", "log_cleaner_io_buffer_size", _I, 512 * 1024, 4096, INT32_MAX,
         is_dynamic=True,
         documentation="Bytes of a log that the cleaner reads at a time."),
    _key("log.cleaner.io.max.bytes.per.second", "log_cleaner_io_max_bytes_per_second", _D,
         sys.float_info.max, 1, sys.float_info.max, is_dynamic=True,
         documentation="Maximum bytes per second that the cleaner reads and writes in total."),
    _key("max.decompressed.batch.bytes", "max_decompressed_batch_bytes", _I, DEFAULT_MAX_DECOMPRESSED_SIZE,
         1, INT32_MAX,
         documentation="Maximum size in bytes of a compressed batch after decompression. The broker "
                       "rejects larger batches with MESSAGE_TOO_LARGE."),
    _key("offset.metadata.max.bytes", "offset_metadata_max_bytes", _I, 4096, 0, INT32_MAX,
         documentation="Maximum length, in characters, of the metadata of a committed offset."),
    _key("offsets.commit.timeout.ms", "offsets_commit_timeout_ms", _I, 5_000, 1, INT32_MAX,
         documentation="Time in milliseconds that an offset commit waits for the disk before the client "
                       "must retry."),
    _key("offsets.load.buffer.size", "offsets_load_buffer_size", _I, 5 * 1024 * 1024, 1, INT32_MAX,
         documentation="Bytes of `__consumer_offsets` that the broker reads at a time during startup."),
    _key("offsets.retention.check.interval.ms", "offsets_retention_check_interval_ms", _L, 600_000, 1,
         INT32_MAX,
         documentation="Interval in milliseconds between checks for expired offsets."),
    _key("offsets.retention.minutes", "offsets_retention_minutes", _I, 7 * 24 * 60, 1, INT32_MAX,
         documentation="Time in minutes that the broker keeps the committed offsets of an inactive group."),
    _key("offsets.topic.compression.codec", "offsets_topic_compression_codec", _I, 0, 0,
         max(Compression).value,
         documentation=f"Compression codec of `__consumer_offsets`: {_CODEC_NUMBERS}."),
    _key("offsets.topic.num.partitions", "offsets_topic_num_partitions", _I, 50, 1, INT32_MAX,
         documentation="Number of partitions of `__consumer_offsets`. It takes effect only when the topic "
                       "is created."),
    _key("offsets.topic.segment.bytes", "offsets_topic_segment_bytes", _I, 100 * 1024 * 1024, 14,
         INT32_MAX,
         documentation="Segment size in bytes of `__consumer_offsets`. It takes effect only when the topic "
                       "is created."),
    _key("producer.id.expiration.check.interval.ms", "producer_id_expiration_check_interval_ms", _I, 600_000,
         1, INT32_MAX,
         documentation="Interval in milliseconds between checks for expired producers."),
    _key("producer.id.expiration.ms", "producer_id_expiration_ms", _I, 86_400_000, 1, INT32_MAX,
         is_dynamic=True,
         documentation="Time in milliseconds after which a partition forgets a producer that has not written "
                       "to it. The partition then cannot recognise the producer's duplicates any more. A "
                       "producer with an open transaction is kept."),
    _key("transaction.abort.timed.out.transaction.cleanup.interval.ms",
         "transaction_abort_timed_out_transaction_cleanup_interval_ms", _I, 10_000, 1, INT32_MAX,
         documentation="Interval in milliseconds between checks for transactions that have timed out."),
    _key("transaction.max.timeout.ms", "transaction_max_timeout_ms", _I, 900_000, 1, INT32_MAX,
         documentation="Largest transaction timeout in milliseconds that a producer may ask for."),
    _key("transaction.partition.verification.enable", "transaction_partition_verification_enable", _B, True,
         is_dynamic=True,
         documentation="Whether the broker checks that a partition was added to the transaction before it "
                       "accepts records of the transaction."),
    _key("transaction.remove.expired.transaction.cleanup.interval.ms",
         "transaction_remove_expired_transaction_cleanup_interval_ms", _I, 3_600_000, 1, INT32_MAX,
         documentation="Interval in milliseconds between checks for expired transactional ids."),
    _key("transaction.state.log.load.buffer.size", "transaction_state_log_load_buffer_size", _I,
         5 * 1024 * 1024, 1, INT32_MAX,
         documentation="Bytes of `__transaction_state` that the broker reads at a time during startup."),
    _key("transaction.state.log.num.partitions", "transaction_state_log_num_partitions", _I, 50, 1,
         INT32_MAX,
         documentation="Number of partitions of `__transaction_state`. It takes effect only when the topic "
                       "is created."),
    _key("transaction.state.log.segment.bytes", "transaction_state_log_segment_bytes", _I,
         100 * 1024 * 1024, 14, INT32_MAX,
         documentation="Segment size in bytes of `__transaction_state`. It takes effect only when the topic "
                       "is created."),
    _key("transactional.id.expiration.ms", "transactional_id_expiration_ms", _I, 7 * 24 * 3_600_000, 1,
         INT32_MAX,
         documentation="Time in milliseconds after which the broker forgets a transactional id that is not "
                       "used."),
)
# fmt: on

#: Field that several properties can set → the property under which the field is shown.
_SHOWN_AS: Final = {
    "host": "listeners",
    "port": "listeners",
    "security_protocol": "listeners",
    "advertised_host": "advertised.listeners",
    "advertised_port": "advertised.listeners",
}
_DEFAULTS: Final = {key.field: key.default for key in BROKER_KEYS}
_BY_NAME: Final = table(*BROKER_KEYS) | {key.field.replace("_", "."): key for key in BROKER_KEYS}
#: Kafka's properties in hours or minutes → the topic setting in milliseconds, and the milliseconds per unit.
_UNITS: Final = {
    "log.retention.hours": ("retention.ms", 3_600_000),
    "log.retention.minutes": ("retention.ms", 60_000),
    "log.roll.hours": ("segment.ms", 3_600_000),
    "log.roll.jitter.hours": ("segment.jitter.ms", 3_600_000),
}
_EXAMPLE: Final = "PLAINTEXT://127.0.0.1:9092"
#: Prefixes of names in which underscores are kept; in other names an underscore stands for a dot.
_AS_WRITTEN: Final = (LISTENER_PREFIX, USER_PREFIX)


class ResolvedProperties(NamedTuple):
    """The result of :func:`resolve`."""

    #: Values for the fields of ``BrokerConfig``.
    arguments: Config
    #: Source of each property, by name.
    origins: dict[str, str]
    #: Sentences about properties without effect, for the log.
    notes: list[str]


def resolve(layers: Iterable[tuple[str, Mapping[str, object]]]) -> ResolvedProperties:
    """Merge the properties of several sources; a later source overrides an earlier source.

    Parameters
    ----------
    layers:
        Name of each source and its properties. Names are Kafka's, with dots or underscores; values are typed
        or text.

    Raises
    ------
    KafkaConfigurationError
        A name is unknown or a value is invalid. The message says what to write instead.
    """
    resolver = _Resolver()
    for origin, properties in layers:
        resolver.take(origin, {_dotted(name): value for name, value in properties.items()})
    return resolver.resolved()


def broker_default(field: str) -> Any:
    """Return the default of a field of ``BrokerConfig``. A test compares its type with the field's."""
    return _DEFAULTS[field]


def shown_name(field: str) -> str:
    """Return the name of the property under which a field of ``BrokerConfig`` is shown."""
    return _SHOWN_AS.get(field) or next(key.name for key in BROKER_KEYS if key.field == field)


def parse_listen(text: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[v6]:port`` into host and port."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal():
        raise KafkaConfigurationError(f"listen={text} must be host:port, for example 127.0.0.1:9092")
    return host, int(port)


def _dotted(name: str) -> str:
    dotted = name.replace("_", ".")
    for start in _AS_WRITTEN:
        if dotted.startswith(start):
            return start + name[len(start) :]
    return dotted


def as_text(value: object) -> str:
    """Return the value as it is written in a properties file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Resolver:
    """Collects the properties of all sources."""

    def __init__(self) -> None:
        self._arguments: Config = {}
        self._log_defaults: dict[str, str] = {}
        self._listener_properties: dict[str, PropertyValue] = {}
        #: Names of the controller's listeners, which this broker does not open.
        self._controllers: set[str] = set()
        self._origins: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._layer: Mapping[str, object] = {}
        self._origin = ""
        self._special: dict[str, Callable[[str, object], None]] = {
            "data.dir": self._folder,
            "log.dir": self._folder,
            "log.dirs": self._folder,
            "listen": self._listen,
            "listeners": self._listeners,
            "advertised.listeners": self._advertised_listeners,
            "broker.id": self._broker_id,
            "process.roles": self._process_roles,
            "log.defaults": self._topic_defaults,
            "security.inter.broker.protocol": self._inter_broker_protocol,
            "listener.security.protocol.map": self._protocol_map,
            "controller.listener.names": lambda name, value: None,
            "users": self._users,
        }

    def take(self, origin: str, layer: Mapping[str, object]) -> None:
        self._layer, self._origin = layer, origin
        self._controllers |= {each.upper() for each in words(str(layer.get("controller.listener.names", "")))}
        # As in Kafka, the property in the finer unit takes precedence within one source, so the properties in
        # coarser units are applied first.
        coarse_first = [name for name in _UNITS if name in layer]
        for name in coarse_first + [name for name in layer if name not in _UNITS]:
            self._take(name, layer[name])

    def _take(self, name: str, value: object) -> None:
        if name in self._special:
            self._special[name](name, value)
        elif name in _BY_NAME:
            key = _BY_NAME[name]
            self._set(key.field, _typed(name, key.type, value))
        elif name in BROKER_SYNONYMS:
            self._set_default(BROKER_SYNONYMS[name].name, as_text(value))
        elif name in _UNITS:
            topic_key, unit_ms = _UNITS[name]
            number = _typed(name, _L, value)
            if not isinstance(number, int | float):
                raise KafkaConfigurationError(f"{name}={value} must be a whole number")
            self._set_default(topic_key, str(number * unit_ms if number >= 0 else number))
        elif name in REPLICATION_FACTORS:
            if _typed(name, _I, value) not in (1, -1):
                raise KafkaConfigurationError(
                    f"{name}={value} is not supported: this broker is a single node without replication. "
                    f"Set {name}=1, or use Apache Kafka"
                )
        elif is_listener_property(name):
            self._take_listener_property(name, value)
        else:
            self._take_unsupported(name, value)

    def _take_listener_property(self, name: str, value: object) -> None:
        if (value is None or not str(value).strip()) and not name.startswith(USER_PREFIX):
            self._listener_properties.pop(name, None)
            return
        if name.startswith(tuple(f"{LISTENER_PREFIX}{each.lower()}." for each in self._controllers)):
            self._notes[name] = f"{name} has no effect: this broker has no controller"
            return
        if name.startswith(LISTENER_PREFIX):
            reason = WITHOUT_EFFECT.get(name.removeprefix(LISTENER_PREFIX).partition(".")[2])
            if reason is not None:
                self._notes[name] = f"{name}={as_text(value)} has no effect: {reason}"
                return
        checked = checked_property(name, value)
        if checked is None:
            self._notes[name] = f"{name} has no effect: {CLIENT_OR_JAVA}"
            return
        self._listener_properties[name] = checked
        self._origins[name] = self._origin

    def _take_unsupported(self, name: str, value: object) -> None:
        """Handle a property that this broker lacks: note that it has no effect, or raise an error."""
        if name.startswith(SECURITY_PREFIXES):
            if str(value).strip():
                raise KafkaConfigurationError(
                    f"{name} is not supported: the authorizer is configured by authorizer.class.name, "
                    "super.users and allow.everyone.if.no.acl.found. Remove the property"
                )
            return
        reason = WITHOUT_EFFECT.get(name) or next(
            (why for prefix, why in WITHOUT_EFFECT_PREFIXES.items() if name.startswith(prefix)), None
        )
        if reason is None:
            raise KafkaConfigurationError(f"unknown broker property {name}{_suggestion(name)}")
        self._notes[name] = f"{name}={as_text(value)} has no effect: {reason}"

    def _set(self, field: str, value: object) -> None:
        self._arguments[field] = value
        self._origins[shown_name(field)] = self._origin

    def _set_default(self, topic_key: str, text: str) -> None:
        self._log_defaults[topic_key] = text
        self._origins[TOPIC_CONFIG[topic_key].broker_name] = self._origin

    # ---- Properties that need special handling ---------------------------------------------------------

    def _folder(self, name: str, value: object) -> None:
        if isinstance(value, str) and len(folders := [part for part in value.split(",") if part.strip()]) > 1:
            raise KafkaConfigurationError(
                f"{name}={value} names {len(folders)} folders, but this broker supports one"
            )
        if not str(value).strip():
            raise KafkaConfigurationError(f"{name} is empty: set it to the folder for the broker's data")
        self._set("data_dir", value.strip() if isinstance(value, str) else value)

    def _broker_id(self, name: str, value: object) -> None:
        number = _typed(name, _I, value)
        if "node.id" in self._layer and _typed("node.id", _I, self._layer["node.id"]) != number:
            raise KafkaConfigurationError(
                f"broker.id={number} and node.id={self._layer['node.id']} are the same property: set only one"
            )
        self._set("node_id", number)

    def _process_roles(self, name: str, value: object) -> None:
        roles = {role.strip() for role in str(value).split(",")}
        if "broker" not in roles:
            raise KafkaConfigurationError(
                f"process.roles={value} must include broker: this process is a broker without a controller"
            )

    def _inter_broker_protocol(self, name: str, value: object) -> None:
        self._notes[name] = f"{name}={value} has no effect: this broker does not connect to other brokers"

    def _topic_defaults(self, name: str, value: object) -> None:
        for topic_key, text in _mapping(name, value).items():
            if topic_key not in TOPIC_CONFIG:
                raise KafkaConfigurationError(f"log_defaults: unknown topic setting {topic_key}")
            self._set_default(topic_key, as_text(text))

    def _listen(self, name: str, value: object) -> None:
        host, port = parse_listen(str(value))
        self._set("host", host)
        self._set("port", port)

    def _listeners(self, name: str, value: object) -> None:
        endpoints = self._client_endpoints(name, str(value))
        if not endpoints:
            return
        self._set("host", endpoints[0].host)
        self._set("port", endpoints[0].port)
        is_plain = len(endpoints) == 1 and endpoints[0].name == "PLAINTEXT"
        self._set("listeners", "" if is_plain else ",".join(map(str, endpoints)))

    def _advertised_listeners(self, name: str, value: object) -> None:
        listened = str(self._layer.get("listeners", self._arguments.get("listeners") or _EXAMPLE))
        ports = {each.name: each.port for each in parse_endpoints("listeners", listened)}
        endpoints = self._client_endpoints(name, str(value))
        for endpoint in endpoints:
            if not endpoint.host:
                raise KafkaConfigurationError(f"{name}={value} must include a host that clients connect to")
        # If the advertised port equals the port in listeners, store 0, which stands for the bound port. The
        # advertised port is then still correct if a flag overrides the port in listeners.
        advertised = [
            each._replace(port=0) if ports.get(each.name) == each.port else each for each in endpoints
        ]
        if len(advertised) == 1 and advertised[0].name == "PLAINTEXT":
            self._set("advertised_host", advertised[0].host)
            self._set("advertised_port", advertised[0].port or None)
        elif advertised:
            self._set("advertised_listeners", ",".join(map(str, advertised)))

    def _client_endpoints(self, name: str, text: str) -> list[Endpoint]:
        """Return the endpoints in ``text`` except the endpoints of the controller."""
        found = []
        for endpoint in parse_endpoints(name, text):
            if endpoint.name in self._controllers:
                self._notes[f"{name} {endpoint.name}"] = (
                    f"{endpoint} of {name} has no effect: this broker has no controller"
                )
            else:
                found.append(endpoint)
        return found

    def _protocol_map(self, name: str, value: object) -> None:
        parse_protocol_map(str(value))
        self._set("listener_security_protocol_map", str(value).strip())

    def _users(self, name: str, value: object) -> None:
        for user, password in _mapping(name, value).items():
            self._take_listener_property(f"{USER_PREFIX}{user}", password)

    # ---- Result ----------------------------------------------------------------------------------------

    def resolved(self) -> ResolvedProperties:
        if self._is_limited_to_loopback():
            self._notes["listeners"] = (
                "listeners without a host accept connections from this machine only, because allow.remote "
                "is not set"
            )
        if self._ignores_client_auth():
            self._notes[CLIENT_AUTH] = (
                f"{CLIENT_AUTH} has no effect on SASL_SSL listeners: "
                f"set {LISTENER_PREFIX}<name>.{CLIENT_AUTH} to request certificates from their clients"
            )
        if "data_dir" not in self._arguments:
            raise KafkaConfigurationError(
                "data.dir is missing (log.dirs in a properties file): set it to the broker's data folder"
            )
        arguments = {
            **self._arguments,
            "log_defaults": self._log_defaults,
            "listener_properties": self._listener_properties,
        }
        return ResolvedProperties(arguments, self._origins, list(self._notes.values()))

    def _is_limited_to_loopback(self) -> bool:
        """Whether a listener without host and authentication is limited to this machine."""
        return not self._arguments.get("allow_remote", False) and any(
            not each.host and protocol == "PLAINTEXT" for each, protocol in self._endpoints()
        )

    def _ignores_client_auth(self) -> bool:
        """Whether a SASL_SSL listener ignores ``ssl.client.auth`` without a listener prefix."""
        shared = self._listener_properties.get(CLIENT_AUTH, "none")
        protocols = {protocol for _, protocol in self._endpoints()} | {
            self._arguments.get("security_protocol")
        }
        return shared != "none" and "SASL_SSL" in protocols

    def _endpoints(self) -> list[tuple[Endpoint, str]]:
        """Return each endpoint of ``listeners`` with its protocol."""
        host = self._arguments.get("host", "-")
        text = self._arguments.get("listeners") or f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:0"
        protocols = parse_protocol_map(self._arguments.get("listener_security_protocol_map", ""))
        found = parse_endpoints("listeners", text)
        return [(each, protocols.get(each.name, each.name)) for each in found]


def _suggestion(name: str) -> str:
    if name in TOPIC_CONFIG:
        other = TOPIC_CONFIG[name].broker_name
        return f": it is a topic setting; the broker's is {other}" if other else ": it applies to topics only"
    known = {*_BY_NAME, *BROKER_SYNONYMS, *_UNITS, *WITHOUT_EFFECT, *REPLICATION_FACTORS, *LISTENER_KEYS}
    known |= {"listen", "log.dir", "broker.id", "process.roles"}
    return suggestion(name, known)


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise KafkaConfigurationError(f"{name} must be a mapping")
    return value


def _typed(name: str, kind: SettingType, value: object) -> object:
    """Return the value converted from text to the property's type."""
    if not isinstance(value, str):
        return value
    try:
        return read(kind, value.strip())
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{name}={value} {error}") from None
