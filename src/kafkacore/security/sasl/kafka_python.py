"""Mechanisms that were written for kafka-python: a class of its form in, a mechanism here out.

Does not know: which mechanism. (kafka-python's ``kafka.net.sasl.abc.SaslMechanism``.)
"""

from __future__ import annotations

from typing import Any

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import MechanismFactory, SaslConfig, SaslMechanism, settings_of


def is_of_their_form(factory: Any) -> bool:
    """Whether it is a class with ``auth_bytes``, ``receive``, ``is_done`` and ``is_authenticated``."""
    names = ("auth_bytes", "receive", "is_done", "is_authenticated")
    return isinstance(factory, type) and all(hasattr(factory, name) for name in names)


def adapted(name: str, theirs: Any) -> MechanismFactory:
    """Makes ``theirs(host=..., **settings)`` for each authentication, settings by kafka-python's names."""

    def make(config: SaslConfig, host: str) -> SaslMechanism:
        return _Adapted(name, theirs(host=host, **settings_of(config)))

    return make


class _Adapted(SaslMechanism):
    def __init__(self, name: str, theirs: Any) -> None:
        self.name = name
        self._theirs = theirs

    def step(self, challenge: bytes | None) -> bytes | None:
        theirs = self._theirs
        if challenge is not None:
            theirs.receive(challenge)
            if theirs.is_done():
                if not theirs.is_authenticated():
                    raise SaslAuthenticationFailedError(f"{self.name} does not believe the broker")
                self.is_complete = True
                return None
        return bytes(theirs.auth_bytes())
