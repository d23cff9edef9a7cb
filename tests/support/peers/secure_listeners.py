"""Listeners for each security protocol, equal for Apache Kafka and our broker."""

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

#: Protocol of each listener. PLAINTEXT needs no authentication; the broker and observing tests use it.
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    # Client certificates are optional.
    "SSL": "SSL",
    # Client certificates are required.
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    # Like SASL_SSL, with sessions that a client must renew, and that outlast a test on the slowest machine.
    "REAUTH": "SASL_SSL",
    # Like REAUTH, with sessions so short that other clients renew them, or reconnect.
    "SHORT_SESSIONS": "SASL_SSL",
    # Has a single mechanism.
    "ONLY_SCRAM": "SASL_SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
#: Password of each user, the same for every mechanism with passwords.
PASSWORDS = {"admin": "admin-5ecret", "alice": "alice-5ecret", "bob": "bob-5ecret"}
#: These users may do everything, as may clients on PLAINTEXT or with this certificate. Other users need ACLs.
SUPER_USERS = ("admin", "alice", "ANONYMOUS", "client")
#: Milliseconds until a session that was not renewed ends, by listener.
SESSION_LIFETIMES_MS = {"REAUTH": int(10 * BUDGET_MS), "SHORT_SESSIONS": 2_000}
#: Milliseconds after which a client of :func:`renew_sessions_early` re-authenticates. Both brokers reject a
#: client that re-authenticates within one second.
EARLY_MS = 1_100

_MODULES = "org.apache.kafka.common.security"
#: Configuration that accepts unsigned tokens.
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
        # Accepts unsigned tokens.
        "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="admin";',
    }


def renew_sessions_early(patch: pytest.MonkeyPatch) -> None:
    """Let our clients re-authenticate on the listener REAUTH soon after a session begins.

    By default they do so at the end of the session, which a slow machine may miss.
    """
    patch.setattr(client_authenticator, "_SESSION_SHARE", EARLY_MS / SESSION_LIFETIMES_MS["REAUTH"])
    patch.setattr(client_authenticator, "_SESSION_JITTER", 0.0)


class SecureListeners:
    """All of :data:`LISTENERS`, :data:`MECHANISMS` and :data:`PASSWORDS`.

    Attributes
    ----------
    authority:
        Authority that signed the broker's certificate and that of ``client_files``, which is for
        ``User:client``.
    cafile:
        Path of the authority's certificate.
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
        """Return a client's settings for a listener, with kafka-python's names.

        The address is ``localhost``, so that host names are verified too.
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
        """Return lines of a broker's ``server.properties``."""
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
