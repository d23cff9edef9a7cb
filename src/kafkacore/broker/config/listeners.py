"""Listeners: Kafka's properties of them in; where each listens, what is spoken there and how, out.

Does not know: sockets, certificates, mechanisms. Source of syntax and rules: Kafka's ``AbstractKafkaConfig``.
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
#: The value of a property; a secret one is never text.
PropertyValue = str | Secret
EVERY_ADDRESS: Final = ("0.0.0.0", "::", "")


class Endpoint(NamedTuple):
    """``NAME://host:port``."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://[{self.host}]:{self.port}" if ":" in self.host else "{}://{}:{}".format(*self)


def parse_endpoints(name: str, text: str) -> list[Endpoint]:
    """What ``listeners`` or ``advertised.listeners``, whichever ``name`` is, says; IPv6 without brackets."""
    found = []
    for part in text.split(","):
        match = _ENDPOINT.fullmatch(part.strip())
        if match is None or int(match[3]) > 65535:
            raise KafkaConfigurationError(
                f"{name}={text} must be NAME://host:port, several separated by commas, as {_EXAMPLE}"
            )
        found.append(Endpoint(match[1].upper(), match[2].strip("[]"), int(match[3])))
    names = [endpoint.name for endpoint in found]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise KafkaConfigurationError(
            f"{name}={text} has {twice} twice; give each listener a name of its own, and say what it speaks "
            "in listener.security.protocol.map"
        )
    return found


def parse_protocol_map(text: str) -> dict[str, str]:
    """``listener.security.protocol.map``: name → protocol."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (word.strip().upper() for word in part.partition(":"))
        if not colon or not name or protocol not in SECURITY_PROTOCOLS:
            raise KafkaConfigurationError(
                f"listener.security.protocol.map={text} must be NAME:protocol, several separated by commas; "
                f"a protocol is one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        found[name] = protocol
    return found


@dataclass(frozen=True, kw_only=True)
class Listener:
    """One listener of a node as it is configured.

    Parameters
    ----------
    name, protocol:
        ``OUTSIDE``, ``SASL_SSL``.
    host, port:
        Where it listens; port 0 takes a free one.
    advertised_host, advertised_port:
        Where its clients connect; port ``None`` is the one listened on.
    settings:
        Its properties by the names of :data:`LISTENER_KEYS`, those that have a value.
    by_mechanism:
        Mechanism → properties of it alone.
    jaas:
        Mechanism → login module and options, for those that have one.
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
        """Whether nobody is served here who has not shown who it is."""
        return self.has_sasl or (self.has_tls and self.settings[CLIENT_AUTH] == "required")

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What clients may authenticate by; without TLS not with their passwords, unless that is said."""
        given = words(self.text("sasl.enabled.mechanisms") or "")
        return tuple(given) or (*SCRAM_MECHANISMS, *(["PLAIN"] if self.has_tls else []))

    @property
    def most_connections(self) -> int | None:
        """Connections at a time; ``None`` for no limit of its own."""
        most = self.text("max.connections")
        return None if most is None else int(most)

    def of_mechanism(self, mechanism: str) -> Mapping[str, PropertyValue]:
        """The properties for one mechanism."""
        return {**self.settings, **self.by_mechanism.get(mechanism, {})}

    def number(self, name: str) -> int:
        """A property that is a number and has a default."""
        text = self.text(name)
        assert text is not None, f"{name} has a default"
        return int(text)

    def text(self, name: str) -> str | None:
        """A property that is not secret, if it has a value."""
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
    """The listeners of a node.

    Parameters
    ----------
    endpoints:
        Where they listen.
    advertised:
        Name → advertised address; port 0 is the one listened on.
    protocols:
        Name → protocol, of names that are none themselves.
    properties:
        Those of :func:`~kafkacore.broker.config.listener_keys.is_of_a_listener`, with their prefixes.

    Raises
    ------
    KafkaConfigurationError
        A sentence that says what to write instead.
    """
    names = [endpoint.name for endpoint in endpoints]
    for name in advertised:
        if name not in names:
            raise KafkaConfigurationError(
                f"advertised.listeners has {name}, and listeners has not: it has {', '.join(names)}"
            )
    shared, own = _by_listener(properties, names)
    made = []
    for endpoint in endpoints:
        protocol = protocols.get(endpoint.name, endpoint.name)
        if protocol not in SECURITY_PROTOCOLS:
            raise KafkaConfigurationError(
                f"what the listener {endpoint.name} speaks is not said; add it to "
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
    """Refuse a listener that lacks what its protocol needs.

    Parameters
    ----------
    has_certificate:
        A key store is made for it if it has none.
    """
    settings, place = listener.settings, f"the listener {listener.name} speaks {listener.protocol}"
    if listener.has_tls:
        has_file = "ssl.keystore.location" in settings
        has_key, has_chain = "ssl.keystore.key" in settings, "ssl.keystore.certificate.chain" in settings
        if has_file and (has_key or has_chain):
            raise KafkaConfigurationError(
                f"{place} and has two key stores; give either ssl.keystore.location or ssl.keystore.key with "
                "ssl.keystore.certificate.chain"
            )
        if has_key != has_chain:
            raise KafkaConfigurationError(
                f"{place}: ssl.keystore.key and ssl.keystore.certificate.chain must be given together"
            )
        if not (has_file or has_key or has_certificate):
            raise KafkaConfigurationError(
                f"{place} and has no certificate; name a PEM file with its key and certificates in "
                "ssl.keystore.location, or let one be made for development: self.made.certificate=true"
            )
        trusts = "ssl.truststore.location" in settings or "ssl.truststore.certificates" in settings
        if settings[CLIENT_AUTH] != "none" and not trusts:
            raise KafkaConfigurationError(
                f"{place} and asks clients for certificates (ssl.client.auth); name the file of the "
                "authorities that it is to believe in ssl.truststore.location"
            )
    if listener.has_sasl:
        unknown = [each for each in listener.mechanisms if each not in MECHANISMS]
        if unknown:
            raise KafkaConfigurationError(
                f"sasl.enabled.mechanisms of {listener.name} has {unknown[0]}; this broker has "
                f"{', '.join(MECHANISMS)}"
            )


def _by_listener(
    properties: Mapping[str, PropertyValue], names: Iterable[str]
) -> tuple[dict[str, PropertyValue], dict[str, dict[str, PropertyValue]]]:
    """Properties of all, and those of each listener by its name, without the prefix."""
    shared: dict[str, PropertyValue] = {}
    own: dict[str, dict[str, PropertyValue]] = {name: {} for name in names}
    # A name may have dots in it, and another one may be its beginning.
    longest_first = sorted(own, key=len, reverse=True)
    for full, value in properties.items():
        if not full.startswith(LISTENER_PREFIX):
            shared[full] = value
            continue
        rest = full.removeprefix(LISTENER_PREFIX)
        name = next((each for each in longest_first if rest.upper().startswith(f"{each}.")), None)
        if name is None:
            raise KafkaConfigurationError(
                f"{full}: there is no such listener; listeners has {', '.join(names)}"
            )
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
        # As in Kafka (ChannelBuilders): without a prefix the property applies to SSL listeners alone.
        settings[CLIENT_AUTH] = "none"
    return settings


def _by_mechanism(own: Mapping[str, PropertyValue]) -> dict[str, dict[str, PropertyValue]]:
    """Mechanism → what is said of it alone, but for its login module."""
    found: dict[str, dict[str, PropertyValue]] = {}
    for name, value in own.items():
        mechanism, _, rest = name.partition(".")
        if mechanism.upper() in MECHANISMS and rest in LISTENER_KEYS and rest != JAAS:
            found.setdefault(mechanism.upper(), {})[rest] = value
    return found


def _jaas(listener: str, own: Mapping[str, PropertyValue]) -> dict[str, JaasEntry]:
    """Mechanism → its login module, of ``<mechanism>.sasl.jaas.config``."""
    found = {}
    for name, value in own.items():
        mechanism, dot, rest = name.partition(".")
        if dot and rest == JAAS:
            place = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
            found[mechanism.upper()] = parse_jaas(place, Secret(value).text())
    return found


def checked_property(name: str, value: object) -> PropertyValue | None:
    """A property of a listener, with its prefix if it has one, as it is kept; ``None`` if it has no effect.

    Raises
    ------
    KafkaConfigurationError
        It is not known, or its value is not one that it may have.
    """
    if name.startswith(USER_PREFIX):
        password = _secret(value)
        if not name.removeprefix(USER_PREFIX) or not password:
            raise KafkaConfigurationError(f"{name} must name a user and give a password")
        return password
    bare = _bare_name(name)
    key = LISTENER_KEYS.get(bare)
    if bare in REFUSED:
        raise KafkaConfigurationError(f"{name} cannot be had: {REFUSED[bare]}")
    if bare == JAAS and not _names_a_mechanism(name):
        raise KafkaConfigurationError(
            f"{name} must say of which listener and mechanism it is, "
            f"as {LISTENER_PREFIX}sasl_ssl.plain.{JAAS}"
        )
    if key is None:
        if bare.startswith(WITHOUT_EFFECT_HERE):
            return None
        raise KafkaConfigurationError(
            f"unknown property of a listener {name}{suggestion(bare, LISTENER_KEYS)}"
        )
    return _checked_value(name, key, value)


def listener_key(name: str) -> ListenerSetting | None:
    """What a property is, whatever stands before its own name; ``None`` if it is none of a listener."""
    return LISTENER_KEYS.get(_bare_name(name))


def is_secret(name: str) -> bool:
    """Whether the value of a broker's property is nobody's business."""
    key = listener_key(name)
    return name.startswith(USER_PREFIX) or (key is not None and key.is_secret)


def _bare_name(name: str) -> str:
    """Without the listener and the mechanism before it."""
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
        raise TypeError("a secret is text or bytes")
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
            raise KafkaConfigurationError(f"{name}={text}: {wrong[0]} is no name of a mechanism")
    if key.name == "ssl.enabled.protocols":
        wrong = [each for each in words(text) if each not in ("TLSv1.2", "TLSv1.3")]
        if wrong or not words(text):
            raise KafkaConfigurationError(f"{name}={text} must be of TLSv1.2 and TLSv1.3")
    return text


def _why(key: ListenerSetting, text: str) -> str:
    if key.name.endswith("store.type") and text.upper() == "JKS":
        return (
            "; a key store of Java is made a PKCS12 by keytool -importkeystore -srckeystore FILE.jks "
            "-destkeystore FILE.p12 -deststoretype PKCS12"
        )
    return ""
