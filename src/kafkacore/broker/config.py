"""The broker's configuration: arguments or Kafka's property names in, one checked immutable object out.

Field names are Kafka's property names with underscores (``num.partitions`` → ``num_partitions``). What sets
a default of topics (``log.segment.bytes``) lands in ``log_defaults`` under the topic's key. Does not know:
how anything is used.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from kafkacore.broker.topic_config import BROKER_SYNONYMS, INT_MAX, TOPIC_CONFIG, checked_value
from kafkacore.errors import InvalidConfigurationError, KafkaConfigurationError

FLUSH_MODES: Final = ("ack", "os")


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """What a broker is told at start.

    Parameters
    ----------
    data_dir:
        Folder of the logs; made (mode 0700) if it is missing. One broker per folder.
    host, port:
        Where to listen. Port 0 takes a free one. A host that other machines can reach is refused unless
        ``allow_remote`` is set, because nothing here asks who a client is.
    advertised_host:
        What clients are told to connect to; ``host`` if not given, and needed where that is every address.
    advertised_port:
        The port that clients are told, where it is not the one listened on: that of a proxy in front of the
        broker, such as ``kafkacore.testing.FaultProxy``.
    flush:
        ``"ack"``: with acks=all, acknowledged means that ``fdatasync`` has returned. ``"os"``: acknowledged
        means written to the operating system; survives the death of the process, not the loss of power.
    fetch_max_bytes:
        Most bytes of records in one Fetch response, whatever the client asks for.
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
    advertised_host: str | None = None
    advertised_port: int | None = None
    allow_remote: bool = False
    flush: str = "ack"
    node_id: int = 1
    rack: str | None = None
    num_partitions: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    message_max_bytes: int = 1_048_588
    socket_request_max_bytes: int = 100 * 1024 * 1024
    fetch_max_bytes: int = 55 * 1024 * 1024
    connections_max_idle_ms: int = 600_000
    max_connections: int = 10_000
    max_partitions: int = 100_000
    log_defaults: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_dir", Path(self.data_dir).absolute())
        limits = {
            "port": (0, 65535),
            "node_id": (0, INT_MAX),
            "num_partitions": (1, self.max_partitions),
            "message_max_bytes": (0, INT_MAX),
            "socket_request_max_bytes": (1, INT_MAX),
            "fetch_max_bytes": (1024, INT_MAX),
            "connections_max_idle_ms": (-1, INT_MAX),
            "max_connections": (1, INT_MAX),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise KafkaConfigurationError(f"{_dotted(name)}={value} must be between {low} and {high}")
        if self.advertised_port is not None and not 1 <= self.advertised_port <= 65535:
            raise KafkaConfigurationError(
                f"advertised.port={self.advertised_port} must be between 1 and 65535"
            )
        if self.flush not in FLUSH_MODES:
            raise KafkaConfigurationError(f"flush={self.flush} must be one of {', '.join(FLUSH_MODES)}")
        if not self.allow_remote and not is_loopback(self.host):
            raise KafkaConfigurationError(
                f"listening on {self.host} lets other machines in and no authentication is configured; "
                "listen on 127.0.0.1, or say allow.remote=true (kafkacore broker --allow-remote) "
                "if that is meant"
            )
        if self.client_host in ("0.0.0.0", "::"):
            raise KafkaConfigurationError(
                f"clients cannot connect to {self.client_host}; say which of this machine's names "
                "or addresses they are to be told with advertised.host"
            )
        self._check_log_defaults()

    def _check_log_defaults(self) -> None:
        checked = {"max.message.bytes": str(self.message_max_bytes)}
        for name, text in self.log_defaults.items():
            key = TOPIC_CONFIG.get(name)
            if key is None:
                raise KafkaConfigurationError(f"log_defaults: unknown topic config name {name}")
            try:
                checked[name] = checked_value(key, str(text))
            except InvalidConfigurationError as error:
                raise KafkaConfigurationError(str(error.args[0])) from None
        object.__setattr__(self, "log_defaults", checked)

    @property
    def client_host(self) -> str:
        """The host that clients are told."""
        return self.advertised_host or self.host

    def topic_defaults(self) -> dict[str, str]:
        """Every topic configuration key with the value that a topic gets when it says nothing."""
        return {name: self.log_defaults.get(name, key.default) for name, key in TOPIC_CONFIG.items()}

    def properties(self) -> dict[str, str]:
        """What differs from the defaults, as Kafka's property names and text; not address, folder or flush.

        ``from_properties`` of these, with ``data_dir``, ``listen`` and ``flush`` added, gives this
        configuration.
        """
        given: dict[str, str] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("data_dir", "host", "port", "flush", "log_defaults") or value == item.default:
                continue
            given[_dotted(item.name)] = str(value).lower() if isinstance(value, bool) else str(value)
        for name, text in self.log_defaults.items():
            if text != TOPIC_CONFIG[name].default:
                given[TOPIC_CONFIG[name].broker_name] = text
        return given

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> BrokerConfig:
        """Build from Kafka's names (``num.partitions`` or ``num_partitions``), values typed or as text.

        Raises
        ------
        KafkaConfigurationError
            For a name that is not known, or a value that the property may not have.
        """
        known = {field.name: str(field.type) for field in fields(cls)}
        arguments: dict[str, Any] = {}
        log_defaults: dict[str, str] = {}
        for name, value in properties.items():
            field_name, dotted = name.replace(".", "_"), _dotted(name)
            if field_name == "listen":
                arguments["host"], arguments["port"] = parse_listen(str(value))
            elif field_name == "log_defaults":
                log_defaults.update(value)
            elif field_name in known:
                arguments[field_name] = _typed(field_name, known[field_name], value)
            elif dotted in BROKER_SYNONYMS:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                log_defaults[BROKER_SYNONYMS[dotted].name] = text
            else:
                raise KafkaConfigurationError(f"unknown broker property {name}")
        if "data_dir" not in arguments:
            raise KafkaConfigurationError("data.dir is missing: name the folder for the broker's data")
        return cls(**arguments, log_defaults=log_defaults)


def parse_listen(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` → (host, port)."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal():
        raise KafkaConfigurationError(f"listen={text} must be host:port, for example 127.0.0.1:9092")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to ``host``. A name other than localhost is not trusted to be."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _typed(name: str, type_name: str, value: Any) -> Any:
    """A property given as text, in the type of its field."""
    if not isinstance(value, str):
        return value
    if type_name == "bool":
        if value.lower() not in ("true", "false"):
            raise KafkaConfigurationError(f"{_dotted(name)}={value} must be true or false")
        return value.lower() == "true"
    if type_name in ("int", "int | None"):
        try:
            return int(value)
        except ValueError:
            raise KafkaConfigurationError(f"{_dotted(name)}={value} must be a whole number") from None
    return value
