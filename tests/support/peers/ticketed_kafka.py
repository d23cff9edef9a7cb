"""Brokers that accept Kerberos tickets and tokens signed by one key: Apache Kafka and ours."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model.tokens import TokenOf
from peers.apache_kafka import ApacheKafka, free_ports
from security.identity_provider import AUDIENCE, EC_KEY, ISSUER, RSA_KEY, claims, key_set, public_jwk, signed
from security.kerberos_realm import REALM, KerberosRealm, kerberos_realm

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

_MODULES = "org.apache.kafka.common.security"
_VALIDATOR = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
#: OAUTHBEARER configuration of both brokers.
TOKEN_RULES = {
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
}


class SignedTokenOf(TokenOf):
    """A provider of tokens with a signature that the brokers accept."""

    def token(self) -> str:
        self.given += 1
        now_s = SYSTEM_CLOCK.wall_ms() // 1000
        return signed(claims(now_s, sub=self.user, exp=now_s + self.lifetime_s))


class TicketedListener:
    """A SASL_PLAINTEXT listener with GSSAPI and OAUTHBEARER, and one without authentication.

    Attributes
    ----------
    keys_url:
        URL of the file with the keys ``1`` (RSA) and ``ec`` that sign the tokens.
    servers, open_servers:
        Bootstrap servers of the listener with and of the one without authentication.
    """

    def __init__(self, folder: Path, realm: KerberosRealm) -> None:
        keys = folder / "keys.json"
        keys.write_bytes(key_set(public_jwk(RSA_KEY, "1"), public_jwk(EC_KEY, "ec")))
        self.realm = realm
        self.keys_url = keys.as_uri()
        open_port, port = free_ports(2)
        self.open_servers, self.servers = f"127.0.0.1:{open_port}", f"localhost:{port}"

    def properties(self) -> dict[str, str]:
        """Return lines of a broker's ``server.properties``."""
        listeners = f"PLAINTEXT://{self.open_servers},SASL_PLAINTEXT://{self.servers}"
        own = "listener.name.sasl_plaintext"
        return TOKEN_RULES | {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI,OAUTHBEARER",
            "sasl.kerberos.service.name": "kafka",
            "sasl.oauthbearer.jwks.endpoint.url": self.keys_url,
            f"{own}.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
            f"{own}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            f"{own}.gssapi.sasl.jaas.config": krb5_login(self.realm.kafka_keytab, f"kafka/localhost@{REALM}"),
        }

    def settings(self, mechanism: str, lifetime_s: float = 600.0) -> dict[str, Any]:
        """Return a client's settings with kafka-python's names. The environment has Kerberos credentials."""
        found: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
        }
        if mechanism == "OAUTHBEARER":
            found["sasl_oauth_token_provider"] = SignedTokenOf("alice", lifetime_s)
        return found


class TicketedKafka(ApacheKafka):
    """Apache Kafka with that listener. Every client may do everything."""

    def __init__(self, data_dir: Path, listener: TicketedListener) -> None:
        super().__init__(data_dir)
        self.port = int(listener.open_servers.rpartition(":")[2])
        properties = listener.properties()
        properties["listeners"] += f",CONTROLLER://127.0.0.1:{self._controller_port}"
        properties["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
        self._extra |= properties
        self._jvm = (
            *self._jvm,
            f"-Djava.security.krb5.conf={listener.realm.config}",
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={listener.keys_url}",
        )


def krb5_login(keytab: Path, principal: str) -> str:
    """Return the JAAS entry of a broker or of a Java client."""
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}";'
    )


@contextlib.contextmanager
def ticketed_listener() -> Iterator[TicketedListener]:
    """Yield a listener with a Kerberos realm that contains ``alice``. Everything is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="ticketed-") as folder:
        (Path(folder) / "realm").mkdir()
        with kerberos_realm(Path(folder) / "realm") as realm:
            realm.environment["KRB5_CLIENT_KTNAME"] = str(realm.add("alice"))
            yield TicketedListener(Path(folder), realm)


@contextlib.contextmanager
def started_ticketed_kafka(listener: TicketedListener) -> Iterator[TicketedKafka]:
    """Yield Apache Kafka. Its data is deleted at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="ticketed-kafka-") as folder,
        TicketedKafka(Path(folder), listener) as kafka,
    ):
        yield kafka


@contextlib.contextmanager
def started_ticketed_broker(listener: TicketedListener) -> Iterator[EmbeddedBroker]:
    """Yield our broker, which finds the realm in the environment."""
    properties: dict[str, Any] = dict(listener.properties())
    with EmbeddedBroker(log_retention_ms=-1, group_initial_rebalance_delay_ms=0, **properties) as broker:
        yield broker
