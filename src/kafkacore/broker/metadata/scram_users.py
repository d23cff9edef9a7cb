"""SCRAM credentials of users: wishes and records in, credentials and records out.

Only what a password is checked by is kept. Does not know: requests, mechanisms' messages. Source of the
rules: Kafka's ``ScramControlManager`` and ``ScramImage`` (KIP-554).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from kafkacore.errors import (
    BrokerResponseError,
    DuplicateResourceError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)
from kafkacore.protocol.generated.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kafkacore.security.sasl.scram_keys import MIN_ITERATIONS, credential_of_salted
from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import ScramCredential
from kafkacore.structs import ScramMechanism

#: More cost whoever logs in time, and nobody security.
MAX_ITERATIONS: Final = 16_384
MECHANISM_NAMES: Final = {
    ScramMechanism.SCRAM_SHA_256: "SCRAM-SHA-256",
    ScramMechanism.SCRAM_SHA_512: "SCRAM-SHA-512",
}
_MECHANISMS: Final = {name: mechanism for mechanism, name in MECHANISM_NAMES.items()}


class Deletion(NamedTuple):
    user: str
    mechanism: int


class Upsertion(NamedTuple):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Alteration = Deletion | Upsertion
ScramRecord = UserScramCredentialRecord | RemoveUserScramCredentialRecord


class ScramUsers:
    """The SCRAM credentials of all users. Used by the network thread alone.

    A user of the configuration has a credential of each mechanism until one was set or deleted here. That it
    was deleted is kept: a removal of what the log does not have.

    Parameters
    ----------
    configured:
        Names of the users of the configuration, whose credentials others keep.
    """

    def __init__(self, configured: Collection[str] = ()) -> None:
        self._configured = frozenset(configured)
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._deleted: set[tuple[str, ScramMechanism]] = set()
        #: Result of :meth:`usual_iterations` since the last change.
        self._usual: dict[str, int] = {}

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Of a mechanism by its name; ``None`` for a user who has none."""
        known = _MECHANISMS.get(mechanism)
        return None if known is None else self._credentials.get((user, known))

    def usual_iterations(self, mechanism: str) -> int:
        """Return the iteration count of most credentials of a mechanism; of equally many, the smaller.

        The users of the configuration count as well; without any user it is the minimum.
        """
        if mechanism not in self._usual:
            known = _MECHANISMS.get(mechanism)
            counts = Counter(
                iterations
                for user in self.users()
                for of_user, iterations in self.described(user)
                if of_user == known
            )
            self._usual[mechanism] = min(
                counts, key=lambda each: (-counts[each], each), default=MIN_ITERATIONS
            )
        return self._usual[mechanism]

    def decides(self, mechanism: str, user: str) -> bool:
        """Whether a user's credential of a mechanism was set or deleted here; then no other counts."""
        known = _MECHANISMS.get(mechanism)
        return known is not None and self._decides(user, known)

    def decides_about(self, user: str) -> bool:
        """Whether any of the user's credentials was."""
        return sum(self._decides(user, mechanism) for mechanism in MECHANISM_NAMES) > 0

    def replaced(self) -> list[str]:
        """Users of the configuration whose credentials were set or deleted here."""
        return sorted(user for user in self._configured if self.decides_about(user))

    def users(self) -> list[str]:
        """Who can log in by SCRAM."""
        names = {user for user, _ in self._credentials} | self._configured
        return sorted(user for user in names if self.described(user))

    def described(self, user: str) -> list[tuple[ScramMechanism, int]]:
        """Mechanisms that a user has a credential of, and its iterations."""
        return [
            (mechanism, MIN_ITERATIONS if found is None else found.iterations)
            for mechanism in MECHANISM_NAMES
            if (found := self._credentials.get((user, mechanism))) is not None
            or self._is_of_configuration(user, mechanism)
        ]

    def _decides(self, user: str, mechanism: ScramMechanism) -> bool:
        return ((user, mechanism) in self._credentials) | ((user, mechanism) in self._deleted)

    def _is_of_configuration(self, user: str, mechanism: ScramMechanism) -> bool:
        return user in self._configured and not self._decides(user, mechanism)

    # ---- Changes ---------------------------------------------------------------------------------------

    def alter(
        self, alterations: Sequence[Alteration]
    ) -> tuple[list[ScramRecord], dict[str, BrokerResponseError | None]]:
        """The records of what may be done, and for each user what went wrong, or ``None``.

        As in Kafka, a user is altered once in a request: who comes again gets none of it.
        """
        records: dict[str, list[ScramRecord]] = {}
        outcomes: dict[str, BrokerResponseError | None] = {}
        for alteration in alterations:
            user = alteration.user
            if user in outcomes:
                records.pop(user, None)
                outcomes[user] = outcomes[user] or DuplicateResourceError(
                    "A user credential cannot be altered twice in the same request"
                )
                continue
            try:
                records[user] = self._records(alteration)
                outcomes[user] = None
            except BrokerResponseError as error:
                outcomes[user] = error
        return [record for part in records.values() for record in part], outcomes

    def _records(self, alteration: Alteration) -> list[ScramRecord]:
        user, mechanism = alteration.user, alteration.mechanism
        if not user:
            raise UnacceptableCredentialError("Username must not be empty")
        if mechanism not in MECHANISM_NAMES:
            raise UnsupportedSaslMechanismError("Unknown SCRAM mechanism")
        known = ScramMechanism(mechanism)
        if isinstance(alteration, Deletion):
            return self._removals(user, known)
        if alteration.iterations < MIN_ITERATIONS:
            raise UnacceptableCredentialError("Too few iterations")
        if alteration.iterations > MAX_ITERATIONS:
            raise UnacceptableCredentialError("Too many iterations")
        made = credential_of_salted(
            MECHANISM_NAMES[known], alteration.salted_password, alteration.salt, alteration.iterations
        )
        return [_record_of(user, known, made)]

    def _removals(self, user: str, mechanism: ScramMechanism) -> list[ScramRecord]:
        """One of the credential in the log, and one more that keeps that of the configuration away."""
        has_one = (user, mechanism) in self._credentials
        if not has_one and not self._is_of_configuration(user, mechanism):
            raise ResourceNotFoundError("Attempt to delete a user credential that does not exist")
        count = has_one + (user in self._configured)
        return [RemoveUserScramCredentialRecord(name=user, mechanism=mechanism) for _ in range(count)]

    def add(self, record: UserScramCredentialRecord) -> None:
        key = record.name, ScramMechanism(record.mechanism)
        self._usual.clear()
        self._deleted.discard(key)
        self._credentials[key] = ScramCredential(
            salt=record.salt,
            stored_key=Secret(record.stored_key),
            server_key=Secret(record.server_key),
            iterations=record.iterations,
        )

    def remove(self, record: RemoveUserScramCredentialRecord) -> None:
        key = record.name, ScramMechanism(record.mechanism)
        self._usual.clear()
        if self._credentials.pop(key, None) is None:
            self._deleted.add(key)

    def records(self) -> list[ScramRecord]:
        """All credentials, and what was deleted of the configuration's, as they would be written anew."""
        kept = self._credentials.items()
        return [
            *(_record_of(user, mechanism, found) for (user, mechanism), found in kept),
            *(
                RemoveUserScramCredentialRecord(name=user, mechanism=mechanism)
                for user, mechanism in sorted(self._deleted)
            ),
        ]


def _record_of(user: str, mechanism: ScramMechanism, made: ScramCredential) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=made.salt,
        stored_key=made.stored_key.octets(),
        server_key=made.server_key.octets(),
        iterations=made.iterations,
    )
