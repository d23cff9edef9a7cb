"""The rows of the broker's properties, and the resolution of properties to fields of ``BrokerConfig``.

A new property is a row of :data:`BROKER_KEYS`, which has its default, and a field of ``BrokerConfig``, which
has its type. Names and syntax are those of Kafka's ``KafkaConfig``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafkacore.broker.config.kafka_keys import (
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
    is_of_a_listener,
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
from kafkacore.settings import SECURITY_PROTOCOLS, Config, Setting, SettingType, suggestion, table
from kafkacore.settings.texts import InvalidTextError, read, words
from kafkacore.structs import INT32_MAX, INT64_MAX, Compression

_CODEC_NUMBERS = ", ".join(f"{codec.value} {codec.name.lower()}" for codec in Compression)
#: The one authorizer that there is, by the name of Kafka's.
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class BrokerSetting(Setting):
    """A property of the broker, by Kafka's name where Kafka has it.

    Parameters
    ----------
    field:
        The field of ``BrokerConfig`` that it sets.
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
         documentation="The folder of the logs; created, with mode 0700, if it is missing. One folder, and "
                       "one broker per folder."),
    _key("listeners", "listeners", _S, "",
         documentation="Where clients connect: `NAME://host:port`, several separated by commas. Port 0 takes "
                       "a free one. Without a host it is this machine alone, unless clients authenticate "
                       "there or `allow.remote` is set."),
    _key("host", "host", _S, "127.0.0.1",
         documentation="The first listener's host alone, instead of `listeners`."),
    _key("port", "port", _I, 9092, 0, 65535,
         documentation="The first listener's port alone, instead of `listeners`."),
    _key("security.protocol", "security_protocol", _S, "PLAINTEXT", choices=SECURITY_PROTOCOLS,
         documentation="The protocol of the one listener, if `listeners` is not given."),
    _key("listener.security.protocol.map", "listener_security_protocol_map", _S, DEFAULT_PROTOCOL_MAP,
         documentation="Protocols of listeners that are not named after theirs: "
                       "`OUTSIDE:SASL_SSL,INSIDE:PLAINTEXT`."),
    _key("advertised.listeners", "advertised_listeners", _S, "",
         documentation="The addresses that clients connect to, if not `listeners`: `NAME://host:port`, each "
                       "for the clients of the listener of that name. Port 0 is the port listened on."),
    _key("advertised.host", "advertised_host", _S, None,
         documentation="The first listener's advertised host alone."),
    _key("advertised.port", "advertised_port", _I, None, 1, 65535,
         documentation="The first listener's advertised port alone, for a proxy in front of the broker."),
    _key("allow.remote", "allow_remote", _B, False,
         documentation="Listen where other machines can connect without authentication."),
    _key("self.made.certificate", "self_made_certificate", _B, False,
         documentation="For development: a listener with TLS and without a key store gets a certificate that "
                       "the broker makes (that needs the package cryptography); clients trust `tls/ca.pem` "
                       "in the data folder."),
    _key("connection.setup.timeout.ms", "connection_setup_timeout_ms", _I, 10_000, 1, INT32_MAX,
         documentation="How long TLS and authentication together may take, and a first request from its "
                       "first byte to its last."),
    _key("connection.failed.authentication.delay.ms", "connection_failed_authentication_delay_ms", _I, 100,
         0, INT32_MAX,
         documentation="How long the broker delays the response to a failed authentication."),
    _key("authorizer.class.name", "authorizer_class_name", _S, "", choices=("", STANDARD_AUTHORIZER),
         documentation="The authorizer: Kafka's "
                       "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`, which decides by access "
                       "control entries. Without it everybody may do everything."),
    _key("super.users", "super_users", _S, "",
         documentation="Principals that may do everything, whatever the ACLs are: `User:admin;User:alice`."),
    _key("allow.everyone.if.no.acl.found", "allow_everyone_if_no_acl_found", _B, False,
         documentation="Whether everybody may do everything to a resource without an entry."),
    _key("status.port", "status_port", _I, -1, -1, 65535,
         documentation="Port of the status page and the metrics, on 127.0.0.1; 0 takes a free port, -1 turns "
                       "them off. `kafkacore broker` uses 0."),
    _key("flush", "flush", _S, "ack", choices=("ack", "os"),
         documentation="When the broker acknowledges a record: when it is on the disk (`ack`), or when it is "
                       "written to the operating system (`os`)."),
    _key("node.id", "node_id", _I, 1, 0, INT32_MAX,
         documentation="The number of this node; a data folder keeps the number of its first start."),
    _key("broker.rack", "rack", _S, None,
         documentation="The rack of this broker, which clients see in the metadata."),
    _key("num.partitions", "num_partitions", _I, 1, 1, INT32_MAX,
         documentation="Partitions of a topic whose creator does not set the number."),
    _key("auto.create.topics.enable", "auto_create_topics_enable", _B, True,
         documentation="Whether a request for an unknown topic creates it."),
    _key("delete.topic.enable", "delete_topic_enable", _B, True,
         documentation="Whether topics can be deleted."),
    _key("message.max.bytes", "message_max_bytes", _I, int(TOPIC_CONFIG["max.message.bytes"].default), 0,
         INT32_MAX,
         documentation="The largest batch of a topic without a `max.message.bytes` of its own."),
    _key("socket.request.max.bytes", "socket_request_max_bytes", _I, 100 * 1024 * 1024, 1, INT32_MAX,
         documentation="The largest request. The broker closes the connection of a larger one, and of one "
                       "with more than 100,000 elements in its arrays."),
    _key("fetch.max.bytes", "fetch_max_bytes", _I, 55 * 1024 * 1024, 1024, INT32_MAX,
         documentation="Most bytes of records in one Fetch response."),
    _key("max.incremental.fetch.session.cache.slots", "max_incremental_fetch_session_cache_slots", _I,
         1000, 0, INT32_MAX,
         documentation="Most fetch sessions at a time. In a session, client and broker send only changes."),
    _key("quota.producer.default", "quota_producer_default", _L, None, 1, INT64_MAX,
         documentation="Bytes of Produce requests a second above which a client id is throttled."),
    _key("quota.producer.overrides", "quota_producer_overrides", _S, "",
         documentation="Client ids with another limit: `client=limit, client=limit`."),
    _key("quota.consumer.default", "quota_consumer_default", _L, None, 1, INT64_MAX,
         documentation="Bytes of fetched records a second above which a client id is throttled."),
    _key("quota.consumer.overrides", "quota_consumer_overrides", _S, "",
         documentation="Client ids with another limit: `client=limit, client=limit`."),
    _key("quota.request.default", "quota_request_default", _L, None, 1, INT64_MAX,
         documentation="Percent of the network thread's time above which a client id is throttled."),
    _key("quota.request.overrides", "quota_request_overrides", _S, "",
         documentation="Client ids with another limit: `client=limit, client=limit`."),
    _key("quota.window.num", "quota_window_num", _I, 11, 2, 3600,
         documentation="Number of samples kept to compute a client's rate."),
    _key("quota.window.size.seconds", "quota_window_size_seconds", _I, 1, 1, 3600,
         documentation="Length of a sample, in seconds."),
    _key("connections.max.idle.ms", "connections_max_idle_ms", _L, 600_000, -1, INT32_MAX,
         documentation="Idle time after which the broker closes a connection; -1 for never."),
    _key("max.connections", "max_connections", _I, 10_000, 1, INT32_MAX, is_dynamic=True,
         documentation="Most connections at a time; the broker closes a further one at once."),
    _key("max.connections.per.ip", "max_connections_per_ip", _I, INT32_MAX, 0, INT32_MAX, is_dynamic=True,
         documentation="Most connections from one address; the broker closes a further one at once."),
    _key("max.connections.per.ip.overrides", "max_connections_per_ip_overrides", _S, "", is_dynamic=True,
         documentation="Addresses with another limit: `127.0.0.1:100,::1:200`."),
    _key("queued.max.request.bytes", "queued_max_request_bytes", _L, 256 * 1024 * 1024, -1, INT64_MAX,
         documentation="Most bytes of requests that the broker has read and not answered. At the limit it "
                       "reads nothing until it has sent a response. -1 for no limit."),
    _key("group.min.session.timeout.ms", "group_min_session_timeout_ms", _I, 6_000, 0, INT32_MAX,
         documentation="The shortest `session.timeout.ms` that a member of a group may ask for."),
    _key("group.max.session.timeout.ms", "group_max_session_timeout_ms", _I, 1_800_000, 0, INT32_MAX,
         documentation="The longest `session.timeout.ms` that a member of a group may ask for."),
    _key("group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms", _I, 3_000, 0, INT32_MAX,
         documentation="How long the first members of an empty group wait for more; each new member extends "
                       "the wait."),
    _key("group.max.size", "group_max_size", _I, INT32_MAX, 1, INT32_MAX,
         documentation="Most members of a group; the broker refuses a further one."),
    _key("max.partitions", "max_partitions", _I, 100_000, 1, INT32_MAX,
         documentation="Partitions of all topics together."),
    _key("log.cleaner.enable", "log_cleaner_enable", _B, True,
         documentation="Whether topics with the policy `compact` are compacted."),
    _key("log.cleaner.backoff.ms", "log_cleaner_backoff_ms", _L, 15_000, 0, INT64_MAX, is_dynamic=True,
         documentation="How long the log cleaner waits when there is nothing to clean."),
    _key("log.cleaner.dedupe.buffer.size", "log_cleaner_dedupe_buffer_size", _L, 128 * 1024 * 1024,
         24 * 1024, INT64_MAX, is_dynamic=True,
         documentation="Most memory for the keys of a log that is being cleaned, 24 bytes a key; allocated "
                       "only while a log is cleaned."),
    _key("log.cleaner.io.buffer.load.factor", "log_cleaner_io_buffer_load_factor", _D, 0.9, 0.01, 0.99,
         is_dynamic=True,
         documentation="How full `log.cleaner.dedupe.buffer.size` may become; fuller is slower."),
    _key("log.cleaner.io.buffer.size", "log_cleaner_io_buffer_size", _I, 512 * 1024, 4096, INT32_MAX,
         is_dynamic=True,
         documentation="How much of a log the cleaner reads at once."),
    _key("log.cleaner.io.max.bytes.per.second", "log_cleaner_io_max_bytes_per_second", _D,
         sys.float_info.max, 1, sys.float_info.max, is_dynamic=True,
         documentation="Most bytes that the cleaner reads and writes in a second."),
    _key("max.decompressed.batch.bytes", "max_decompressed_batch_bytes", _I, DEFAULT_MAX_DECOMPRESSED_SIZE,
         1, INT32_MAX,
         documentation="Most bytes of a producer's compressed batch after decompression; the broker "
                       "refuses a larger one as too large."),
    _key("offset.metadata.max.bytes", "offset_metadata_max_bytes", _I, 4096, 0, INT32_MAX,
         documentation="The longest metadata of a committed offset, in characters."),
    _key("offsets.commit.timeout.ms", "offsets_commit_timeout_ms", _I, 5_000, 1, INT32_MAX,
         documentation="How long a commit waits for the disk before its client has to retry."),
    _key("offsets.load.buffer.size", "offsets_load_buffer_size", _I, 5 * 1024 * 1024, 1, INT32_MAX,
         documentation="Bytes of `__consumer_offsets` that the broker reads at a time when it starts."),
    _key("offsets.retention.check.interval.ms", "offsets_retention_check_interval_ms", _L, 600_000, 1,
         INT32_MAX,
         documentation="How often the broker looks for expired offsets."),
    _key("offsets.retention.minutes", "offsets_retention_minutes", _I, 7 * 24 * 60, 1, INT32_MAX,
         documentation="How long the offsets of an unused group are kept."),
    _key("offsets.topic.compression.codec", "offsets_topic_compression_codec", _I, 0, 0,
         max(Compression).value,
         documentation=f"The codec of `__consumer_offsets`: {_CODEC_NUMBERS}."),
    _key("offsets.topic.num.partitions", "offsets_topic_num_partitions", _I, 50, 1, INT32_MAX,
         documentation="Partitions of `__consumer_offsets`; used when the topic is created."),
    _key("offsets.topic.segment.bytes", "offsets_topic_segment_bytes", _I, 100 * 1024 * 1024, 14,
         INT32_MAX,
         documentation="Size of a segment of `__consumer_offsets`; used when the topic is created."),
)
# fmt: on

#: Fields that are set by more than their own property, and so are shown under another one's name.
_SHOWN_AS: Final = {
    "host": "listeners",
    "port": "listeners",
    "security_protocol": "listeners",
    "advertised_host": "advertised.listeners",
    "advertised_port": "advertised.listeners",
}
_DEFAULTS: Final = {key.field: key.default for key in BROKER_KEYS}
_BY_NAME: Final = table(*BROKER_KEYS) | {key.field.replace("_", "."): key for key in BROKER_KEYS}
#: Kafka's properties in other units: the topic's key, milliseconds of one.
_UNITS: Final = {
    "log.retention.hours": ("retention.ms", 3_600_000),
    "log.retention.minutes": ("retention.ms", 60_000),
    "log.roll.hours": ("segment.ms", 3_600_000),
    "log.roll.jitter.hours": ("segment.jitter.ms", 3_600_000),
}
_EXAMPLE: Final = "PLAINTEXT://127.0.0.1:9092"
#: Beginnings of names in which an underscore is no dot.
_AS_WRITTEN: Final = (LISTENER_PREFIX, USER_PREFIX)


class ResolvedProperties(NamedTuple):
    """Fields of ``BrokerConfig``; where each came from, by the name of its property; what had no effect."""

    arguments: Config
    origins: dict[str, str]
    notes: list[str]


def resolve(layers: Iterable[tuple[str, Mapping[str, object]]]) -> ResolvedProperties:
    """Properties of several sources, each by Kafka's name with dots or underscores; later ones win.

    Parameters
    ----------
    layers:
        What the source is called, and its properties: typed, or as text.

    Raises
    ------
    KafkaConfigurationError
        A name that is not known, or a value that cannot be had: one sentence that says what to write.
    """
    resolver = _Resolver()
    for origin, properties in layers:
        resolver.take(origin, {_dotted(name): value for name, value in properties.items()})
    return resolver.resolved()


def broker_default(field: str) -> Any:
    """Return the default of a field of ``BrokerConfig``. A test compares its type with the annotation."""
    return _DEFAULTS[field]


def shown_name(field: str) -> str:
    """The property under which a field of ``BrokerConfig`` is shown."""
    return _SHOWN_AS.get(field) or next(key.name for key in BROKER_KEYS if key.field == field)


def parse_listen(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` → (host, port)."""
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
    """A value as a file of properties has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Resolver:
    """What has been taken so far."""

    def __init__(self) -> None:
        self._arguments: Config = {}
        self._log_defaults: dict[str, str] = {}
        self._listener_properties: dict[str, PropertyValue] = {}
        #: Names of listeners that are a controller's, and so none of ours.
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
        # Of one source the finer unit wins, as in Kafka.
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
                    f"{name}={value} cannot be had: this broker is one node, which replicates nothing; "
                    f"write {name}=1, or use Apache Kafka"
                )
        elif is_of_a_listener(name):
            self._take_listener_property(name, value)
        else:
            self._take_foreign(name, value)

    def _take_listener_property(self, name: str, value: object) -> None:
        if (value is None or not str(value).strip()) and not name.startswith(USER_PREFIX):
            self._listener_properties.pop(name, None)
            return
        if name.startswith(tuple(f"{LISTENER_PREFIX}{each.lower()}." for each in self._controllers)):
            self._notes[name] = f"{name} has no effect: this broker has no controller"
            return
        checked = checked_property(name, value)
        if checked is None:
            self._notes[name] = f"{name} has no effect: it is of a broker as a client of others, or of Java"
            return
        self._listener_properties[name] = checked
        self._origins[name] = self._origin

    def _take_foreign(self, name: str, value: object) -> None:
        """A property that is not ours: known to have no effect, refused, or a slip of the pen."""
        if name.startswith(SECURITY_PREFIXES):
            if str(value).strip():
                raise KafkaConfigurationError(
                    f"{name} cannot be had: this broker's authorizer has authorizer.class.name, super.users "
                    "and allow.everyone.if.no.acl.found; leave the property out"
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

    # ---- Properties that are more than a value ---------------------------------------------------------

    def _folder(self, name: str, value: object) -> None:
        if isinstance(value, str) and len(folders := [part for part in value.split(",") if part.strip()]) > 1:
            raise KafkaConfigurationError(
                f"{name}={value} names {len(folders)} folders; this broker keeps its data in one"
            )
        if not str(value).strip():
            raise KafkaConfigurationError(f"{name} is empty: name the folder for the broker's data")
        self._set("data_dir", value.strip() if isinstance(value, str) else value)

    def _broker_id(self, name: str, value: object) -> None:
        number = _typed(name, _I, value)
        if "node.id" in self._layer and _typed("node.id", _I, self._layer["node.id"]) != number:
            raise KafkaConfigurationError(
                f"broker.id={number} and node.id={self._layer['node.id']} are the same property; give one"
            )
        self._set("node_id", number)

    def _process_roles(self, name: str, value: object) -> None:
        roles = {role.strip() for role in str(value).split(",")}
        if "broker" not in roles:
            raise KafkaConfigurationError(
                f"process.roles={value} must have broker in it: this is a broker that needs no controller"
            )

    def _inter_broker_protocol(self, name: str, value: object) -> None:
        self._notes[name] = f"{name}={value} has no effect: there are no other brokers to speak to"

    def _topic_defaults(self, name: str, value: object) -> None:
        for topic_key, text in _mapping(name, value).items():
            if topic_key not in TOPIC_CONFIG:
                raise KafkaConfigurationError(f"log_defaults: unknown topic config name {topic_key}")
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
                raise KafkaConfigurationError(f"{name}={value} must have a host, for clients to connect to")
        # The port that is listened on anyway is no port of its own: it follows when a flag says another.
        advertised = [
            each._replace(port=0) if ports.get(each.name) == each.port else each for each in endpoints
        ]
        if len(advertised) == 1 and advertised[0].name == "PLAINTEXT":
            self._set("advertised_host", advertised[0].host)
            self._set("advertised_port", advertised[0].port or None)
        elif advertised:
            self._set("advertised_listeners", ",".join(map(str, advertised)))

    def _client_endpoints(self, name: str, text: str) -> list[Endpoint]:
        """Those that are not a controller's."""
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

    # ---- The end ---------------------------------------------------------------------------------------

    def resolved(self) -> ResolvedProperties:
        if self._is_closed_to_others():
            self._notes["listeners"] = (
                "listeners without a host: this machine alone can connect, because allow.remote is not set"
            )
        if self._asks_sasl_for_certificates():
            self._notes[CLIENT_AUTH] = (
                f"{CLIENT_AUTH} has no effect on listeners that speak SASL_SSL: "
                f"give {LISTENER_PREFIX}<name>.{CLIENT_AUTH} to ask their clients for certificates"
            )
        if "data_dir" not in self._arguments:
            raise KafkaConfigurationError(
                "data.dir is missing: name the folder for the broker's data, in a file log.dirs"
            )
        arguments = {
            **self._arguments,
            "log_defaults": self._log_defaults,
            "listener_properties": self._listener_properties,
        }
        return ResolvedProperties(arguments, self._origins, list(self._notes.values()))

    def _is_closed_to_others(self) -> bool:
        """Whether a listener without a host and without authentication is open to this machine alone."""
        return not self._arguments.get("allow_remote", False) and any(
            not each.host and protocol == "PLAINTEXT" for each, protocol in self._endpoints()
        )

    def _asks_sasl_for_certificates(self) -> bool:
        """Whether certificates are asked for without a prefix, and a listener speaks SASL_SSL."""
        shared = self._listener_properties.get(CLIENT_AUTH, "none")
        protocols = {protocol for _, protocol in self._endpoints()} | {
            self._arguments.get("security_protocol")
        }
        return shared != "none" and "SASL_SSL" in protocols

    def _endpoints(self) -> list[tuple[Endpoint, str]]:
        """Each endpoint of ``listeners`` and its protocol."""
        host = self._arguments.get("host", "-")
        text = self._arguments.get("listeners") or f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:0"
        protocols = parse_protocol_map(self._arguments.get("listener_security_protocol_map", ""))
        found = parse_endpoints("listeners", text)
        return [(each, protocols.get(each.name, each.name)) for each in found]


def _suggestion(name: str) -> str:
    if name in TOPIC_CONFIG:
        other = TOPIC_CONFIG[name].broker_name
        return f": it is a topic's; the broker's is {other}" if other else ": it can only be said of a topic"
    known = {*_BY_NAME, *BROKER_SYNONYMS, *_UNITS, *WITHOUT_EFFECT, *REPLICATION_FACTORS, *LISTENER_KEYS}
    known |= {"listen", "log.dir", "broker.id", "process.roles"}
    return suggestion(name, known)


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise KafkaConfigurationError(f"{name} must be a mapping")
    return value


def _typed(name: str, kind: SettingType, value: object) -> object:
    """A property given as text, in its type."""
    if not isinstance(value, str):
        return value
    try:
        return read(kind, value.strip())
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{name}={value} {error}") from None
