"""The JSON message by which a broker process reports that it is ready."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ReadyLine(TypedDict):
    """The address of a running broker.

    ``listeners`` has the advertised address of each listener and ``bound_ports`` its port, by the listener's
    name.
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
