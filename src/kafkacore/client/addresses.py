"""Addresses: what the user calls the brokers in, hosts, ports and IP addresses out. Only here is DNS asked.

Source of the behaviour: Kafka's ``ClientUtils``; the accepted spellings are kafka-python's.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import Node

DEFAULT_PORT = 9092
#: Letters of a name that DNS knows; one that is longer is not shown whole.
MAX_HOST_NAME = 253
#: Host and port in, IP addresses out in the order to be tried; OSError when there are none.
Resolver = Callable[[str, int], list[str]]


def parse_bootstrap_servers(servers: Any) -> list[tuple[str, int]]:
    """Hosts and ports of ``bootstrap_servers``.

    Parameters
    ----------
    servers:
        ``"host:port,host:port"``, or a list of ``"host:port"``. Without a port it is 9092; an IPv6 address
        with a port is written in brackets.

    Raises
    ------
    KafkaConfigurationError
        With the entry that is wrong, and why.
    """
    if isinstance(servers, str):
        servers = servers.split(",")
    if not isinstance(servers, Sequence) or not all(isinstance(server, str) for server in servers):
        raise KafkaConfigurationError(
            f"bootstrap_servers={servers!r}: it must be 'host:port', several with commas, or a list of them"
        )
    found = [_parse(server.strip()) for server in servers if server.strip()]
    if not found:
        raise KafkaConfigurationError("bootstrap_servers is empty; name at least one broker, as 'host:port'")
    return list(dict.fromkeys(found))


def _parse(server: str) -> tuple[str, int]:
    if server.startswith("["):
        host, bracket, rest = server[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _refuse(server, "an IPv6 address with a port is written [address]:port")
        return host, _port(server, rest[1:])
    if server.count(":") > 1:
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
    return KafkaConfigurationError(f"bootstrap_servers has {server!r}: {reason}")


def resolve_host(host: str, port: int) -> list[str]:
    """All IP addresses of a name, each family's together, the first's first; blocks for the resolver.

    Raises
    ------
    OSError
        When there are none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except ValueError as error:
        # What no name can be (an empty label, a NUL, one that is too long), in a form that callers expect.
        raise OSError(f"{host[:MAX_HOST_NAME]!r} is no host name") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    family = ":" in addresses[0]
    return sorted(addresses, key=lambda address: (":" in address) != family)


def canonical_hosts(servers: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each server as often as it has addresses, by their canonical names (one name may stand for all
    brokers).
    """
    found = []
    for host, port in servers:
        found += [(socket.getfqdn(address), port) for address in resolve_host(host, port)]
    return list(dict.fromkeys(found))


def bootstrap_nodes(servers: list[tuple[str, int]]) -> tuple[Node, ...]:
    """Nodes with ids -1, -2 …, to be asked who the real ones are."""
    return tuple(Node(-1 - index, host, port) for index, (host, port) in enumerate(servers))


def is_same_endpoint(node: Node, bootstrap: Node, connected_to: str | None) -> bool:
    """Whether the connection to ``bootstrap`` leads where ``node`` says that it listens.

    Parameters
    ----------
    connected_to:
        IP address of that connection, which a broker may have for its host.
    """
    return node.port == bootstrap.port and node.host in (bootstrap.host, connected_to)
