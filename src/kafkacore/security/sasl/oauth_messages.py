"""The messages of OAUTHBEARER (RFC 7628), both ends: a token and extensions to bytes and back.

Does not know: whether a token is any good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.security.secret import Secret

SEPARATOR: Final = "\x01"
#: What a client answers to the server's error; the server ends the exchange then.
ERROR_ACKNOWLEDGED: Final = b"\x01"
#: The key of the token among the extensions.
_AUTH: Final = "auth"

_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
#: No channel binding, and perhaps who it is for.
_HEADER: Final = re.compile(r"n,(?:a=((?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([-_~+/.a-zA-Z0-9]+=*)")


class InitialResponse(NamedTuple):
    """The client's first message."""

    token: Secret
    authorization_id: str
    extensions: Mapping[str, str]


def build_initial_response(token: Secret, extensions: Mapping[str, str]) -> bytes:
    """The client's first message.

    Raises
    ------
    SaslAuthenticationFailedError
        The token or an extension has a character that may not be in it. No value is in the message.
    """
    if not _TOKEN.fullmatch(token.text()):
        raise SaslAuthenticationFailedError("the token has characters that no bearer token has (RFC 6750)")
    for name, value in extensions.items():
        if not _KEY.fullmatch(name) or name == _AUTH:
            raise SaslAuthenticationFailedError(
                f"{name!r} is no name of an extension: it must be of letters, not auth"
            )
        if not _VALUE.fullmatch(value):
            raise SaslAuthenticationFailedError(
                f"the value of the extension {name} is empty or not printable ASCII"
            )
    pairs = [f"{_AUTH}=Bearer {token.text()}", *(f"{name}={value}" for name, value in extensions.items())]
    return ("n,," + SEPARATOR + SEPARATOR.join(pairs) + SEPARATOR * 2).encode("ascii")


def parse_initial_response(message: bytes) -> InitialResponse:
    """The server's view of it.

    Raises
    ------
    SaslAuthenticationFailedError
        It is none.
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
        raise SaslAuthenticationFailedError("the first message of OAUTHBEARER does not end as it must")
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals or not _KEY.fullmatch(name) or not _VALUE.fullmatch(value) or name in pairs:
            raise SaslAuthenticationFailedError("the first message of OAUTHBEARER has a malformed extension")
        pairs[name] = value
    return pairs
