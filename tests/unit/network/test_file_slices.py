"""Frames that contain file slices: the content arrives unchanged, and no file is closed too early."""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.network import ChannelState, NetworkSend, Selector
from kafkacore.protocol import encode_response
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.testing import VirtualClock
from kafkacore.wire import FileSlice, Writer

HEADER = 4


class Holder:
    """A holder of a file descriptor that counts its releases."""

    def __init__(self) -> None:
        self.count = 0

    def release_hold(self) -> None:
        self.count += 1


class Connection:
    """A selector with one connection, and the socket of its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        # A small send buffer, so that each frame takes many writes.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.peer.setblocking(False)
        self.selector = Selector(VirtualClock())
        self.selector.register("peer", ours)
        self.sent = 0
        self.ended: dict[str, ChannelState] = {}

    def poll(self) -> None:
        self.selector.poll(10)
        self.sent += len(self.selector.completed_sends)
        self.ended |= self.selector.disconnected

    def receive(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer if the connection is closed before."""
        got = b""
        while len(got) < size:
            self.poll()
            try:
                chunk = self.peer.recv(min(8192, size - len(got)))
            except BlockingIOError:
                continue
            if not chunk:
                break
            got += chunk
        return got

    def close(self) -> None:
        self.selector.close_all()
        self.peer.close()


@pytest.fixture
def connection() -> Iterator[Connection]:
    made = Connection()
    yield made
    made.close()


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(5).randbytes(1 << 20)


@pytest.fixture(scope="module")
def fd(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> Iterator[int]:
    path = tmp_path_factory.mktemp("slices") / "file"
    path.write_bytes(content)
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_pieces_of_memory_and_of_files_arrive_in_their_order(
    connection: Connection, fd: int, content: bytes
) -> None:
    holder = Holder()
    pieces = [
        b"header",
        FileSlice(fd, 1000, 300_000, holder),
        b"between",
        b"",
        bytes(2000),
        FileSlice(fd, 0, 1, holder),
        FileSlice(fd, 7, 70_000, holder),
        b"end",
    ]
    expected = b"".join(bytes(piece) for piece in pieces)
    send = NetworkSend("peer", pieces)
    assert send.size_in_bytes == HEADER + len(expected)
    connection.selector.send(send)
    got = connection.receive(send.size_in_bytes)
    assert got == len(expected).to_bytes(HEADER, "big") + expected
    connection.poll()
    assert (connection.sent, holder.count, send.is_completed, send.holds_pieces) == (1, 3, True, False)


def test_frames_before_and_behind_one_with_a_file_are_whole(
    connection: Connection, fd: int, content: bytes
) -> None:
    for number in range(3):
        pieces = (
            [b"%d" % number, FileSlice(fd, number, 200_000, Holder())] if number == 1 else [b"%d" % number]
        )
        connection.selector.send(NetworkSend("peer", pieces))
        expected = b"".join(bytes(piece) for piece in pieces)
        assert connection.receive(HEADER + len(expected))[HEADER:] == expected
        connection.poll()


Piece = st.one_of(st.integers(0, 700), st.tuples(st.integers(0, 500_000), st.integers(1, 20_000)))


@given(st.lists(Piece, max_size=6))
def test_any_mix_of_pieces_arrives_whole(content: bytes, fd: int, made: list[int | tuple[int, int]]) -> None:
    pieces = [
        bytes([index]) * piece if isinstance(piece, int) else FileSlice(fd, *piece, Holder())
        for index, piece in enumerate(made)
    ]
    expected = b"".join(bytes(piece) for piece in pieces)
    assert NetworkSend("peer", pieces).drain()[HEADER:] == expected
    pieces = [
        bytes([index]) * piece if isinstance(piece, int) else FileSlice(fd, *piece, Holder())
        for index, piece in enumerate(made)
    ]
    connection = Connection()
    connection.selector.send(NetworkSend("peer", pieces))
    assert connection.receive(HEADER + len(expected))[HEADER:] == expected
    connection.close()


def test_file_that_ends_too_early_ends_the_connection_without_a_wrong_byte(
    connection: Connection, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content[:100_000])
    fd = os.open(path, os.O_RDONLY)
    holder = Holder()
    connection.selector.send(NetworkSend("peer", [b"header", FileSlice(fd, 0, 200_000, holder), b"end"]))
    got = connection.receive(HEADER + 200_009)
    assert got[HEADER:] == b"header" + content[:100_000]
    (state,) = connection.ended.values()
    assert isinstance(state.error, OSError)
    assert state.error.errno == errno.ENODATA
    assert (holder.count, connection.sent) == (1, 0)
    os.close(fd)


def test_connection_that_ends_half_way_lets_go_of_the_file(connection: Connection, fd: int) -> None:
    holder = Holder()
    connection.selector.send(NetworkSend("peer", [FileSlice(fd, 0, 1 << 20, holder)]))
    connection.poll()
    assert holder.count == 0
    connection.peer.close()
    while not connection.ended:
        connection.poll()
    assert holder.count == 1


def test_slice_lets_go_once_whether_sent_dropped_or_released(fd: int) -> None:
    holders = [Holder(), Holder(), Holder()]
    NetworkSend("peer", [FileSlice(fd, 0, 10, holders[0])]).drain()
    made = FileSlice(fd, 0, 10, holders[1])
    made.release()
    made.release()
    with pytest.raises(ValueError, match="released"):
        NetworkSend("peer", [made])
    FileSlice(fd, 0, 10, holders[2])
    del made
    assert [holder.count for holder in holders] == [1, 1, 1]


@pytest.mark.parametrize(("position", "size"), [(0, 0), (0, -1), (-1, 5)])
def test_what_is_no_part_of_a_file_is_refused(fd: int, position: int, size: int) -> None:
    with pytest.raises(ValueError, match="invalid file slice"):
        FileSlice(fd, position, size, Holder())


def test_slice_is_a_piece_of_a_message_with_its_length_before_it(fd: int, content: bytes) -> None:
    partition = FetchResponse.PartitionData(records=FileSlice(fd, 5, 40_000, Holder()))
    topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    pieces = encode_response(FetchResponse(responses=[topic]), 12, 1)
    partition.records = content[5:40_005]
    assert [type(piece) for piece in pieces] == [bytes, FileSlice, bytes]
    expected = encode_response(FetchResponse(responses=[topic]), 12, 1)
    assert b"".join(bytes(piece) for piece in pieces) == b"".join(expected)
    writer = Writer()
    writer.write_piece(FileSlice(fd, 0, 30_000, Holder()))
    assert writer.size_in_bytes == 30_000
