"""Name the protocol of a peer that does not speak Kafka, from the first four bytes read as a frame size.

A TLS record begins with 21 or 22. The first byte of a Kafka frame below 100 MB is 0 to 5.
"""

from __future__ import annotations

_HTTP = (b"HTTP", b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"PRI ")
#: Alert, handshake; then the major version of all SSL and TLS there is.
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")


def spoken_protocol(frame_size: int) -> str | None:
    """``"TLS"``, ``"HTTP"``, ``"SSH"``, or ``None`` for none that is known."""
    first = (frame_size & 0xFFFFFFFF).to_bytes(4)
    if first[:2] in _TLS_RECORDS:
        return "TLS"
    if first in _HTTP:
        return "HTTP"
    return "SSH" if first == b"SSH-" else None
