"""The identity that a connection acts for, as Kafka's ``KafkaPrincipal``."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkacore.errors import IllegalArgumentError

#: Type of every principal that results from authentication.
USER: Final = "User"


class KafkaPrincipal(NamedTuple):
    """A type and a name, written as ``User:alice``."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"

    @classmethod
    def user(cls, name: str) -> KafkaPrincipal:
        return cls(USER, name)

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """Parse a principal. The name may contain colons.

        Raises
        ------
        IllegalArgumentError
            The text has no colon, or no type before it.
        """
        principal_type, colon, name = text.partition(":")
        if not colon or not principal_type:
            raise IllegalArgumentError(f"{text!r} is not a principal: write type:name, such as User:alice")
        return cls(principal_type, name)


#: Principal of a peer that has not authenticated.
ANONYMOUS: Final = KafkaPrincipal(USER, "ANONYMOUS")
