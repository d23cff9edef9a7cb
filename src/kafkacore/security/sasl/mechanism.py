"""What a client's SASL mechanism is, and where one is had by its name.

In: a client's settings and the name of a mechanism. Out: an object that turns the server's challenges into
responses. Does not know: frames, requests, sockets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeGuard

from kafkacore.errors import (
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafkacore.security.secret import Secret
from kafkacore.security.settings import SECURITY_SETTINGS, secret_or_none

if TYPE_CHECKING:
    import gssapi as gss


class Login(Protocol):
    """State that the mechanisms of one client share, such as a token that is renewed."""

    def close(self) -> None: ...


#: Fields of :class:`SaslConfig` whose setting is not ``sasl_`` and their name.
_OTHER_NAMES: Final = {"username": "sasl_plain_username", "password": "sasl_plain_password"}


def _setting_of(field_name: str) -> str:
    return _OTHER_NAMES.get(field_name, "sasl_" + field_name)


def _default(field_name: str) -> Any:
    return SECURITY_SETTINGS[_setting_of(field_name)].default


@dataclass(frozen=True, kw_only=True)
class SaslConfig:
    """A client's ``sasl_`` settings, checked; each field is the setting of its name.

    Attributes
    ----------
    mechanism:
        Its registered name, as ``SCRAM-SHA-512``.
    is_encrypted:
        Whether it is spoken inside TLS.
    login:
        No setting: what the mechanism's ``prepare`` has made for all authentications of the client. It has a
        ``close()``.
    """

    mechanism: str
    is_encrypted: bool = True
    username: str | None = None
    password: Secret | None = None
    allow_plain_over_plaintext: bool = False
    kerberos_name: str | gss.Name | None = None
    kerberos_service_name: str = _default("kerberos_service_name")
    kerberos_domain_name: str | None = None
    kerberos_principal: str | None = None
    kerberos_keytab: str | None = None
    oauth_token_provider: object = None
    aws_region: str | None = None
    oauthbearer_token_endpoint_url: str | None = None
    oauthbearer_client_credentials_client_id: str | None = None
    oauthbearer_client_credentials_client_secret: Secret | None = None
    oauthbearer_scope: str | None = None
    oauthbearer_header_urlencode: bool = False
    oauthbearer_https_cafile: str | None = None
    login_connect_timeout_ms: float = _default("login_connect_timeout_ms")
    login_read_timeout_ms: float = _default("login_read_timeout_ms")
    login_retry_backoff_ms: float = _default("login_retry_backoff_ms")
    login_retry_backoff_max_ms: float = _default("login_retry_backoff_max_ms")
    login_refresh_window_factor: float = _default("login_refresh_window_factor")
    login_refresh_window_jitter: float = _default("login_refresh_window_jitter")
    login_refresh_min_period_seconds: float = _default("login_refresh_min_period_seconds")
    login_refresh_buffer_seconds: float = _default("login_refresh_buffer_seconds")
    login: Login | None = field(default=None, repr=False)

    @classmethod
    def from_client_config(cls, config: Mapping[str, Any]) -> SaslConfig:
        """Of a client's settings as :func:`kafkacore.client.config.resolve` gives them.

        Raises
        ------
        KafkaConfigurationError
            No mechanism, an unknown one, or one that lacks what it needs.
        """
        name = config["sasl_mechanism"]
        if not name:
            raise KafkaConfigurationError(
                f"security_protocol={config['security_protocol']!r} needs sasl_mechanism: "
                f"one of {', '.join(sasl_mechanisms())}"
            )
        values = {
            one.name: config[setting] for one in fields(cls) if (setting := _setting_of(one.name)) in config
        }
        for name, value in values.items():
            if value is not None and SECURITY_SETTINGS[_setting_of(name)].check is secret_or_none:
                values[name] = Secret(value)
        own = cls(**values, is_encrypted=config["security_protocol"] == "SASL_SSL")
        try:
            entry = _entry(own.mechanism)
        except UnsupportedSaslMechanismError:
            raise KafkaConfigurationError(
                f"sasl_mechanism={own.mechanism!r}: it must be one of {', '.join(sasl_mechanisms())}"
            ) from None
        if entry.check is not None:
            entry.check(own)
        return own if entry.prepare is None else entry.prepare(own)

    def close(self) -> None:
        """The client has ended: end what runs for it."""
        if self.login is not None:
            self.login.close()


def settings_of(config: SaslConfig) -> dict[str, object]:
    """The settings as the user gave them, by kafka-python's names, secrets revealed, for user's code."""
    values = {_setting_of(one.name): getattr(config, one.name) for one in fields(config)}
    encrypted = values.pop("sasl_is_encrypted")
    del values["sasl_login"]
    values = {name: value.text() if isinstance(value, Secret) else value for name, value in values.items()}
    return values | {"security_protocol": "SASL_SSL" if encrypted else "SASL_PLAINTEXT"}


class SaslMechanism(ABC):
    """One authentication by one mechanism, the client's side. Made anew for each, also for re-authentication.

    Attributes
    ----------
    name:
        As it is said to the broker.
    is_complete:
        Whether the mechanism has nothing more to ask of the server, and believes it.
    refusal:
        What the server has said is wrong, where it says so in a challenge before the answer that ends all.
    """

    name: str = ""
    is_complete: bool = False
    refusal: str = ""

    @abstractmethod
    def step(self, challenge: bytes | None) -> bytes | None:
        """The server's challenge in, the response to it out.

        Parameters
        ----------
        challenge:
            ``None`` at first, for the initial response.

        Returns
        -------
        bytes or None
            ``None`` when there is nothing more to say.

        Raises
        ------
        SaslAuthenticationFailedError
            And nothing else, whatever the bytes.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of what lives outside of Python."""


#: A mechanism for one authentication with the broker at this host.
MechanismFactory = Callable[[SaslConfig, str], SaslMechanism]
#: Raises :class:`~kafkacore.errors.KafkaConfigurationError` when the settings lack what the mechanism needs.
MechanismCheck = Callable[[SaslConfig], object]
#: The settings with which all mechanisms of one client are made. It may log in: it is called on the thread
#: that makes the client, and may take its time.
MechanismPreparation = Callable[[SaslConfig], SaslConfig]


class _Entry(NamedTuple):
    factory: MechanismFactory
    check: MechanismCheck | None
    prepare: MechanismPreparation | None


_registry: dict[str, _Entry] = {}


def register_sasl_mechanism(
    name: str,
    factory: MechanismFactory,
    overwrite: bool = False,
    *,
    check: MechanismCheck | None = None,
    prepare: MechanismPreparation | None = None,
) -> None:
    """Make a mechanism known to all clients of this process, as a value of ``sasl_mechanism``.

    Parameters
    ----------
    factory:
        ``(config, host) → SaslMechanism``, called for each authentication on the network's thread: it must
        not wait for long. Or a class of kafka-python's form (``auth_bytes``, ``receive``, ``is_done``,
        ``is_authenticated``), which is made with ``host`` and the settings ``sasl_*``.
    check:
        Called with the settings when a client is made.
    prepare:
        Called with the settings when a client is made; gives those that the factory is called with.

    Raises
    ------
    ValueError
        The name is known, and ``overwrite`` is not set.
    """
    if name in _registry and not overwrite:
        raise ValueError(f"there is a SASL mechanism {name} already; overwrite=True replaces it")
    if _is_kafka_python_class(factory):
        factory = _adapt(name, factory)
    _registry[name] = _Entry(factory, check, prepare)


def sasl_mechanisms() -> list[str]:
    """The names that are known."""
    return sorted(_registry)


def make_mechanism(config: SaslConfig, host: str) -> SaslMechanism:
    """The configured mechanism, for one authentication with ``host``."""
    return _entry(config.mechanism).factory(config, host)


def _entry(name: str) -> _Entry:
    try:
        return _registry[name]
    except KeyError:
        raise UnsupportedSaslMechanismError(f"{name} is not registered in this process") from None


# ---- Mechanisms written for kafka-python (its ``kafka.net.sasl.abc.SaslMechanism``) -----------------------


class _KafkaPython(Protocol):
    def auth_bytes(self) -> bytes: ...
    def receive(self, auth_bytes: bytes) -> object: ...
    def is_done(self) -> bool: ...
    def is_authenticated(self) -> bool: ...


_KafkaPythonClass = Callable[..., _KafkaPython]


def _is_kafka_python_class(factory: object) -> TypeGuard[_KafkaPythonClass]:
    names = ("auth_bytes", "receive", "is_done", "is_authenticated")
    return isinstance(factory, type) and all(hasattr(factory, name) for name in names)


def _adapt(name: str, kind: _KafkaPythonClass) -> MechanismFactory:
    """Return a factory that calls ``kind(host=..., **settings)``, with kafka-python's setting names."""

    def make(config: SaslConfig, host: str) -> SaslMechanism:
        return _KafkaPythonMechanism(name, kind(host=host, **settings_of(config)))

    return make


class _KafkaPythonMechanism(SaslMechanism):
    def __init__(self, name: str, wrapped: _KafkaPython) -> None:
        self.name = name
        self._wrapped = wrapped

    def step(self, challenge: bytes | None) -> bytes | None:
        wrapped = self._wrapped
        if challenge is not None:
            wrapped.receive(challenge)
            if wrapped.is_done():
                if not wrapped.is_authenticated():
                    raise SaslAuthenticationFailedError(f"{self.name} does not believe the broker")
                self.is_complete = True
                return None
        return bytes(wrapped.auth_bytes())
