"""Users, access control entries and authentications of the embedded clusters, for the stand-ins in Java."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from typing import Any

from kafkacore.broker.handlers.services import BrokerServices
from kafkacore.broker.listeners.access import ListenerAccess
from kafkacore.broker.metadata.acls import Acl, checked_acl
from kafkacore.broker.requests._request import RequestContext
from kafkacore.broker.server import socket_server
from kafkacore.broker.server.socket_server import SocketServer
from kafkacore.network import KafkaChannel
from kafkacore.security import KafkaPrincipal
from kafkacore.security.sasl.scram_keys import HASH_NAMES
from kafkacore.testing import EmbeddedCluster

#: Seconds until a change of access control entries must be on disk.
CHANGE_S = 60


def set_kerberos_configuration(path: str | None) -> None:
    """Let the broker use the Kerberos configuration of the JVM, which changes with each test."""
    if path is not None:
        os.environ["KRB5_CONFIG"] = path


def replace_principals(cluster: EmbeddedCluster, principals: Mapping[str, Mapping[str, str]]) -> None:
    """Give the clients of listeners the principals that a class of the test has built.

    Parameters
    ----------
    principals:
        Principals by listener, and by the user name or the SHA-256 of the certificate. The empty key stands
        for all other clients.
    """
    access = server(cluster)._access
    for listener, built in principals.items():
        access[listener].principal = _replaced(access[listener], built)  # type: ignore[method-assign]

    def context(connection: str, node: int, host: str, listener: str, protocol: str) -> RequestContext:
        made = RequestContext(connection, node, host, listener, protocol)
        if "" in principals.get(listener, {}):
            made.principal = KafkaPrincipal.parse(principals[listener][""])
        return made

    # The broker does not determine the principal of a client that need not authenticate.
    socket_server.RequestContext = context  # type: ignore[misc, assignment]


def _replaced(access: ListenerAccess, built: Mapping[str, str]) -> Callable[[KafkaChannel], KafkaPrincipal]:
    original = access.principal

    def principal(channel: KafkaChannel) -> KafkaPrincipal:
        found = original(channel)
        certificate = None if channel.authenticator is not None else access._certificate(channel)
        key = found.name if certificate is None else hashlib.sha256(certificate).hexdigest()
        text = built.get(key, built.get(""))
        return found if text is None else KafkaPrincipal.parse(text)

    return principal


def server(cluster: EmbeddedCluster) -> SocketServer:
    """Return the server of the connections of a running cluster."""
    found = cluster._running()._server
    assert found is not None, "a running broker has it"
    return found


def described_acls(cluster: EmbeddedCluster) -> list[list[Any]]:
    """Return the fields of all access control entries."""
    return cluster._call(lambda: [list(acl) for acl in cluster._services().metadata.acls])


def change_acls(cluster: EmbeddedCluster, acls: Iterable[Sequence[Any]], *, is_removal: bool) -> None:
    """Add or remove access control entries, and return when the change is in effect."""
    services, done, outcomes = cluster._services(), Event(), []

    def on_done(outcome: object) -> None:
        outcomes.append(outcome)
        done.set()

    cluster._call(
        lambda: _change(services, [checked_acl(*acl) for acl in acls], on_done, is_removal=is_removal)
    )
    if not done.wait(CHANGE_S):
        raise TimeoutError(f"the change of access control entries is not on disk after {CHANGE_S} s")
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]


def _change(
    services: BrokerServices, acls: Sequence[Acl], on_done: Callable[[object], None], *, is_removal: bool
) -> None:
    store = services.metadata.acls
    if is_removal:
        services.metadata.change(lambda: (store.removals(acls), None), on_done)
    else:
        services.metadata.change(lambda: (store.additions(acls), None), on_done)


def scram_users(cluster: EmbeddedCluster) -> dict[str, list[str]]:
    """Return the users that have a credential, by SCRAM mechanism."""

    def find() -> dict[str, list[str]]:
        users = cluster._services().metadata.users
        return {
            mechanism: [user for user in users.users() if users.scram(mechanism, user) is not None]
            for mechanism in HASH_NAMES
        }

    return cluster._call(find)


def authentications(cluster: EmbeddedCluster) -> dict[str, float]:
    """Return the numbers of authentications and of expired connections, by Kafka's names of the metrics."""
    found = server(cluster)
    return {
        "successful-authentication-total": found.authentications.succeeded.count,
        "failed-authentication-total": found.failed_authentication_count,
        "successful-reauthentication-total": found.authentications.succeeded_again.count,
        "failed-reauthentication-total": found.authentications.failed_again.count,
        "expired-connections-killed-count": found.expired_count,
    }
