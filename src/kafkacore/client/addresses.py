"""Parse ``bootstrap_servers`` and resolve host names. All DNS lookups of a client are in this module.

The behaviour is that of Kafka's ``ClientUtils``. The accepted formats are those of kafka-python.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.network._sockets import lookup_name
from kafkacore.settings import SECURITY_PROTOCOLS
from kafkacore.structs import Node

DEFAULT_PORT = 9092
#: Maximum length of a DNS name, in characters. Messages truncate longer names.
MAX_HOST_NAME = 253
_PREFIXES = ", ".join(f"{protocol}://" for protocol in SECURITY_PROTOCOLS)
#: Function that resolves a host and port to IP addresses, in the order in which to try them. It raises
#: OSError if the host cannot be resolved.
Resolver = Callable[[str, int], list[str]]


def parse_bootstrap_servers(servers: Any, security_protocol: str | None = None) -> list[tuple[str, int]]:
    """Return the hosts and ports of ``bootstrap_servers`` without duplicates.

    Parameters
    ----------
    servers:
        ``"host:port,host:port"``, or a list, tuple or set of ``"host:port"``. The default port is 9092. An
        IPv6 address with a port is in brackets. An entry may begin with a security protocol, as in
        ``"SSL://host:port"``.
    security_protocol:
        The setting ``security_protocol``, which an entry must not contradict; ``None`` for no check.

    Raises
    ------
    KafkaConfigurationError
        An entry is invalid, or the list is empty. The message contains the entry.
    """
    if isinstance(servers, str):
        servers = servers.split(",")
    if not isinstance(servers, Collection) or not all(isinstance(server, str) for server in servers):
        raise KafkaConfigurationError(
            f"bootstrap_servers={servers!r}: it must be 'host:port', a comma-separated string, or a list"
        )
    if isinstance(servers, set | frozenset):
        # Sort the set, because its order differs from process to process.
        servers = sorted(servers)
    found = [
        _parse(_without_protocol(server.strip(), security_protocol)) for server in servers if server.strip()
    ]
    if not found:
        raise KafkaConfigurationError("bootstrap_servers is empty: give at least one broker as 'host:port'")
    return list(dict.fromkeys(found))


def _without_protocol(server: str, security_protocol: str | None) -> str:
    """Remove a security protocol, such as ``PLAINTEXT://``, from the start of a server's address."""
    protocol, separator, address = server.partition("://")
    if not separator:
        return server
    if protocol.upper() not in SECURITY_PROTOCOLS:
        raise _refuse(server, f"it must be host:port, with or without one of {_PREFIXES} before it")
    if security_protocol is not None and protocol.upper() != security_protocol:
        raise _refuse(
            server,
            f"it contradicts security_protocol={security_protocol!r}; set security_protocol="
            f"{protocol.upper()!r}, or remove '{protocol}://'",
        )
    return address


def _parse(server: str) -> tuple[str, int]:
    if server.startswith("["):
        host, bracket, rest = server[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _refuse(server, "an IPv6 address with a port must be written as [address]:port")
        return host, _port(server, rest[1:])
    if server.count(":") > 1:
        # Few addresses are IPv6 addresses without a port, and this module takes 1 ms to import.
        import ipaddress

        try:
            return str(ipaddress.IPv6Address(server)), DEFAULT_PORT
        except ValueError:
            raise _refuse(server, "it must be host:port") from None
    host, _, port = server.partition(":")
    if not host or any(not letter.isprintable() or letter in "/ " for letter in host):
        raise _refuse(server, "it must be host:port")
    return host, _port(server, port)


def _port(server: str, port: str) -> int:
    if not port:
        return DEFAULT_PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise _refuse(server, "the port must be a number from 1 to 65535")
    return int(port)


def _refuse(server: str, reason: str) -> KafkaConfigurationError:
    return KafkaConfigurationError(f"bootstrap_servers contains {server!r}: {reason}")


def resolve_host(host: str, port: int) -> list[str]:
    """Return all IP addresses of a host name. The call blocks during the DNS lookup.

    Addresses of the same family as the first address come first.

    Raises
    ------
    OSError
        The name cannot be resolved.
    """
    return resolve_host_by(socket.getaddrinfo, host, port)


def resolve_host_by(getaddrinfo: Callable[..., Any], host: str, port: int) -> list[str]:
    """Do what :func:`resolve_host` does, with a function like ``socket.getaddrinfo``."""
    try:
        found = getaddrinfo(lookup_name(host), port, type=socket.SOCK_STREAM)
    except ValueError as error:
        # Python raises ValueError for an invalid name, such as a name with an empty label or a NUL, but
        # callers expect OSError.
        raise OSError(f"{host[:MAX_HOST_NAME]!r} is not a valid host name") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    family = ":" in addresses[0]
    return sorted(addresses, key=lambda address: (":" in address) != family)


def canonical_hosts(servers: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Replace each server by the canonical names of its addresses.

    One DNS name may resolve to the addresses of all brokers of a cluster.
    """
    found = []
    for host, port in servers:
        found += [(socket.getfqdn(address), port) for address in resolve_host(host, port)]
    return list(dict.fromkeys(found))


def bootstrap_nodes(servers: list[tuple[str, int]]) -> tuple[Node, ...]:
    """Return the servers as nodes with the ids -1, -2 and so on."""
    return tuple(Node(-1 - index, host, port) for index, (host, port) in enumerate(servers))


def is_same_endpoint(node: Node, bootstrap: Node, connected_to: str | None) -> bool:
    """Return whether a bootstrap server has the advertised address of a node.

    Parameters
    ----------
    node:
        Node of the cluster.
    bootstrap:
        Bootstrap server.
    connected_to:
        IP address of the connection to the bootstrap server. The node may advertise this address as its host.
    """
    return node.port == bootstrap.port and node.host in (bootstrap.host, connected_to)
