"""Listeners for each way of being secure, the same of Apache Kafka and of our broker.

A folder in; certificates, ports, Kafka's properties for them, and the settings by which a client reaches
one of them, out. Does not know: brokers, clients.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS
from model.certificates import Authority
from model.tokens import TokenOf
from peers.apache_kafka import free_ports

from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.security import client_authenticator

#: Listener → its protocol. PLAINTEXT is everybody's: the broker's own, and that of tests which look on.
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    # A client may show a certificate.
    "SSL": "SSL",
    # A client must.
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    # As SASL_SSL, with sessions that a client must renew, and that outlast a test on the slowest machine.
    "REAUTH": "SASL_SSL",
    # As REAUTH, with sessions so short that clients of others renew them, or connect again.
    "SHORT_SESSIONS": "SASL_SSL",
    # Has one mechanism alone.
    "ONLY_SCRAM": "SASL_SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
#: User → password, the same in every mechanism that has passwords.
PASSWORDS = {"admin": "admin-5ecret", "alice": "alice-5ecret", "bob": "bob-5ecret"}
#: They may do everything, as may who is on PLAINTEXT or shows this certificate; nobody else may do anything
#: that no ACL lets them.
SUPER_USERS = ("admin", "alice", "ANONYMOUS", "client")
#: Of a listener: milliseconds until a session ends that has not been renewed.
SESSION_LIFETIMES_MS = {"REAUTH": int(10 * BUDGET_MS), "SHORT_SESSIONS": 2_000}
#: After this time a client of :func:`renew_sessions_early` re-authenticates. Both brokers refuse a client
#: that does so within a second of the last time.
EARLY_MS = 1_100

_MODULES = "org.apache.kafka.common.security"
#: Of tokens that nobody has signed.
BELIEVES_EVERY_TOKEN = (
    f"{_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def _login_modules() -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    return {
        "plain": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "scram-sha-256": scram,
        "scram-sha-512": scram,
        # Tokens that nobody has signed are believed.
        "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="admin";',
    }


def renew_sessions_early(patch: pytest.MonkeyPatch) -> None:
    """Have our clients re-authenticate on the listener REAUTH soon after a session begins.

    By themselves they do so at the end of the session, which a slow machine may miss.
    """
    patch.setattr(client_authenticator, "_SESSION_SHARE", EARLY_MS / SESSION_LIFETIMES_MS["REAUTH"])
    patch.setattr(client_authenticator, "_SESSION_JITTER", 0.0)


class SecureListeners:
    """All of :data:`LISTENERS`, :data:`MECHANISMS` and :data:`PASSWORDS`.

    Attributes
    ----------
    authority:
        Has signed the broker's certificate, and the one of ``client_files``, which is for ``User:client``.
    cafile:
        Path of its certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.cafile = self.authority.write(folder)
        self.client_files = self.authority.issue("client").write(folder, "client")
        self.server_files = self.authority.issue("broker").write(folder, "broker")
        self._ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))

    def port_of(self, listener: str) -> int:
        return self._ports[listener]

    def settings(
        self, listener: str, mechanism: str | None = None, user: str = "alice", password: str | None = None
    ) -> dict[str, Any]:
        """What a client needs for a listener, by the names of kafka-python.

        ``localhost`` is its address, so that host names are judged too.
        """
        settings: dict[str, Any] = {
            "bootstrap_servers": f"localhost:{self._ports[listener]}",
            "security_protocol": LISTENERS[listener],
        }
        if LISTENERS[listener].endswith("SSL"):
            settings["ssl_cafile"] = self.cafile
        if listener == "MTLS":
            settings |= {"ssl_certfile": self.client_files.certificate, "ssl_keyfile": self.client_files.key}
        if mechanism is not None:
            settings["sasl_mechanism"] = mechanism
        if mechanism == "OAUTHBEARER":
            # A session ends with its token at the latest.
            settings["sasl_oauth_token_provider"] = TokenOf(user, SESSION_LIFETIMES_MS["REAUTH"] / 500)
        elif mechanism is not None:
            settings |= {
                "sasl_plain_username": user,
                "sasl_plain_password": password or PASSWORDS[user],
            }
        return settings

    def properties(self) -> dict[str, str]:
        """Lines of a broker's ``server.properties``."""
        addresses = ",".join(f"{name}://localhost:{port}" for name, port in self._ports.items())
        properties = {
            "listeners": addresses,
            "advertised.listeners": addresses,
            "listener.security.protocol.map": ",".join(f"{name}:{at}" for name, at in LISTENERS.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.server_files.both,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.cafile,
            "listener.name.ssl.ssl.client.auth": "requested",
            "listener.name.mtls.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.only_scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        }
        for name, lifetime_ms in SESSION_LIFETIMES_MS.items():
            properties[f"listener.name.{name.lower()}.connections.max.reauth.ms"] = str(lifetime_ms)
        for name, protocol in LISTENERS.items():
            if protocol.startswith("SASL_"):
                for mechanism, module in _login_modules().items():
                    properties[f"listener.name.{name.lower()}.{mechanism}.sasl.jaas.config"] = module
                prefix = f"listener.name.{name.lower()}.oauthbearer."
                properties[prefix + "sasl.server.callback.handler.class"] = BELIEVES_EVERY_TOKEN
        return properties
