"""Streams of frames: the slow and simple version of FrameReader, and a wait for the bytes of a stream."""

from __future__ import annotations

import socket

from eventually import eventually


def await_bytes(sock: socket.socket, count: int) -> None:
    """Wait until so many bytes have arrived at a non-blocking socket, and leave them there.

    A busy kernel delivers on loopback later than the system call of the sender returns.
    """

    def have_arrived() -> bool:
        try:
            return len(sock.recv(count, socket.MSG_PEEK)) == count
        except BlockingIOError:
            return False

    eventually(have_arrived)


def frames_of(stream: bytes) -> tuple[list[bytes], bytes]:
    """Cut a stream of 4-byte sizes and bodies into whole frames, and return them with the remaining bytes."""
    frames = []
    while len(stream) >= 4:
        size = int.from_bytes(stream[:4], "big", signed=True)
        if len(stream) - 4 < size:
            break
        frames.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return frames, stream


def stream_of(frames: list[bytes]) -> bytes:
    """Return the encoded bytes of the frames."""
    return b"".join(len(frame).to_bytes(4, "big", signed=True) + frame for frame in frames)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """Split ``stream`` at ``places``."""
    ends = sorted({place % (len(stream) + 1) for place in places} | {len(stream)})
    return [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]
