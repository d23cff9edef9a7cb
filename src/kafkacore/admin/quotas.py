"""The nouns of client quotas (KIP-546): which clients, and how much each may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kafkacore.errors import IllegalArgumentError


class ClientQuotaMatch(IntEnum):
    """Which entities a filter is about."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True)
class ClientQuotaFilterComponent:
    """One kind of entity that a quota must be about, to be described.

    Parameters
    ----------
    entity_type:
        ``user``, ``client-id`` or ``ip``.
    match:
        The one of that ``name``, the default one, or any of that kind.
    name:
        For ``EXACT`` alone.
    """

    entity_type: str
    match: ClientQuotaMatch = ClientQuotaMatch.ANY
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.match == ClientQuotaMatch.EXACT) != (self.name is not None):
            raise IllegalArgumentError(f"{self.entity_type}: a name is for EXACT, and EXACT needs one")

    @classmethod
    def of_entity(cls, entity_type: str, name: str) -> ClientQuotaFilterComponent:
        """The quota of this one."""
        return cls(entity_type, ClientQuotaMatch.EXACT, name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """The quota of those that have none of their own."""
        return cls(entity_type, ClientQuotaMatch.DEFAULT)


@dataclass(frozen=True)
class ClientQuotaAlteration:
    """What is to change for one entity.

    Parameters
    ----------
    entity:
        Kind → name: ``{"user": "alice", "client-id": "report"}``; the name ``None`` is the default one.
    ops:
        Key → value, or ``None`` to remove it:
        ``{"producer_byte_rate": 1_000_000.0, "request_percentage": None}``.
    """

    entity: Mapping[str, str | None]
    ops: Mapping[str, float | None] = field(default_factory=dict)
