"""The slow and simple version of FrameReader: join the stream, then cut it."""

from __future__ import annotations


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
