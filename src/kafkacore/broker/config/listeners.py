"""Parser of Kafka's listener properties: where each listener binds, its protocol and its settings.

Syntax and rules follow Kafka's ``AbstractKafkaConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkacore.broker.config.listener_keys import (
    CLIENT_AUTH,
    JAAS,
    LISTENER_KEYS,
    LISTENER_PREFIX,
    MECHANISMS,
    REFUSED,
    SCRAM_MECHANISMS,
    USER_PREFIX,
    WITHOUT_EFFECT_HERE,
    ListenerSetting,
)
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.jaas import JaasEntry, parse_jaas
from kafkacore.settings import SECURITY_PROTOCOLS, SettingType, suggestion
from kafkacore.settings.texts import InvalidTextError, read_choice, read_java_whole, words

_ENDPOINT = re.compile(r"([\w.-]+)://(\[[^\]]*\]|[^:\[\]]*):(\d{1,5})")
_EXAMPLE: Final = "PLAINTEXT://127.0.0.1:9092"
_MECHANISM: Final = re.compile(r"[A-Z0-9_-]{1,20}")
#: The value of a property. The value of a secret property is always a :class:`Secret`.
PropertyValue = str | Secret
EVERY_ADDRESS: Final = ("0.0.0.0", "::", "")


class Endpoint(NamedTuple):
    """An address ``NAME://host:port``."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://[{self.host}]:{self.port}" if ":" in self.host else "{}://{}:{}".format(*self)


def parse_endpoints(name: str, text: str) -> list[Endpoint]:
    """Parse the text of ``listeners`` or ``advertised.listeners``. Remove the brackets of IPv6 hosts."""
    found = []
    for part in text.split(","):
        match = _ENDPOINT.fullmatch(part.strip())
        if match is None or int(match[3]) > 65535:
            raise KafkaConfigurationError(
                f"{name}={text} must be a comma-separated list of NAME://host:port, for example {_EXAMPLE}"
            )
        found.append(Endpoint(match[1].upper(), match[2].strip("[]"), int(match[3])))
    names = [endpoint.name for endpoint in found]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise KafkaConfigurationError(
            f"{name}={text} has {twice} twice: give each listener a unique name and set its protocol "
            "in listener.security.protocol.map"
        )
    return found


def parse_protocol_map(text: str) -> dict[str, str]:
    """Return the protocol of each listener name in ``listener.security.protocol.map``."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (word.strip().upper() for word in part.partition(":"))
        if not colon or not name or protocol not in SECURITY_PROTOCOLS:
            raise KafkaConfigurationError(
                f"listener.security.protocol.map={text} must be a comma-separated list of NAME:protocol; "
                f"the protocol must be one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        found[name] = protocol
    return found


@dataclass(frozen=True, kw_only=True)
class Listener:
    """The configuration of one listener of a node.

    Parameters
    ----------
    name, protocol:
        Name and security protocol of the listener, such as ``OUTSIDE`` and ``SASL_SSL``.
    host, port:
        Address to bind to; port 0 chooses a free port.
    advertised_host, advertised_port:
        Address that clients connect to. Port ``None`` stands for the bound port.
    settings:
        Values of the settings in :data:`LISTENER_KEYS`, by name; settings without a value are missing.
    by_mechanism:
        Settings of single SASL mechanisms, by mechanism.
    jaas:
        Login modules by mechanism.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int | None = None
    settings: Mapping[str, PropertyValue] = field(default_factory=dict)
    by_mechanism: Mapping[str, Mapping[str, PropertyValue]] = field(default_factory=dict)
    jaas: Mapping[str, JaasEntry] = field(default_factory=dict)

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def authenticates(self) -> bool:
        """Whether every client must authenticate."""
        return self.has_sasl or (self.has_tls and self.settings[CLIENT_AUTH] == "required")

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Enabled SASL mechanisms. By default, PLAIN requires TLS, because PLAIN sends passwords."""
        given = words(self.text("sasl.enabled.mechanisms") or "")
        return tuple(given) or (*SCRAM_MECHANISMS, *(["PLAIN"] if self.has_tls else []))

    @property
    def max_connections(self) -> int | None:
        """Maximum number of connections to this listener; ``None`` if only the broker's limit applies."""
        most = self.text("max.connections")
        return None if most is None else int(most)

    def of_mechanism(self, mechanism: str) -> Mapping[str, PropertyValue]:
        """Return the settings for one SASL mechanism."""
        return {**self.settings, **self.by_mechanism.get(mechanism, {})}

    def number(self, name: str) -> int:
        """Return the value of a numeric setting that has a default."""
        text = self.text(name)
        assert text is not None, f"{name} has a default"
        return int(text)

    def text(self, name: str) -> str | None:
        """Return the value of a setting that is not secret, or ``None``."""
        value = self.settings.get(name)
        assert not isinstance(value, Secret), f"{name} is not secret"
        return value

    def secret(self, name: str) -> Secret | None:
        found = self.settings.get(name)
        return None if found is None else Secret(found)


def configured_listeners(
    endpoints: Sequence[Endpoint],
    advertised: Mapping[str, Endpoint],
    protocols: Mapping[str, str],
    properties: Mapping[str, PropertyValue],
) -> tuple[Listener, ...]:
    """Return the listeners of a node.

    Parameters
    ----------
    endpoints:
        Addresses to bind to.
    advertised:
        Advertised addresses by listener name. Port 0 stands for the bound port.
    protocols:
        Protocols by listener name, for names that are not a protocol.
    properties:
        Listener settings with their prefixes, see
        :func:`~kafkacore.broker.config.listener_keys.is_listener_property`.

    Raises
    ------
    KafkaConfigurationError
        The configuration is invalid. The message says what to write instead.
    """
    names = [endpoint.name for endpoint in endpoints]
    for name in advertised:
        if name not in names:
            raise KafkaConfigurationError(
                f"advertised.listeners has {name}, which is not in listeners ({', '.join(names)})"
            )
    shared, own = _by_listener(properties, names)
    made = []
    for endpoint in endpoints:
        protocol = protocols.get(endpoint.name, endpoint.name)
        if protocol not in SECURITY_PROTOCOLS:
            raise KafkaConfigurationError(
                f"listener {endpoint.name} has no security protocol: add it to "
                f"listener.security.protocol.map, for example {endpoint.name}:SASL_SSL"
            )
        address = advertised.get(endpoint.name, Endpoint(endpoint.name, endpoint.host, 0))
        made.append(
            Listener(
                name=endpoint.name,
                protocol=protocol,
                host=endpoint.host,
                port=endpoint.port,
                advertised_host=address.host,
                advertised_port=address.port or None,
                settings=_settings(protocol, shared, own[endpoint.name]),
                by_mechanism=_by_mechanism(own[endpoint.name]),
                jaas=_jaas(endpoint.name, own[endpoint.name]),
            )
        )
    return tuple(made)


def check_security(listener: Listener, *, has_certificate: bool) -> None:
    """Check that a listener has the settings that its protocol needs.

    Parameters
    ----------
    has_certificate:
        Whether the broker creates a certificate for a listener that has no certificate.

    Raises
    ------
    KafkaConfigurationError
        A setting is missing or contradicts another setting.
    """
    settings, place = listener.settings, f"listener {listener.name} ({listener.protocol})"
    if listener.has_tls:
        has_file = "ssl.keystore.location" in settings
        has_key, has_chain = "ssl.keystore.key" in settings, "ssl.keystore.certificate.chain" in settings
        if has_file and (has_key or has_chain):
            raise KafkaConfigurationError(
                f"{place} has two key stores: set either ssl.keystore.location, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain"
            )
        if has_key != has_chain:
            raise KafkaConfigurationError(
                f"{place}: ssl.keystore.key and ssl.keystore.certificate.chain must be set together"
            )
        if not (has_file or has_key or has_certificate):
            raise KafkaConfigurationError(
                f"{place} has no certificate: set ssl.keystore.location to a PEM file with its key and "
                "certificates, or for development set self.made.certificate=true"
            )
        trusts = "ssl.truststore.location" in settings or "ssl.truststore.certificates" in settings
        if settings[CLIENT_AUTH] != "none" and not trusts:
            raise KafkaConfigurationError(
                f"{place} requests client certificates (ssl.client.auth): set ssl.truststore.location to the "
                "file of the authorities that sign them"
            )
    if listener.has_sasl:
        unknown = [each for each in listener.mechanisms if each not in MECHANISMS]
        if unknown:
            raise KafkaConfigurationError(
                f"sasl.enabled.mechanisms of listener {listener.name} has {unknown[0]}, which this broker "
                f"does not support; choose from {', '.join(MECHANISMS)}"
            )


def _by_listener(
    properties: Mapping[str, PropertyValue], names: Iterable[str]
) -> tuple[dict[str, PropertyValue], dict[str, dict[str, PropertyValue]]]:
    """Return the settings without a listener prefix, and each listener's settings with the prefix removed."""
    shared: dict[str, PropertyValue] = {}
    own: dict[str, dict[str, PropertyValue]] = {name: {} for name in names}
    # Try longer names first: a listener name may contain dots, and may be the beginning of another name.
    longest_first = sorted(own, key=len, reverse=True)
    for full, value in properties.items():
        if not full.startswith(LISTENER_PREFIX):
            shared[full] = value
            continue
        rest = full.removeprefix(LISTENER_PREFIX)
        name = next((each for each in longest_first if rest.upper().startswith(f"{each}.")), None)
        if name is None:
            raise KafkaConfigurationError(f"{full}: unknown listener; listeners has {', '.join(names)}")
        own[name][rest[len(name) + 1 :]] = value
    return shared, own


def _settings(
    protocol: str, shared: Mapping[str, PropertyValue], own: Mapping[str, PropertyValue]
) -> dict[str, PropertyValue]:
    settings: dict[str, PropertyValue] = {
        key.name: key.default for key in LISTENER_KEYS.values() if key.default is not None
    }
    for given in (shared, own):
        settings.update({name: value for name, value in given.items() if name in LISTENER_KEYS})
    if protocol == "SASL_SSL" and CLIENT_AUTH not in own:
        # As in Kafka's ChannelBuilders, ssl.client.auth without a prefix applies to SSL listeners only.
        settings[CLIENT_AUTH] = "none"
    return settings


def _by_mechanism(own: Mapping[str, PropertyValue]) -> dict[str, dict[str, PropertyValue]]:
    """Return the settings of single mechanisms, by mechanism, without their login modules."""
    found: dict[str, dict[str, PropertyValue]] = {}
    for name, value in own.items():
        mechanism, _, rest = name.partition(".")
        if mechanism.upper() in MECHANISMS and rest in LISTENER_KEYS and rest != JAAS:
            found.setdefault(mechanism.upper(), {})[rest] = value
    return found


def _jaas(listener: str, own: Mapping[str, PropertyValue]) -> dict[str, JaasEntry]:
    """Return the login modules of ``<mechanism>.sasl.jaas.config``, by mechanism."""
    found = {}
    for name, value in own.items():
        mechanism, dot, rest = name.partition(".")
        if dot and rest == JAAS:
            place = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
            found[mechanism.upper()] = parse_jaas(place, Secret(value).text())
    return found


def checked_property(name: str, value: object) -> PropertyValue | None:
    """Check a listener setting and return its value, or ``None`` if the setting has no effect.

    Parameters
    ----------
    name:
        Name of the setting, with or without a prefix.

    Raises
    ------
    KafkaConfigurationError
        The setting is unknown or its value is invalid.
    """
    if name.startswith(USER_PREFIX):
        password = _secret(value)
        if not name.removeprefix(USER_PREFIX) or not password:
            raise KafkaConfigurationError(f"{name} must include a user name and have a password as its value")
        return password
    bare = _bare_name(name)
    key = LISTENER_KEYS.get(bare)
    if bare in REFUSED:
        raise KafkaConfigurationError(f"{name} is not supported: {REFUSED[bare]}")
    if bare == JAAS and not _names_a_mechanism(name):
        raise KafkaConfigurationError(
            f"{name} must name a listener and a mechanism, for example {LISTENER_PREFIX}sasl_ssl.plain.{JAAS}"
        )
    if key is None:
        if bare.startswith(WITHOUT_EFFECT_HERE):
            return None
        raise KafkaConfigurationError(f"unknown listener property {name}{suggestion(bare, LISTENER_KEYS)}")
    return _checked_value(name, key, value)


def listener_key(name: str) -> ListenerSetting | None:
    """Return the definition of a listener setting, with or without a prefix; ``None`` for any other name."""
    return LISTENER_KEYS.get(_bare_name(name))


def is_secret(name: str) -> bool:
    """Whether the value of a broker setting is secret."""
    key = listener_key(name)
    return name.startswith(USER_PREFIX) or (key is not None and key.is_secret)


def _bare_name(name: str) -> str:
    """Return the name without listener and mechanism."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    rest = name.removeprefix(LISTENER_PREFIX)
    known = [key for key in (*LISTENER_KEYS, *REFUSED) if rest.endswith(f".{key}")]
    if known:
        return max(known, key=len)
    return next(
        (rest[rest.index(f".{start}") + 1 :] for start in ("ssl.", "sasl.") if f".{start}" in rest), rest
    )


def _names_a_mechanism(name: str) -> bool:
    before = name.removeprefix(LISTENER_PREFIX).removesuffix(JAAS).rstrip(".")
    return name.startswith(LISTENER_PREFIX) and "." in before


def _secret(value: object) -> Secret:
    if not isinstance(value, str | bytes | Secret):
        raise TypeError("a secret must be text or bytes")
    return Secret(value)


def _checked_value(name: str, key: ListenerSetting, value: object) -> PropertyValue:
    if key.is_secret:
        return _secret(value)
    text = str(value).strip() if not isinstance(value, (list, tuple)) else ",".join(map(str, value))
    if key.choices:
        try:
            return read_choice(key.choices, text)
        except InvalidTextError as error:
            raise KafkaConfigurationError(f"{name}={text} {error}{_why(key, text)}") from None
    if key.type in (SettingType.INT, SettingType.LONG):
        assert key.low is not None
        assert key.high is not None
        number = read_java_whole(text)
        if number is None or not key.low <= number <= key.high:
            raise KafkaConfigurationError(
                f"{name}={text} must be a whole number from {key.low} to {key.high}"
            )
    if key.name == "sasl.enabled.mechanisms":
        wrong = [each for each in words(text) if not _MECHANISM.fullmatch(each)]
        if wrong:
            raise KafkaConfigurationError(f"{name}={text}: {wrong[0]} is not a valid mechanism name")
    if key.name == "ssl.enabled.protocols":
        wrong = [each for each in words(text) if each not in ("TLSv1.2", "TLSv1.3")]
        if wrong or not words(text):
            raise KafkaConfigurationError(f"{name}={text} must be a list of TLSv1.2 and TLSv1.3")
    return text


def _why(key: ListenerSetting, text: str) -> str:
    if key.name.endswith("store.type") and text.upper() == "JKS":
        return (
            "; convert a Java key store (JKS) to PKCS12: keytool -importkeystore -srckeystore FILE.jks "
            "-destkeystore FILE.p12 -deststoretype PKCS12"
        )
    return ""
