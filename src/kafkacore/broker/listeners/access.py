"""Access to a listener: its TLS, its authentication and its connection limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.listeners import Listener
from kafkacore.broker.listeners.certificate_names import PrincipalRules, distinguished_name
from kafkacore.broker.listeners.connection_limits import ConnectionRate, ListenerLimit
from kafkacore.broker.listeners.sasl import ListenerSasl
from kafkacore.broker.listeners.tls import ListenerTls, server_context
from kafkacore.broker.listeners.user_credentials import RunTimeUsers
from kafkacore.clock import Clock
from kafkacore.errors import SslAuthenticationError
from kafkacore.network import ChannelBuilder, KafkaChannel
from kafkacore.security import ANONYMOUS, KafkaPrincipal
from kafkacore.security.server_authenticator import AnswerApiVersions, SaslServerAuthenticator


class ListenerAccess:
    """TLS, SASL and connection limits of all listeners that have the same name, on all nodes.

    Only the network thread uses it.

    Parameters
    ----------
    logged_users:
        Returns the users stored in the metadata log.
    salt_key:
        Key from which the salts of SCRAM are derived.

    Raises
    ------
    KafkaError
        The listener's keys, certificates or mechanisms are invalid.
    """

    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        clock: Clock,
        logged_users: Callable[[], RunTimeUsers | None] = lambda: None,
        salt_key: bytes = b"",
    ) -> None:
        self.listener = listener
        self._clock = clock
        self.limit = ListenerLimit(listener.name, listener.max_connections)
        self.rate = ConnectionRate(listener.number("max.connection.creation.rate"))
        self.tls = ListenerTls(listener.settings, clock) if listener.has_tls else None
        self.sasl = None
        if listener.has_sasl:
            delay_ms = float(config.connection_failed_authentication_delay_ms)
            self.sasl = ListenerSasl(listener, config.users, logged_users, delay_ms, clock, salt_key)
        self._rules = PrincipalRules(listener.text("ssl.principal.mapping.rules") or "")

    @property
    def is_open(self) -> bool:
        """Whether clients need neither TLS nor SASL before their first request."""
        return self.tls is None and self.sasl is None

    def builder(self, answer_api_versions: AnswerApiVersions) -> ChannelBuilder:
        """Return the channel builder for one connection."""
        tls, sasl = self.tls, self.sasl

        def authenticator(host: str) -> SaslServerAuthenticator:
            assert sasl is not None
            return SaslServerAuthenticator(sasl.settings, answer_api_versions, self._clock)

        return ChannelBuilder(
            is_server=True,
            context=None if tls is None else tls.context,
            authenticator=None if sasl is None else authenticator,
        )

    def principal(self, channel: KafkaChannel) -> KafkaPrincipal:
        """Return the principal of the client of a channel that is ready.

        Raises
        ------
        SslAuthenticationError
            The certificate cannot be read, or ``ssl.principal.mapping.rules`` does not match its subject.
        """
        if channel.authenticator is not None:
            return channel.authenticator.principal  # type: ignore[no-any-return]
        certificate = self._certificate(channel)
        if certificate is None:
            return ANONYMOUS
        name = distinguished_name(certificate)
        user = self._rules.user(name)
        if user is None:
            raise SslAuthenticationError(
                f"no rule of ssl.principal.mapping.rules matches the certificate's subject {name}"
            )
        return KafkaPrincipal.user(user)

    def _certificate(self, channel: KafkaChannel) -> bytes | None:
        if self.listener.settings["ssl.client.auth"] == "none":
            return None
        transport: Any = channel.transport
        return transport.engine.getpeercert(True)  # type: ignore[no-any-return]

    def check(self, listener: Listener) -> None:
        """Check changed settings of this listener.

        Raises
        ------
        KafkaConfigurationError
            The settings are invalid; the message gives the reason.
        """
        if self.tls is not None:
            server_context(listener.settings)

    def change(self, listener: Listener) -> None:
        """Apply changed settings, which were checked before, to future connections."""
        self.limit.max_connections = listener.max_connections
        self.rate.per_second = listener.number("max.connection.creation.rate")
        if self.tls is not None and listener.settings != self.listener.settings:
            self.tls.change(listener.settings)
        self.listener = listener

    def close(self) -> None:
        """Close the resources of the listener's SASL mechanisms."""
        if self.sasl is not None:
            self.sasl.close()
