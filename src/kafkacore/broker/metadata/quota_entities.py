"""Client quotas of users and client ids that are set by requests (KIP-546).

The behaviour is that of Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafkacore.broker.quota import QuotaEntity, QuotaKind
from kafkacore.errors import BrokerResponseError, InvalidRequestError, UnsupportedVersionError
from kafkacore.protocol.generated.metadata_records import ClientQuotaRecord
from kafkacore.structs import INT64_MAX

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
#: Quota type of each key, and whether its value must be an integer. The order is that of Kafka's responses,
#: which is the iteration order of its hash map.
KEYS: Final = {
    "consumer_byte_rate": (QuotaKind.FETCH, True),
    "request_percentage": (QuotaKind.REQUEST, False),
    "producer_byte_rate": (QuotaKind.PRODUCE, True),
}
_NOT_HERE: Final = ("controller_mutation_rate", "connection_creation_rate")

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
        Called after each change with the quota type, the entity, and the limit or ``None``.
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
            Whether to exclude entities with further entity types.

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
            _check_value(key, value)
            if now.get(key) != value:
                yield _record(entity, key, value)

    def apply(self, record: ClientQuotaRecord) -> None:
        entity = entity_of({part.entity_type: part.entity_name for part in record.entity})
        if not record.remove:
            _check_value(record.key, record.value)
        limits = self._limits.setdefault(entity, {})
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if not limits:
            del self._limits[entity]
        kind, _ = KEYS[record.key]
        parts = dict(entity)
        names = QuotaEntity(*((parts[each] or "") if each in parts else None for each in (USER, CLIENT_ID)))
        self._on_changed(kind, names, limits.get(record.key))

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
    if IP in parts:
        raise InvalidRequestError(
            "This broker does not support quotas of IP addresses. Set max.connections.per.ip or "
            "max.connection.creation.rate in its configuration."
        )


def _check_value(key: str, value: float) -> None:
    if key in _NOT_HERE:
        raise InvalidRequestError(f"This broker does not support quota {key}. Supported: {', '.join(KEYS)}")
    if key not in KEYS:
        raise InvalidRequestError(f"Invalid configuration key {key}")
    if not math.isfinite(value) or value <= 0:
        raise InvalidRequestError(f"Quota {key} must be greater than 0")
    if KEYS[key][1] and value > INT64_MAX:
        raise InvalidRequestError(f"Proposed value for {key} is too large for a LONG.")
    if KEYS[key][1] and value % 1.0 > 1e-6:
        raise InvalidRequestError(f"{key} cannot be a fractional value.")


def _record(entity: Entity, key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)
