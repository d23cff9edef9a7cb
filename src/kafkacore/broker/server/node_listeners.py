"""The listening sockets of the nodes."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.listeners import Listener
from kafkacore.broker.listeners.startup_errors import cannot_listen
from kafkacore.broker.topics.cluster_state import BrokerNode, NodeListener

LISTEN_BACKLOG = 512


class OpenListener(NamedTuple):
    """A listener of a node with its socket."""

    node_id: int
    listener: Listener
    socket: socket.socket

    @property
    def id(self) -> str:
        return f"listener-{self.node_id}-{self.listener.name}"

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def open_listeners(config: BrokerConfig, node_ids: Iterable[int]) -> list[OpenListener]:
    """Open the listeners of all nodes.

    The first node listens on the configured ports. The other nodes listen on free ports.

    Raises
    ------
    KafkaError
        The broker cannot listen on an address; no socket stays open.
    """
    found: list[OpenListener] = []
    try:
        for node_id in node_ids:
            for listener in config.node_listeners:
                port = listener.port if node_id == config.node_id else 0
                found.append(OpenListener(node_id, listener, listen(listener.host, port)))
    except BaseException:
        close_listeners(found)
        raise
    return found


def reopen_listeners(config: BrokerConfig, node_id: int, ports: Mapping[str, int]) -> list[OpenListener]:
    """Reopen the listeners of a node on its previous ports, given by listener name."""
    return [
        OpenListener(node_id, listener, listen(listener.host, ports[listener.name]))
        for listener in config.node_listeners
    ]


def close_listeners(listeners: Iterable[OpenListener]) -> None:
    for each in listeners:
        each.socket.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a non-blocking listening socket.

    Raises
    ------
    KafkaError
        The broker cannot listen on the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=LISTEN_BACKLOG)
    except OSError as error:
        raise cannot_listen("the broker", host, port, "--listen {}:0", error) from error
    listener.setblocking(False)
    return listener


def described_nodes(listeners: Iterable[OpenListener], config: BrokerConfig) -> list[BrokerNode]:
    """Return the nodes with their advertised addresses. ``advertised.port`` applies to the first node."""
    by_node: dict[int, list[NodeListener]] = {}
    for node_id, listener, sock in listeners:
        port = int(sock.getsockname()[1])
        advertised = listener.advertised_port if node_id == config.node_id else None
        by_node.setdefault(node_id, []).append(
            NodeListener(listener.name, listener.host, port, listener.advertised_host, advertised or port)
        )
    return [
        BrokerNode(node_id, found[0].advertised_host, found[0].advertised_port, config.rack, tuple(found))
        for node_id, found in by_node.items()
    ]
