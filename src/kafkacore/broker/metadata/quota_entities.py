"""Quotas of users, client ids and IP addresses that are set by requests (KIP-546, KIP-612).

The behaviour is that of Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafkacore.broker.quota import QuotaEntity, QuotaKind, canonical_ip
from kafkacore.errors import BrokerResponseError, InvalidRequestError, UnsupportedVersionError
from kafkacore.protocol.generated.metadata_records import ClientQuotaRecord
from kafkacore.structs import INT32_MAX, INT64_MAX

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class QuotaKey(NamedTuple):
    """Description of a quota key, such as ``producer_byte_rate``.

    Parameters
    ----------
    kind:
        Type of the quota.
    maximum:
        Maximum value if the quota is a whole number; ``None`` if it may have a fraction.
    is_of_ip:
        Whether the quota limits IP addresses instead of users and client ids.
    """

    kind: QuotaKind
    maximum: int | None
    is_of_ip: bool = False


#: All keys by name. They are in the order in which Kafka's responses list up to three keys. That order is the
#: iteration order of a Java hash map.
KEYS: Final = {
    "consumer_byte_rate": QuotaKey(QuotaKind.FETCH, INT64_MAX),
    "controller_mutation_rate": QuotaKey(QuotaKind.CONTROLLER_MUTATION, None),
    "request_percentage": QuotaKey(QuotaKind.REQUEST, None),
    "producer_byte_rate": QuotaKey(QuotaKind.PRODUCE, INT64_MAX),
    "connection_creation_rate": QuotaKey(QuotaKind.CONNECTION, INT32_MAX, is_of_ip=True),
}
#: Maximum value of an integer type → Kafka's name of the type.
_TYPES: Final = {INT32_MAX: "an INT", INT64_MAX: "a LONG"}

#: Pairs of entity type and name, sorted by type. A name of ``None`` is the default of that type.
Entity = tuple[tuple[str, str | None], ...]
OnChanged = Callable[[QuotaKind, QuotaEntity, float | None], None]


class Match(NamedTuple):
    """A component of a filter, which selects names of one entity type."""

    entity_type: str
    match_type: int
    name: str | None


EXACT, DEFAULT, SPECIFIED = range(3)


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    return tuple(sorted(parts.items()))


class QuotaEntities:
    """All quotas that were set by requests. Only the network thread may use it.

    Parameters
    ----------
    on_changed:
        Called after each change with the quota type, the entity, and the new limit, or ``None`` if the limit
        was removed.
    """

    def __init__(self, on_changed: OnChanged) -> None:
        self._limits: dict[Entity, dict[str, float]] = {}
        self._on_changed = on_changed

    def matching(self, matches: Sequence[Match], *, strict: bool) -> list[tuple[Entity, dict[str, float]]]:
        """Return the entities that match a filter, with their limits.

        Parameters
        ----------
        matches:
            Components of the filter, all of which must match.
        strict:
            Whether to exclude entities that have an entity type for which the filter has no component.

        Raises
        ------
        InvalidRequestError
            The filter is invalid.
        UnsupportedVersionError
            The filter has an unknown entity type.
        """
        wanted: dict[str, Match] = {}
        for match in matches:
            _check_match(match, wanted)
            wanted[match.entity_type] = match
        if IP in wanted and len(wanted) > 1:
            raise InvalidRequestError("A filter by ip cannot be combined with user or client-id.")
        return [
            (entity, {key: limits[key] for key in KEYS if key in limits})
            for entity, limits in self._limits.items()
            if _matches(dict(entity), wanted, strict)
        ]

    # ---- Changes ---------------------------------------------------------------------------------------

    def alter(
        self, alterations: Sequence[tuple[Entity, Sequence[tuple[str, float | None]]]]
    ) -> tuple[list[ClientQuotaRecord], dict[Entity, BrokerResponseError | None]]:
        """Return the records of the valid changes, and for each entity an error or ``None``."""
        records: dict[Entity, list[ClientQuotaRecord]] = {}
        outcomes: dict[Entity, BrokerResponseError | None] = {}
        for entity, changes in alterations:
            try:
                if entity in outcomes:
                    raise InvalidRequestError("An entity cannot be altered twice in the same request.")
                records[entity] = list(self._records_of(entity, changes))
                outcomes[entity] = None
            except BrokerResponseError as error:
                outcomes[entity] = error
        return [record for part in records.values() for record in part], outcomes

    def _records_of(
        self, entity: Entity, changes: Sequence[tuple[str, float | None]]
    ) -> Iterator[ClientQuotaRecord]:
        _check_entity(dict(entity))
        if len(dict(changes)) != len(changes):
            raise InvalidRequestError("A key cannot be altered twice for the same entity.")
        now = self._limits.get(entity, {})
        for key, value in changes:
            if value is None:
                if key in now:
                    yield _record(entity, key, 0.0, remove=True)
                continue
            _check_value(key, value, is_of_ip=IP in dict(entity))
            if now.get(key) != value:
                yield _record(entity, key, value)

    def apply(self, record: ClientQuotaRecord) -> None:
        parts = {part.entity_type: part.entity_name for part in record.entity}
        entity = entity_of(parts)
        if not record.remove:
            _check_value(record.key, record.value, is_of_ip=IP in parts)
        limits = self._limits.setdefault(entity, {})
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if not limits:
            del self._limits[entity]
        names = QuotaEntity(*((parts[each] or "") if each in parts else None for each in (USER, CLIENT_ID)))
        if IP in parts:
            names = names._replace(ip=canonical_ip(parts[IP]) if parts[IP] else "")
        self._on_changed(KEYS[record.key].kind, names, limits.get(record.key))

    def records(self) -> list[ClientQuotaRecord]:
        """Return the records of all limits, for rewriting the log."""
        return [
            _record(entity, key, value)
            for entity, limits in self._limits.items()
            for key, value in limits.items()
        ]


def _check_match(match: Match, before: Mapping[str, Match]) -> None:
    if not match.entity_type:
        raise InvalidRequestError("Invalid empty entity type.")
    if match.entity_type in before:
        raise InvalidRequestError(
            f"Entity type {match.entity_type} cannot appear more than once in the filter."
        )
    if match.entity_type not in (USER, CLIENT_ID, IP):
        raise UnsupportedVersionError(f"Unsupported entity type {match.entity_type}")
    if match.match_type not in (EXACT, DEFAULT, SPECIFIED):
        raise InvalidRequestError(f"Unknown match type {match.match_type}")
    if (match.match_type == EXACT) is (match.name is None):
        problem = "requires a name" if match.name is None else "does not allow a name"
        raise InvalidRequestError(f"Match type {match.match_type} {problem}.")


def _matches(parts: Mapping[str, str | None], wanted: Mapping[str, Match], strict: bool) -> bool:
    if strict and len(parts) != len(wanted):
        return False
    return all(
        kind in parts and (match.match_type == SPECIFIED or parts[kind] == match.name)
        for kind, match in wanted.items()
    )


def _check_entity(parts: Mapping[str, str | None]) -> None:
    if not parts:
        raise InvalidRequestError("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequestError(f"Empty {kind} not supported")
    if IP not in parts:
        return
    if len(parts) > 1:
        raise InvalidRequestError(
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        )
    ip = parts[IP]
    try:
        if ip is not None:
            canonical_ip(ip)
    except ValueError:
        # Kafka resolves host names. This broker does not, because a lookup would block the network thread and
        # its result can change.
        raise InvalidRequestError(
            f"{ip} is not an IP address. This broker does not resolve host names: use the address"
        ) from None


def _check_value(key: str, value: float, *, is_of_ip: bool) -> None:
    if key not in KEYS or KEYS[key].is_of_ip is not is_of_ip:
        raise InvalidRequestError(f"Invalid configuration key {key}")
    maximum = KEYS[key].maximum
    if not math.isfinite(value) or value <= 0:
        raise InvalidRequestError(f"Quota {key} must be greater than 0")
    if maximum is None:
        return
    # The maximum is rounded to a float, as in Java, because a client sends 2**63 for the largest LONG.
    if value > float(maximum):
        raise InvalidRequestError(f"Proposed value for {key} is too large for {_TYPES[maximum]}.")
    if value % 1.0 > 1e-6:
        raise InvalidRequestError(f"{key} cannot be a fractional value.")


def _record(entity: Entity, key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)
