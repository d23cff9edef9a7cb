"""SCRAM credentials of users (KIP-554), as in Kafka's ``ScramControlManager`` and ``ScramImage``.

Passwords are not stored, only the keys that verify them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from kafkacore.access_control import ScramMechanism
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

#: Maximum iteration count, as in Kafka. A higher count would make each login slower without making it more
#: secure.
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
    """SCRAM credentials of all users. Only the network thread may use it.

    A user in the configuration has a credential for each mechanism, until a request sets or deletes the
    credential. The deletion of such a credential is stored as a removal record without a preceding credential
    record.

    Parameters
    ----------
    configured:
        Names of the users in the broker's configuration. Their credentials are stored elsewhere.
    """

    def __init__(self, configured: Collection[str] = ()) -> None:
        self._configured = frozenset(configured)
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._deleted: set[tuple[str, ScramMechanism]] = set()
        #: Results of :meth:`usual_iterations` by mechanism, cached until the next change.
        self._usual: dict[str, int] = {}

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential for a named mechanism, or ``None``."""
        known = _MECHANISMS.get(mechanism)
        return None if known is None else self._credentials.get((user, known))

    def usual_iterations(self, mechanism: str) -> int:
        """Return the most common iteration count of a mechanism's credentials.

        If several counts are equally common, return the smallest of these counts.

        Users in the configuration count as well. Without users, the result is the minimum iteration count.
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
        """Return whether a request has set or deleted a user's credential, overriding the configuration."""
        known = _MECHANISMS.get(mechanism)
        return known is not None and self._decides(user, known)

    def decides_about(self, user: str) -> bool:
        """Return whether a request has set or deleted any of the user's credentials."""
        return sum(self._decides(user, mechanism) for mechanism in MECHANISM_NAMES) > 0

    def replaced(self) -> list[str]:
        """Return the configured users for whom a request has set or deleted a credential."""
        return sorted(user for user in self._configured if self.decides_about(user))

    def users(self) -> list[str]:
        """Return the names of all users that have a SCRAM credential."""
        names = {user for user, _ in self._credentials} | self._configured
        return sorted(user for user in names if self.described(user))

    def described(self, user: str) -> list[tuple[ScramMechanism, int]]:
        """Return the mechanisms for which a user has a credential, with the iteration counts."""
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
        """Return the records of the valid changes, and for each user an error or ``None``.

        As in Kafka, a user that occurs twice in a request is not changed at all.
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
        """Return the records that remove a credential.

        One record removes the credential that is stored in the log. The other record overrides the credential
        in the configuration.
        """
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
        """Return the records of all credentials and deletions, for rewriting the log."""
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
