"""The properties that this broker knows: names, types, limits, what they mean; properties in, fields out.

A new property is a field of ``BrokerConfig`` and a row of :data:`BROKER_KEYS`; docs/BROKER.md's table is made
of both. Does not know: how anything is used. Source of names and syntax: Kafka's ``KafkaConfig``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafkacore.broker.config.kafka_keys import (
    REPLICATION_FACTORS,
    SECURITY_PREFIXES,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_PREFIXES,
)
from kafkacore.broker.config.listener_keys import (
    CLIENT_AUTH,
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
        The field of ``BrokerConfig`` that it sets, which has its default.
    """

    field: str = ""


def _key(
    name: str,
    field: str,
    kind: SettingType,
    documentation: str,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    *,
    is_dynamic: bool = False,
) -> BrokerSetting:
    return BrokerSetting(
        name, kind, None, documentation, low, high, choices, is_dynamic=is_dynamic, field=field
    )


_B, _S, _I, _L = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT, SettingType.LONG
_D = SettingType.DOUBLE

# fmt: off
BROKER_KEYS: Final = (
    _key("log.dirs", "data_dir", _S, "The folder of the logs; made, with mode 0700, if it is missing. "
         "One folder, and one broker per folder."),
    _key("listeners", "listeners", _S, "Where clients connect: `NAME://host:port`, several separated by "
         "commas. Port 0 takes a free one. Without a host it is this machine alone, unless clients "
         "authenticate there or `allow.remote` is set."),
    _key("host", "host", _S, "The first listener's host alone, instead of `listeners`."),
    _key("port", "port", _I, "The first listener's port alone, instead of `listeners`.", 0, 65535),
    _key("security.protocol", "security_protocol", _S, "What is spoken on the one listener, where "
         "`listeners` is not given.", choices=SECURITY_PROTOCOLS),
    _key("listener.security.protocol.map", "listener_security_protocol_map", _S, "What is spoken on "
         "listeners whose names do not say it: `OUTSIDE:SASL_SSL,INSIDE:PLAINTEXT`."),
    _key("advertised.listeners", "advertised_listeners", _S, "What clients are told to connect to, if "
         "not `listeners`: `NAME://host:port`, each for those that came by the listener of that name. "
         "Port 0 is the one listened on."),
    _key("advertised.host", "advertised_host", _S, "The host alone that clients of the first listener "
         "are told."),
    _key("advertised.port", "advertised_port", _I, "The port alone that clients of the first listener "
         "are told, where a proxy stands in front of the broker.", 1, 65535),
    _key("allow.remote", "allow_remote", _B, "Listen where other machines can connect, although they "
         "are not asked who they are."),
    _key("self.made.certificate", "self_made_certificate", _B, "For development: a listener with TLS "
         "and without a key store gets a certificate that the broker makes (that needs the package "
         "cryptography); clients trust `tls/ca.pem` in the data folder."),
    _key("connection.setup.timeout.ms", "connection_setup_timeout_ms", _I, "How long TLS and "
         "authentication together may take, and a first request from its first byte to its last.",
         1, INT32_MAX),
    _key("connection.failed.authentication.delay.ms", "connection_failed_authentication_delay_ms", _I,
         "How long the answer to a failed authentication is kept back.", 0, INT32_MAX),
    _key("authorizer.class.name", "authorizer_class_name", _S, "What decides who may do what: Kafka's "
         "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`, by access control entries. Without "
         "it everybody may do everything.", choices=("", STANDARD_AUTHORIZER)),
    _key("super.users", "super_users", _S, "Who may do everything, whatever the entries say: "
         "`User:admin;User:alice`."),
    _key("allow.everyone.if.no.acl.found", "allow_everyone_if_no_acl_found", _B, "Whether everybody may "
         "do everything to a resource that no entry is about."),
    _key("status.port", "status_port", _I, "Where the status page and the metrics are, on 127.0.0.1; "
         "0 takes a free port, -1 is nowhere. `kafkacore broker` says 0.", -1, 65535),
    _key("flush", "flush", _S, "When the broker acknowledges a record: when it is on the disk "
         "(`ack`), or when it is written to the operating system (`os`).", choices=("ack", "os")),
    _key("node.id", "node_id", _I, "The number of this node; a folder keeps that of its first start.",
         0, INT32_MAX),
    _key("broker.rack", "rack", _S, "The rack that clients are told."),
    _key("num.partitions", "num_partitions", _I, "Partitions of a topic that says nothing else.",
         1, INT32_MAX),
    _key("auto.create.topics.enable", "auto_create_topics_enable", _B, "Whether a topic is made when "
         "somebody asks for it."),
    _key("delete.topic.enable", "delete_topic_enable", _B, "Whether topics can be deleted."),
    _key("message.max.bytes", "message_max_bytes", _I, "The largest batch of a topic that says nothing "
         "else.", 0, INT32_MAX),
    _key("socket.request.max.bytes", "socket_request_max_bytes", _I, "The largest request; a larger one "
         "costs its sender the connection. "
         "So does one with more than 100,000 elements in its arrays, of any size.", 1, INT32_MAX),
    _key("fetch.max.bytes", "fetch_max_bytes", _I, "Most bytes of records in one answer to a Fetch.",
         1024, INT32_MAX),
    _key("max.incremental.fetch.session.cache.slots", "max_incremental_fetch_session_cache_slots", _I,
         "Clients whose fetches are remembered, so that both sides say only what is new.", 0, INT32_MAX),
    _key("quota.producer.default", "quota_producer_default", _L, "Bytes of Produce requests a second "
         "that a client id may send; beyond, it pauses.", 1, INT64_MAX),
    _key("quota.producer.overrides", "quota_producer_overrides", _S, "Client ids with another limit: "
         "`client=limit, client=limit`."),
    _key("quota.consumer.default", "quota_consumer_default", _L, "Bytes of records a second that a "
         "client id may fetch; beyond, it pauses.", 1, INT64_MAX),
    _key("quota.consumer.overrides", "quota_consumer_overrides", _S, "Client ids with another limit: "
         "`client=limit, client=limit`."),
    _key("quota.request.default", "quota_request_default", _L, "Percent of the network thread's time "
         "that a client id may have; beyond, it pauses.", 1, INT64_MAX),
    _key("quota.request.overrides", "quota_request_overrides", _S, "Client ids with another limit: "
         "`client=limit, client=limit`."),
    _key("quota.window.num", "quota_window_num", _I, "Samples that a client's rate is of.", 2, 3600),
    _key("quota.window.size.seconds", "quota_window_size_seconds", _I, "Seconds of such a sample.",
         1, 3600),
    _key("connections.max.idle.ms", "connections_max_idle_ms", _L, "A connection that says nothing for "
         "so long is closed; -1 for never.", -1, INT32_MAX),
    _key("max.connections", "max_connections", _I, "Connections at a time; one more is closed at once.",
         1, INT32_MAX, is_dynamic=True),
    _key("max.connections.per.ip", "max_connections_per_ip", _I, "Connections from one address at a "
         "time; one more is closed at once.", 0, INT32_MAX, is_dynamic=True),
    _key("max.connections.per.ip.overrides", "max_connections_per_ip_overrides", _S, "Addresses with "
         "another limit: `127.0.0.1:100,::1:200`.", is_dynamic=True),
    _key("queued.max.request.bytes", "queued_max_request_bytes", _L, "Most bytes of requests that are "
         "read and not yet answered; beyond, nothing is read until some are. -1 for no limit.",
         -1, INT64_MAX),
    _key("group.min.session.timeout.ms", "group_min_session_timeout_ms", _I, "The shortest "
         "`session.timeout.ms` that a member of a group may ask for.", 0, INT32_MAX),
    _key("group.max.session.timeout.ms", "group_max_session_timeout_ms", _I, "The longest "
         "`session.timeout.ms` that a member of a group may ask for.", 0, INT32_MAX),
    _key("group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms", _I, "How long the "
         "first members of an empty group wait for more; once more for each that comes.", 0, INT32_MAX),
    _key("group.max.size", "group_max_size", _I, "Members of a group; one more is refused.", 1,
         INT32_MAX),
    _key("max.partitions", "max_partitions", _I, "Partitions of all topics together.", 1, INT32_MAX),
    _key("log.cleaner.enable", "log_cleaner_enable", _B, "Whether topics with the policy `compact` are "
         "compacted."),
    _key("log.cleaner.backoff.ms", "log_cleaner_backoff_ms", _L, "How long the log cleaner waits when "
         "there is nothing to clean.", 0, INT64_MAX, is_dynamic=True),
    _key("log.cleaner.dedupe.buffer.size", "log_cleaner_dedupe_buffer_size", _L, "Most memory for the "
         "keys of a log that is being cleaned, 24 bytes a key; it is there only as long as that takes.",
         24 * 1024, INT64_MAX, is_dynamic=True),
    _key("log.cleaner.io.buffer.load.factor", "log_cleaner_io_buffer_load_factor", _D, "How full that "
         "memory may become; fuller is slower.", 0.01, 0.99, is_dynamic=True),
    _key("log.cleaner.io.buffer.size", "log_cleaner_io_buffer_size", _I, "How much of a log the cleaner "
         "reads at once.", 4096, INT32_MAX, is_dynamic=True),
    _key("log.cleaner.io.max.bytes.per.second", "log_cleaner_io_max_bytes_per_second", _D, "Most that "
         "the cleaner reads and writes in a second.", 1, sys.float_info.max, is_dynamic=True),
    _key("max.decompressed.batch.bytes", "max_decompressed_batch_bytes", _I, "Most bytes that a "
         "producer's compressed batch may have in it; one with more is refused as too large.",
         1, INT32_MAX),
    _key("offset.metadata.max.bytes", "offset_metadata_max_bytes", _I, "The longest note of a committed "
         "offset, in characters.", 0, INT32_MAX),
    _key("offsets.commit.timeout.ms", "offsets_commit_timeout_ms", _I, "How long a commit waits for the "
         "disk before its client is told to try again.", 1, INT32_MAX),
    _key("offsets.load.buffer.size", "offsets_load_buffer_size", _I, "Bytes of `__consumer_offsets` "
         "that are read at a time at the start.", 1, INT32_MAX),
    _key("offsets.retention.check.interval.ms", "offsets_retention_check_interval_ms", _L, "How often "
         "old offsets are looked for.", 1, INT32_MAX),
    _key("offsets.retention.minutes", "offsets_retention_minutes", _I, "For how long offsets are kept "
         "that nobody uses.", 1, INT32_MAX),
    _key("offsets.topic.compression.codec", "offsets_topic_compression_codec", _I, "The codec of "
         f"`__consumer_offsets`: {_CODEC_NUMBERS}.", 0, max(Compression).value),
    _key("offsets.topic.num.partitions", "offsets_topic_num_partitions", _I, "Partitions of "
         "`__consumer_offsets`, when it is made.", 1, INT32_MAX),
    _key("offsets.topic.segment.bytes", "offsets_topic_segment_bytes", _I, "Size of a segment of "
         "`__consumer_offsets`, when it is made.", 14, INT32_MAX),
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
        told = [each._replace(port=0) if ports.get(each.name) == each.port else each for each in endpoints]
        if len(told) == 1 and told[0].name == "PLAINTEXT":
            self._set("advertised_host", told[0].host)
            self._set("advertised_port", told[0].port or None)
        elif told:
            self._set("advertised_listeners", ",".join(map(str, told)))

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
        """Whether a listener without a host is taken for this machine's alone, since it asks nobody."""
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
