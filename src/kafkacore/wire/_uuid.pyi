from builtins import bytes as _bytes
from builtins import int as _int
from typing import Any, Self, final

@final
class Uuid:
    """A 128-bit id (Kafka's ``Uuid``).

    It equals the :class:`uuid.UUID` of the same bytes, and has the same hash and the same text. Ids are
    ordered as in Kafka: as pairs of signed 64-bit numbers.

    Parameters
    ----------
    raw:
        The 16 bytes of the id.
    """

    def __new__(cls, raw: _bytes) -> Self: ...
    @staticmethod
    def from_hex(text: str) -> Uuid:
        """Return the id with this text, such as ``'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'``.

        Raises
        ------
        ValueError
            The text has another form.
        """
    @staticmethod
    def from_random_bits(bits: _int) -> Uuid:
        """Return the id of version 4 that has these 128 random bits.

        Six of the bits are replaced by the version and the variant of the id.
        """
    @property
    def bytes(self) -> _bytes:
        """The 16 bytes of the id."""
    @property
    def int(self) -> _int:
        """The id as an unsigned number of 128 bits."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> _int: ...
    def __lt__(self, other: Uuid, /) -> bool: ...
    def __le__(self, other: Uuid, /) -> bool: ...
    def __gt__(self, other: Uuid, /) -> bool: ...
    def __ge__(self, other: Uuid, /) -> bool: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...

def as_uuid(value: object) -> Uuid | None:
    """Return a :class:`Uuid` or :class:`uuid.UUID` as a Uuid, and ``None`` for any other value."""
