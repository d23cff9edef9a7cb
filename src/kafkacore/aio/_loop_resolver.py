"""Resolve host names without blocking the event loop."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from kafkacore.aio import _greenlets
from kafkacore.client.addresses import Resolver, resolve_host, resolve_host_by


def loop_resolver(loop: asyncio.AbstractEventLoop) -> Resolver:
    """Return a function like ``resolve_host`` that lets the tasks of ``loop`` run during the lookup.

    As in asyncio's own connections, the loop's default executor looks up the names, because the C library can
    only do that blocking. IP addresses and ``localhost`` need no lookup and no thread.
    """

    def getaddrinfo(host: str, port: int, **hints: Any) -> Any:
        return _greenlets.wait(loop.getaddrinfo(host, port, **hints))

    def resolve(host: str, port: int) -> list[str]:
        if not _greenlets.can_wait() or host == "localhost" or _is_address(host):
            return resolve_host(host, port)
        return resolve_host_by(getaddrinfo, host, port)

    return resolve


def _is_address(host: str) -> bool:
    return _parses(socket.AF_INET, host) or _parses(socket.AF_INET6, host.partition("%")[0])


def _parses(family: int, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True
