"""Who a connection acts for. A noun; it knows no connection. (Kafka's ``KafkaPrincipal``.)"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkacore.errors import IllegalArgumentError

#: The type of all principals that authentication gives.
USER: Final = "User"


class KafkaPrincipal(NamedTuple):
    """A type and a name; its text is ``User:alice``."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"

    @classmethod
    def user(cls, name: str) -> KafkaPrincipal:
        return cls(USER, name)

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """The principal of a text; a name may have colons in it.

        Raises
        ------
        IllegalArgumentError
            The text has no type, or no colon.
        """
        principal_type, colon, name = text.partition(":")
        if not colon or not principal_type:
            raise IllegalArgumentError(f"{text!r} is no principal: it must be type:name, as User:alice")
        return cls(principal_type, name)


#: Who has not said who it is.
ANONYMOUS: Final = KafkaPrincipal(USER, "ANONYMOUS")
