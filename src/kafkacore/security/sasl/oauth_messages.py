"""Encoding and decoding of the messages of OAUTHBEARER (RFC 7628). Tokens are not validated here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.security.secret import Secret

SEPARATOR: Final = "\x01"
#: The client's reply to an error of the server. The server then ends the exchange.
ERROR_ACKNOWLEDGED: Final = b"\x01"
#: The key of the pair that contains the token. An extension must not have this key.
_AUTH: Final = "auth"

_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
#: Pattern of a GS2 header without channel binding and with an optional authorization id.
_HEADER: Final = re.compile(r"n,(?:a=((?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([-_~+/.a-zA-Z0-9]+=*)")


class InitialResponse(NamedTuple):
    """The client's first message."""

    token: Secret
    authorization_id: str
    extensions: Mapping[str, str]


def build_initial_response(token: Secret, extensions: Mapping[str, str]) -> bytes:
    """Encode the client's first message.

    Raises
    ------
    SaslAuthenticationFailedError
        The token or an extension contains an invalid character. The error message does not contain the token
        or the extension's value.
    """
    if not _TOKEN.fullmatch(token.text()):
        raise SaslAuthenticationFailedError(
            "the token contains characters that are not allowed in a bearer token (RFC 6750)"
        )
    for name, value in extensions.items():
        if not _KEY.fullmatch(name) or name == _AUTH:
            raise SaslAuthenticationFailedError(
                f"invalid name {name!r} of a SASL extension: it must consist of letters and not be 'auth'"
            )
        if not _VALUE.fullmatch(value):
            raise SaslAuthenticationFailedError(
                f"the value of the SASL extension {name} is empty or not printable ASCII"
            )
    pairs = [f"{_AUTH}=Bearer {token.text()}", *(f"{name}={value}" for name, value in extensions.items())]
    return ("n,," + SEPARATOR + SEPARATOR.join(pairs) + SEPARATOR * 2).encode("ascii")


def parse_initial_response(message: bytes) -> InitialResponse:
    """Decode the client's first message.

    Raises
    ------
    SaslAuthenticationFailedError
        The message is malformed.
    """
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError:
        raise SaslAuthenticationFailedError("the first message of OAUTHBEARER is not UTF-8") from None
    header, _, rest = text.partition(SEPARATOR)
    found = _HEADER.fullmatch(header)
    if found is None or not rest.endswith(SEPARATOR):
        raise SaslAuthenticationFailedError("the first message of OAUTHBEARER is malformed")
    authorization_id = (found[1] or "").replace("=2C", ",").replace("=3D", "=")
    pairs = _pairs(rest[:-1])
    bearer = _BEARER.fullmatch(pairs.pop(_AUTH, ""))
    if bearer is None:
        raise SaslAuthenticationFailedError("the first message of OAUTHBEARER has no bearer token")
    return InitialResponse(Secret(bearer[1]), authorization_id, pairs)


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    fields = text.split(SEPARATOR)
    if fields.pop() != "":
        raise SaslAuthenticationFailedError("the first message of OAUTHBEARER is not terminated")
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals or not _KEY.fullmatch(name) or not _VALUE.fullmatch(value) or name in pairs:
            raise SaslAuthenticationFailedError("the first message of OAUTHBEARER has a malformed extension")
        pairs[name] = value
    return pairs
