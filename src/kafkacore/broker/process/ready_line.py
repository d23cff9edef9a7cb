"""The line of JSON by which a broker's process reports that it is ready."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ReadyLine(TypedDict):
    """Where the broker is. ``listeners``: name → address for clients; ``bound_ports``: name → port."""

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
