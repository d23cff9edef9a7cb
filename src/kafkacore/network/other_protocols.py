"""Identify the protocol of a peer that does not use Kafka's protocol, by the first four bytes that it sent.

A TLS record begins with 21 or 22. The first byte of a Kafka frame below 100 MB is 0 to 5.
"""

from __future__ import annotations

_HTTP = (b"HTTP", b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"PRI ")
#: First two bytes of a TLS record: type alert or handshake, and 3, the major version of SSL 3.0 and of TLS.
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")


def spoken_protocol(frame_size: int) -> str | None:
    """Return the protocol of a peer whose first 4 bytes are ``frame_size``; ``None`` if unknown.

    The names are ``"TLS"``, ``"HTTP"`` and ``"SSH"``.
    """
    first = (frame_size & 0xFFFFFFFF).to_bytes(4)
    if first[:2] in _TLS_RECORDS:
        return "TLS"
    if first in _HTTP:
        return "HTTP"
    return "SSH" if first == b"SSH-" else None
