"""A thousand hostile connections beside one well-behaved client.

The broker's memory use must not grow, and the client must be served as before. Its response times are
reported, not checked.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from model.dose import note
from model.hostile_connections import MIB, Good, connect, frame, is_closed, memory_of, p99

from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.structs import INT32_MAX
from kafkacore.testing.embedded_broker import EmbeddedBroker

CONNECTIONS = 1000
MOST_GROWTH = 16 << 20


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    # Unfinished frames stay unfinished for as long as a test takes on this machine.
    with EmbeddedBroker(num_partitions=1, connection_setup_timeout_ms=INT32_MAX) as started:
        yield started
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


#: First bytes of a connection, and whether the broker closes the connection after reading them.
FIRST_BYTES: dict[str, tuple[bytes, bool]] = {
    "2 GiB": (frame(2**31 - 1, b"x" * 10), True),
    "a negative size": (frame(-1, b"x" * 10), True),
    "one byte above the limit": (frame(100 * MIB + 1, b"x" * 10), True),
    "TLS (KAFKA-4090)": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", True),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
    "nothing": (frame(0), True),
    "an invalid header": (frame(3, b"abc"), True),
    "exactly the limit": (frame(100 * MIB, b"x" * 10), False),
    "a megabyte": (frame(MIB, b"x" * 10), False),
    "a part of a size": (b"\0\0", False),
}


@pytest.mark.parametrize("what", FIRST_BYTES)
def test_thousand_connections_that_claim_much_take_little_and_stop_nobody(
    broker: EmbeddedBroker, what: str
) -> None:
    first_bytes, hangs_up = FIRST_BYTES[what]
    with Good(broker.bootstrap_servers) as good, ExitStack() as stack:
        before_ms = good.times()
        memory = memory_of(broker.pid)
        hostile = [stack.enter_context(connect(broker)) for _ in range(CONNECTIONS)]
        for each in hostile:
            each.sendall(first_bytes)
        after_ms = good.times()
        if hangs_up:
            assert all(is_closed(each) for each in hostile)
        grown = memory_of(broker.pid) - memory
    note(
        f"{CONNECTIONS} connections that claim {what}",
        grown_by=f"{grown / MIB:.1f} MiB", p99_before=p99(before_ms), p99_beside_them=p99(after_ms),
    )  # fmt: skip
    assert grown <= MOST_GROWTH


def drip(hostile: list[socket.socket], at: int) -> None:
    """Send one more byte of each connection's unfinished frame."""
    for each in hostile:
        each.sendall(bytes([at]))


def test_thousand_connections_that_send_a_byte_now_and_then_stop_nobody(broker: EmbeddedBroker) -> None:
    with Good(broker.bootstrap_servers) as good, ExitStack() as stack:
        before_ms = good.times()
        memory = memory_of(broker.pid)
        hostile = [stack.enter_context(connect(broker)) for _ in range(CONNECTIONS)]
        took: list[float] = []
        for each in hostile:
            each.sendall(frame(100_000))
        for turn in range(10):
            drip(hostile, turn)
            took += good.times(60)
        grown = memory_of(broker.pid) - memory
    note(
        f"{CONNECTIONS} slow connections",
        grown_by=f"{grown / MIB:.1f} MiB", p99_before=p99(before_ms), p99_beside_them=p99(took),
    )  # fmt: skip
    assert grown <= MOST_GROWTH


def test_large_request_comes_through_beside_those_who_claim_all_memory(broker: EmbeddedBroker) -> None:
    names = [MetadataRequest.MetadataRequestTopic(name=f"{number:0240d}") for number in range(5_000)]
    with Good(broker.bootstrap_servers) as good, ExitStack() as stack:
        for size in (100, 100, 50, 5):
            stack.enter_context(connect(broker)).sendall(frame(size * MIB, b"x"))
        # By now the broker has read the announced sizes, and some of these requests are waiting for memory.
        good.times(20)
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        assert len(good.ask(request, 12).topics) == 5_000
        assert len(good.times(50)) == 50


def test_connections_from_one_address_are_bounded() -> None:
    with EmbeddedBroker(max_connections_per_ip=50) as broker, ExitStack() as stack:
        good = stack.enter_context(Good(broker.bootstrap_servers))
        hostile = [stack.enter_context(connect(broker)) for _ in range(200)]
        # The broker keeps the admitted connections open, because they have sent nothing invalid yet.
        refused = sum(is_closed(each) for each in hostile[49:])
        assert refused == 151
        assert len(good.times(10)) == 10
