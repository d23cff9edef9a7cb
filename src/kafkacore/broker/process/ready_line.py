"""The JSON message by which a broker process reports that it is ready."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ReadyLine(TypedDict):
    """The address of a running broker.

    Both dictionaries have the names of the listeners as keys: ``listeners`` contains the advertised
    addresses, and ``bound_ports`` the ports to which the listeners are bound.
    """

    event: str
    bootstrap_servers: str
    host: str
    port: int
    pid: int
    data_dir: str
    cluster_id: str
    listeners: dict[str, str]
    bound_ports: dict[str, int]
    status_url: NotRequired[str]
    ssl_cafile: NotRequired[str]
