"""SASL of a listener: the factories of its mechanisms.

The rules are those of Kafka's ``SaslChannelBuilder`` and ``JaasContext``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kafkacore.broker.config.listener_keys import JAAS, LISTENER_PREFIX, SCRAM_MECHANISMS
from kafkacore.broker.config.listeners import Listener
from kafkacore.broker.listeners.user_credentials import RunTimeUsers, UserCredentials
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.security import Secret
from kafkacore.security.jaas import JaasEntry
from kafkacore.security.sasl.gssapi import GssapiServer
from kafkacore.security.sasl.plain import PlainServer
from kafkacore.security.sasl.scram import ScramServer
from kafkacore.security.sasl.server_oauthbearer import HANDLER, OAUTHBEARER, OAuthBearerServer
from kafkacore.security.server_authenticator import ServerSaslSettings
from kafkacore.security.server_mechanism import ServerMechanismFactory

logger = logger_of(__name__)

#: Kafka's login modules by mechanism.
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    **dict.fromkeys(SCRAM_MECHANISMS, "ScramLoginModule"),
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
}
_PLAIN_USER: Final = "user_"


class ListenerSasl:
    """SASL of one listener. It is created at startup and closed with the broker.

    Parameters
    ----------
    listener:
        A listener with SASL.
    users:
        Passwords of the users of all listeners, by user name.
    logged_users:
        Returns the users stored in the metadata log.
    failure_delay_ms:
        ``connection.failed.authentication.delay.ms``.
    salt_key:
        Key from which the salts of SCRAM are derived. The key is stored in the data folder.

    Raises
    ------
    KafkaError
        The configuration of a mechanism is incomplete; the message says what is missing.
    """

    def __init__(
        self,
        listener: Listener,
        users: Mapping[str, Secret],
        logged_users: Callable[[], RunTimeUsers | None],
        failure_delay_ms: float,
        clock: Clock,
        salt_key: bytes,
    ) -> None:
        self._listener = listener
        self._salt_key = salt_key
        self._clock = clock
        self._closers: list[Callable[[], None]] = []
        plain = self._jaas("PLAIN")
        named = plain.options if plain is not None else {}
        self._credentials = UserCredentials(
            users,
            {
                key.removeprefix(_PLAIN_USER): value
                for key, value in named.items()
                if key.startswith(_PLAIN_USER)
            },
            logged_users,
            salt_key,
        )
        self.settings = ServerSaslSettings(
            mechanisms={name: self._factory(name) for name in listener.mechanisms},
            max_reauth_ms={
                name: float(str(listener.of_mechanism(name)["connections.max.reauth.ms"]))
                for name in listener.mechanisms
            },
            failure_delay_ms=failure_delay_ms,
            max_receive_size=listener.number("sasl.server.max.receive.size"),
        )

    def warn_without_users(self) -> None:
        """Log a warning if clients need a password to log in and no user exists."""
        by_password = {"PLAIN", *SCRAM_MECHANISMS}.intersection(self._listener.mechanisms)
        if by_password == set(self._listener.mechanisms) and not self._credentials.has_users(by_password):
            logger.warning(
                "listener %s: no client can log in, because no user is configured: add one with --user NAME, "
                "--users-file FILE or sasl.user.NAME=PASSWORD",
                self._listener.name,
            )

    def close(self) -> None:
        """Close the resources of the mechanisms."""
        for close in self._closers:
            close()
        self._closers.clear()

    def _factory(self, mechanism: str) -> ServerMechanismFactory:
        if mechanism != OAUTHBEARER and self._listener.by_mechanism.get(mechanism, {}).get(HANDLER):
            # Without the class, this broker would admit other users than Kafka.
            raise KafkaConfigurationError(
                f"{self._place(mechanism, HANDLER)} is not supported, because it names a Java class and this "
                "broker does not run Java: remove it and configure the users"
            )
        if mechanism == "PLAIN":
            return partial(PlainServer, self._credentials)
        if mechanism in SCRAM_MECHANISMS:
            self._jaas(mechanism)
            return partial(ScramServer, mechanism, self._credentials, salt_key=self._salt_key)
        made = self._oauthbearer() if mechanism == "OAUTHBEARER" else self._gssapi()
        self._closers.append(made.close)
        return made

    def _oauthbearer(self) -> OAuthBearerServer:
        properties = {name: str(value) for name, value in self._of_mechanism("OAUTHBEARER").items()}
        entry = self._jaas("OAUTHBEARER")
        options = {} if entry is None else {name: value.text() for name, value in entry.options.items()}
        return OAuthBearerServer(properties, options, self._clock)

    def _of_mechanism(self, mechanism: str) -> Mapping[str, Any]:
        found = self._listener.of_mechanism(mechanism)
        return {name: value for name, value in found.items() if name.startswith("sasl.")}

    def _gssapi(self) -> GssapiServer:
        entry = self._jaas("GSSAPI")
        principal, keytab = (None, None) if entry is None else (entry.text("principal"), entry.text("keyTab"))
        if principal is None or keytab is None:
            raise KafkaConfigurationError(
                f"{self._place('GSSAPI')} must give the broker's principal and its keytab file: "
                'Krb5LoginModule required principal="kafka/host.example@REALM" keyTab="FILE";'
            )
        service = str(self._of_mechanism("GSSAPI").get("sasl.kerberos.service.name", ""))
        if service and service != principal.partition("/")[0]:
            raise KafkaConfigurationError(
                f"{self._place('GSSAPI')} has the principal {principal}, which does not match "
                f"sasl.kerberos.service.name={service}: change one of them"
            )
        rules = str(self._of_mechanism("GSSAPI")["sasl.kerberos.principal.to.local.rules"])
        return GssapiServer(principal, keytab, rules)

    def _jaas(self, mechanism: str) -> JaasEntry | None:
        """Return the login module of a mechanism. Only the module that Kafka uses for it is accepted."""
        entry = self._listener.jaas.get(mechanism)
        if entry is not None and entry.module != _MODULES[mechanism]:
            raise KafkaConfigurationError(f"{self._place(mechanism)} must name {_MODULES[mechanism]}")
        return entry

    def _place(self, mechanism: str, name: str = JAAS) -> str:
        return f"{LISTENER_PREFIX}{self._listener.name.lower()}.{mechanism.lower()}.{name}"
