"""Encoding and decoding of SCRAM's four messages (RFC 5802, section 7).

A message that violates the grammar raises :class:`~kafkacore.errors.SaslAuthenticationFailedError`. No other
exception is raised, whatever the bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.text import shown

#: Maximum size of a message, in bytes. Messages of real clients and brokers are smaller.
MAX_MESSAGE_BYTES: Final = 16_384
#: Maximum number of parts of a message, including extensions.
MOST_PARTS: Final = 100

_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_EXTENSION: Final = re.compile(r"[A-Za-z]+=[^,]+")
_ITERATIONS: Final = re.compile(r"[1-9][0-9]{0,9}")
_ESCAPE: Final = re.compile(r"=(2C|3D)?")
#: Flags for no channel binding: the client does not support it, or assumes that the server does not.
_GS2_FLAGS: Final = ("n", "y")


class ClientFirst(NamedTuple):
    """The ``gs2-header`` and the ``client-first-message-bare``. Names are not escaped."""

    gs2_header: str
    bare: str
    authorization_id: str
    user: str
    nonce: str
    extensions: dict[str, str]


class ServerFirst(NamedTuple):
    text: str
    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    #: The message without the proof, which is the part that is signed.
    text: str
    channel_binding: bytes
    nonce: str
    proof: bytes


def malformed(message: str, what: str) -> SaslAuthenticationFailedError:
    """Return the error for a malformed message."""
    return SaslAuthenticationFailedError(f"the SCRAM {message} message is malformed: {what}")


# ---- client-first-message ----------------------------------------------------------------------------------


def client_first(user: str, nonce: str) -> ClientFirst:
    return ClientFirst("n,,", f"n={escaped(user)},r={nonce}", "", user, nonce, {})


def parse_client_first(data: bytes) -> ClientFirst:
    name = "client-first"
    text = _decoded(name, data)
    parts = _parts(name, text)
    if len(parts) < 4:
        raise malformed(name, "it has too few parts")
    flag, authorization = parts[:2]
    if flag not in _GS2_FLAGS:
        raise malformed(name, "it requests channel binding, which Kafka does not support")
    authorization_id = "" if not authorization else _unescaped(name, _value(name, "a", authorization))
    user = _unescaped(name, _value(name, "n", parts[2]))
    return ClientFirst(
        gs2_header=f"{flag},{authorization},",
        bare=text[len(flag) + len(authorization) + 2 :],
        authorization_id=authorization_id,
        user=user,
        nonce=_nonce(name, parts[3]),
        extensions=_extensions(name, parts[4:]),
    )


# ---- server-first-message ----------------------------------------------------------------------------------


def server_first(nonce: str, salt: bytes, iterations: int) -> ServerFirst:
    return ServerFirst(f"r={nonce},s={_base64(salt)},i={iterations}", nonce, salt, iterations)


def parse_server_first(data: bytes) -> ServerFirst:
    name = "server-first"
    text = _decoded(name, data)
    parts = _parts(name, text)
    if len(parts) < 3:
        raise malformed(name, "it has too few parts")
    nonce = _nonce(name, parts[0])
    salt = _octets(name, "s", parts[1])
    iterations = _value(name, "i", parts[2])
    if not _ITERATIONS.fullmatch(iterations):
        raise malformed(name, f"i={shown(iterations)} is not a number of iterations")
    _extensions(name, parts[3:])
    return ServerFirst(text, nonce, salt, int(iterations))


# ---- client-final-message ----------------------------------------------------------------------------------


def client_final(gs2_header: str, nonce: str) -> str:
    """Encode the client's final message without the proof."""
    return f"c={_base64(gs2_header.encode('utf-8'))},r={nonce}"


def with_proof(text: str, proof: bytes) -> bytes:
    return f"{text},p={_base64(proof)}".encode("ascii")


def parse_client_final(data: bytes) -> ClientFinal:
    name = "client-final"
    text = _decoded(name, data)
    parts = _parts(name, text)
    if len(parts) < 3:
        raise malformed(name, "it has too few parts")
    channel_binding = _octets(name, "c", parts[0])
    nonce = _nonce(name, parts[1])
    _extensions(name, parts[2:-1])
    proof = _octets(name, "p", parts[-1])
    return ClientFinal(text[: -len(parts[-1]) - 1], channel_binding, nonce, proof)


# ---- server-final-message ----------------------------------------------------------------------------------


def server_final(server_signature: bytes) -> bytes:
    return f"v={_base64(server_signature)}".encode("ascii")


def parse_server_final(data: bytes) -> bytes:
    """Return the server's signature, or raise the error that the server has sent instead."""
    name = "server-final"
    parts = _parts(name, _decoded(name, data))
    if parts[0].startswith("e="):
        raise SaslAuthenticationFailedError(f"the broker rejected the client: {shown(parts[0][2:])}")
    _extensions(name, parts[1:])
    return _octets(name, "v", parts[0])


# ---- Parts of the messages ---------------------------------------------------------------------------------


def escaped(name: str) -> str:
    """Escape a user name as a ``saslname``."""
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(message: str, name: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] is None:
            raise malformed(message, "a name contains = that is not part of =2C or =3D")
        return "," if match[1] == "2C" else "="

    return _ESCAPE.sub(character, name)


def _decoded(message: str, data: bytes) -> str:
    if len(data) > MAX_MESSAGE_BYTES:
        raise malformed(message, f"it has {len(data)} bytes, more than {MAX_MESSAGE_BYTES}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise malformed(message, f"it is not UTF-8 at byte {error.start}") from None
    if "\0" in text:
        raise malformed(message, "it contains a null byte")
    return text


def _parts(message: str, text: str) -> list[str]:
    parts = text.split(",", MOST_PARTS)
    if len(parts) > MOST_PARTS:
        raise malformed(message, f"it has more than {MOST_PARTS} parts")
    return parts


def _value(message: str, name: str, part: str) -> str:
    if part.startswith("m="):
        raise malformed(message, "it has a mandatory extension (m=), and none is supported")
    if not part.startswith(name + "=") or len(part) == len(name) + 1:
        raise malformed(message, f"{name}= is missing or empty")
    return part[len(name) + 1 :]


def _nonce(message: str, part: str) -> str:
    nonce = _value(message, "r", part)
    if not _NONCE.fullmatch(nonce):
        raise malformed(message, "the nonce is not printable")
    return nonce


def _octets(message: str, name: str, part: str) -> bytes:
    value = _value(message, name, part)
    try:
        octets = base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        octets = b""
    # b64decode() ignores surplus bits, so two different texts could decode to the same value.
    if not octets or _base64(octets) != value:
        raise malformed(message, f"{name}= is not Base64")
    return octets


def _extensions(message: str, parts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name == "m" or not _EXTENSION.fullmatch(part) or name in found:
            raise malformed(message, "an extension is malformed, repeated or mandatory (m=)")
        found[name] = value
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
