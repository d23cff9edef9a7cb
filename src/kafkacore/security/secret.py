"""A wrapper for a password, token or key, which hides the value in logs and messages."""

from __future__ import annotations

from typing import Final, NoReturn

#: Text that is shown instead of a secret.
HIDDEN: Final = "[hidden]"


class Secret:
    """A value that does not appear in any ``repr``, ``str``, format, log line or traceback.

    A Secret cannot be pickled: code that needs the value in another process must call :meth:`reveal` and send
    the result. A copy of a Secret is the same object.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | bytes | Secret) -> None:
        self._value: str | bytes = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(self._value, str | bytes):
            raise TypeError("a secret must be str or bytes")

    def reveal(self) -> str | bytes:
        """Return the value as it was given."""
        return self._value

    def text(self) -> str:
        """Return the value as text, decoding bytes as UTF-8."""
        return self._value if isinstance(self._value, str) else self._value.decode("utf-8")

    def octets(self) -> bytes:
        """Return the value as bytes, encoding text as UTF-8."""
        # Without surrogatepass, a lone surrogate raises an error whose message shows the value.
        return self._value if isinstance(self._value, bytes) else self._value.encode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        """Compare in constant time. Text equals its UTF-8 bytes."""
        if not isinstance(other, Secret):
            return NotImplemented
        # Few programs compare secrets, and these modules take 1.5 ms to import.
        import hashlib
        import hmac

        # Compare hashes, which have equal lengths, so that the time does not depend on the lengths of the
        # values.
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
        raise TypeError("a Secret cannot be pickled: send the value that reveal() returns")
