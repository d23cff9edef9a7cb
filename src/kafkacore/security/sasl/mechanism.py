"""The interface of a client's SASL mechanisms, their settings, and the registry of mechanisms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
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

    from kafkacore.security.https import HttpsProxy


class Login(Protocol):
    """State that all authentications of one client share, such as a token that is refreshed."""

    def close(self) -> None: ...


#: Fields of :class:`SaslConfig` whose setting has a name other than ``sasl_`` plus the name of the field.
_OTHER_NAMES: Final = {"username": "sasl_plain_username", "password": "sasl_plain_password"}


def _setting_of(field_name: str) -> str:
    return _OTHER_NAMES.get(field_name, "sasl_" + field_name)


def _default(field_name: str) -> Any:
    return SECURITY_SETTINGS[_setting_of(field_name)].default


@dataclass(frozen=True, kw_only=True)
class SaslConfig:
    """The checked ``sasl_`` settings of a client. Each field is the setting of the same name.

    Attributes
    ----------
    mechanism:
        Registered name of the mechanism, such as ``SCRAM-SHA-512``.
    is_encrypted:
        Whether the connections use TLS.
    login:
        State for all authentications of the client, which the mechanism's ``prepare`` function has created.
        It is not a setting.
    proxy:
        Proxy through which tokens are fetched. It is not a setting, but is created from ``proxy_url``.
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
    proxy: HttpsProxy | None = field(default=None, repr=False)

    @classmethod
    def from_client_config(cls, config: Mapping[str, Any], proxy: HttpsProxy | None = None) -> SaslConfig:
        """Create the settings from the result of :func:`kafkacore.client.config.resolve`.

        Raises
        ------
        KafkaConfigurationError
            The mechanism is missing or unknown, or one of the settings that it needs is missing.
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
        own = cls(**values, is_encrypted=config["security_protocol"] == "SASL_SSL", proxy=proxy)
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
        """Stop background work of the client, such as the refreshing of a token."""
        if self.login is not None:
            self.login.close()


def settings_of(config: SaslConfig) -> dict[str, object]:
    """Return the settings by kafka-python's names, with secrets revealed, for a user-written mechanism."""
    values = {_setting_of(one.name): getattr(config, one.name) for one in fields(config)}
    encrypted = values.pop("sasl_is_encrypted")
    del values["sasl_login"], values["sasl_proxy"]
    values = {name: value.text() if isinstance(value, Secret) else value for name, value in values.items()}
    return values | {"security_protocol": "SASL_SSL" if encrypted else "SASL_PLAINTEXT"}


class SaslMechanism(ABC):
    """One authentication by one mechanism, on the client.

    Each authentication and re-authentication creates a new instance.

    Attributes
    ----------
    name:
        Name of the mechanism, as it is sent to the broker.
    is_complete:
        Whether the mechanism has finished and accepts the server.
    refusal:
        The error that the server has reported in a challenge, before its final response. Empty if the server
        has reported no error.
    """

    name: str = ""
    is_complete: bool = False
    refusal: str = ""

    @abstractmethod
    def step(self, challenge: bytes | None) -> bytes | None:
        """Process a challenge of the server and return the response.

        Parameters
        ----------
        challenge:
            The challenge. ``None`` in the first call, which returns the initial response.

        Returns
        -------
        bytes or None
            The response, or ``None`` if there is nothing more to send.

        Raises
        ------
        SaslAuthenticationFailedError
            Authentication failed. No other exception may be raised, whatever the bytes.
        """

    def close(self) -> None:  # noqa: B027
        """Release resources outside of Python."""


#: Function that takes the settings and the broker's host, and creates the mechanism for one authentication.
MechanismFactory = Callable[[SaslConfig, str], SaslMechanism]
#: Function that raises :class:`~kafkacore.errors.KafkaConfigurationError` if a needed setting is missing.
MechanismCheck = Callable[[SaslConfig], object]
#: Function that returns the settings for all mechanisms of one client. It is called on the thread that
#: creates the client, so it may log in and block.
MechanismPreparation = Callable[[SaslConfig], SaslConfig]


class ClientMechanism(NamedTuple):
    """The functions of a mechanism on the client, as :func:`register_sasl_mechanism` describes them."""

    factory: MechanismFactory
    check: MechanismCheck | None = None
    prepare: MechanismPreparation | None = None


#: Built-in mechanism → module of this package whose ``CLIENT`` is the mechanism. A module is imported when
#: the first client of its mechanism is created, because all of them take longer to import than a client.
_BUILT_IN: Final = {
    "AWS_MSK_IAM": "aws_msk_iam",
    "GSSAPI": "gssapi",
    "OAUTHBEARER": "oauthbearer",
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram",
    "SCRAM-SHA-512": "scram",
}
#: Mechanisms of users, and built-in mechanisms whose module is imported.
_registry: dict[str, ClientMechanism] = {}


def register_sasl_mechanism(
    name: str,
    factory: MechanismFactory,
    overwrite: bool = False,
    *,
    check: MechanismCheck | None = None,
    prepare: MechanismPreparation | None = None,
) -> None:
    """Register a mechanism, so that all clients of this process accept it as ``sasl_mechanism``.

    Parameters
    ----------
    name:
        Name of the mechanism, as it is sent to the broker.
    factory:
        Function ``(config, host) -> SaslMechanism``. It is called on the network thread for each
        authentication, so it must not block for long. A class with kafka-python's interface (``auth_bytes``,
        ``receive``, ``is_done`` and ``is_authenticated``) is accepted too. Its constructor gets ``host`` and
        the ``sasl_`` settings as keyword arguments.
    overwrite:
        Whether to replace a mechanism that is already registered under this name.
    check:
        Function that is called with the settings when a client is created. It raises an exception if the
        settings are invalid.
    prepare:
        Function that is called with the settings when a client is created. It returns the settings that are
        passed to ``factory``.

    Raises
    ------
    ValueError
        The name is already registered, and ``overwrite`` is false.
    """
    if name in sasl_mechanisms() and not overwrite:
        raise ValueError(
            f"the SASL mechanism {name} is already registered; pass overwrite=True to replace it"
        )
    if _is_kafka_python_class(factory):
        factory = _adapt(name, factory)
    _registry[name] = ClientMechanism(factory, check, prepare)


def sasl_mechanisms() -> list[str]:
    """Return the names of all registered mechanisms."""
    return sorted({*_BUILT_IN, *_registry})


def make_mechanism(config: SaslConfig, host: str) -> SaslMechanism:
    """Create the configured mechanism for one authentication with the broker at ``host``."""
    return _entry(config.mechanism).factory(config, host)


def _entry(name: str) -> ClientMechanism:
    if name not in _registry:
        if name not in _BUILT_IN:
            raise UnsupportedSaslMechanismError(
                f"the SASL mechanism {name} is not registered in this process"
            )
        _registry[name] = import_module(f"kafkacore.security.sasl.{_BUILT_IN[name]}").CLIENT
    return _registry[name]


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
                    raise SaslAuthenticationFailedError(f"{self.name}: the client rejected the broker")
                self.is_complete = True
                return None
        return bytes(wrapped.auth_bytes())
