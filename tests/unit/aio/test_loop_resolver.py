"""Host names are looked up by the event loop."""

import asyncio
import socket

import pytest
import uvloop

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_resolver import loop_resolver


class Loop:
    """An event loop that only looks up names."""

    def __init__(self):
        self.asked = []

    async def getaddrinfo(self, host, port, **hints):
        self.asked.append((host, port))
        await asyncio.sleep(0)
        if host == b"unknown.invalid":
            raise socket.gaierror("unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", port))]


def test_names_are_looked_up_while_other_tasks_run():
    loop = Loop()
    assert asyncio.run(_greenlets.run(loop_resolver(loop), "broker.invalid", 9092)) == ["10.0.0.7"]
    assert loop.asked == [(b"broker.invalid", 9092)]


def test_unknown_name_raises_an_oserror():
    with pytest.raises(OSError, match="unknown"):
        asyncio.run(_greenlets.run(loop_resolver(Loop()), "unknown.invalid", 9092))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1%lo", "localhost"])
def test_addresses_need_no_lookup(host):
    loop = Loop()
    assert asyncio.run(_greenlets.run(loop_resolver(loop), host, 9092))
    assert loop.asked == []


def test_code_outside_of_a_greenlet_may_resolve_addresses():
    assert loop_resolver(Loop())("127.0.0.1", 9092) == ["127.0.0.1"]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_lookup_of_a_real_loop(factory):
    async def main():
        # A short form of an address, which inet_pton() does not accept.
        return await _greenlets.run(loop_resolver(asyncio.get_running_loop()), "127.1", 9092)

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(main()) == ["127.0.0.1"]
