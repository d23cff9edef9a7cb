"""A password, a token, a key: text or bytes in, ``[hidden]`` out, and the value only to who asks for it.

Does not know: what it is a secret of.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NoReturn

#: What is shown in its place.
HIDDEN: Final = "[hidden]"


class Secret:
    """A value that no ``repr``, ``str``, format, log line, traceback or dump of a configuration shows.

    It is not pickled either: what must have it in another process is sent the revealed value on purpose, at
    the one place that sends it. Copies are the same object.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | bytes | Secret) -> None:
        self._value: str | bytes = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(self._value, str | bytes):
            raise TypeError("a secret is text or bytes")

    def reveal(self) -> str | bytes:
        """The value."""
        return self._value

    def text(self) -> str:
        """The value as text; bytes are UTF-8."""
        return self._value if isinstance(self._value, str) else self._value.decode("utf-8")

    def octets(self) -> bytes:
        """The value as bytes; text is UTF-8."""
        # A lone surrogate has no bytes, and its error message would show the value.
        return self._value if isinstance(self._value, bytes) else self._value.encode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        """In a time that tells nothing of where they differ; text equals its UTF-8 bytes."""
        if not isinstance(other, Secret):
            return NotImplemented
        # Of their hashes, which are equally long: not even the length is told.
        return hmac.compare_digest(*(hashlib.sha256(each.octets()).digest() for each in (self, other)))

    def __hash__(self) -> int:
        return hash(self.octets())

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled; send what it reveals, where it must be had")
