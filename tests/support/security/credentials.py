"""Users for tests of SASL mechanisms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from kafkacore.security import Secret
from kafkacore.security.sasl.scram_keys import HASH_NAMES, MIN_ITERATIONS, credential
from kafkacore.security.server_mechanism import ScramCredential


class Users:
    """A :class:`~kafkacore.security.server_mechanism.CredentialStore` of these users, for any mechanism."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.passwords = {user: Secret(password) for user, password in passwords.items()}
        self.credentials: dict[tuple[str, str], ScramCredential] = {
            (mechanism, user): credential(mechanism, password)
            for user, password in self.passwords.items()
            for mechanism in HASH_NAMES
        }

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.credentials.get((mechanism, user))

    def plain_password(self, user: str) -> Secret | None:
        return self.passwords.get(user)

    def usual_iterations(self, mechanism: str) -> int:
        return MIN_ITERATIONS


def calls_of(function: Callable[[], object]) -> list[str]:
    """Run a function and return the name of everything it calls, Python and C, in order."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_qualname)
        elif event == "c_call":
            calls.append(argument.__qualname__)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls
