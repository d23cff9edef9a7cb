"""Client quotas (KIP-546): filters for entities, and changes of their quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kafkacore.errors import IllegalArgumentError


class ClientQuotaMatch(IntEnum):
    """How a filter matches entity names: a certain name, the default entity, or any name."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True)
class ClientQuotaFilterComponent:
    """One entity type in a filter for quotas.

    Parameters
    ----------
    entity_type:
        ``user``, ``client-id`` or ``ip``.
    match:
        ``EXACT`` for the entity with ``name``, ``DEFAULT`` for the default entity, ``ANY`` for every entity.
    name:
        Name of the entity, for ``EXACT`` only.
    """

    entity_type: str
    match: ClientQuotaMatch = ClientQuotaMatch.ANY
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.match == ClientQuotaMatch.EXACT) != (self.name is not None):
            raise IllegalArgumentError(
                f"{self.entity_type}: match=EXACT needs a name, and other matches must not have one"
            )

    @classmethod
    def of_entity(cls, entity_type: str, name: str) -> ClientQuotaFilterComponent:
        """Return a component that matches the entity with this name."""
        return cls(entity_type, ClientQuotaMatch.EXACT, name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """Return a component that matches the default entity.

        The quota of the default entity applies to entities without a quota of their own.
        """
        return cls(entity_type, ClientQuotaMatch.DEFAULT)


@dataclass(frozen=True)
class ClientQuotaAlteration:
    """Changes to the quotas of one entity.

    Parameters
    ----------
    entity:
        Entity type → name, such as ``{"user": "alice", "client-id": "report"}``. The name ``None`` stands for
        the default entity.
    ops:
        Quota → new value, or ``None`` to remove it, such as ``{"producer_byte_rate": 1_000_000.0,
        "request_percentage": None}``.
    """

    entity: Mapping[str, str | None]
    ops: Mapping[str, float | None] = field(default_factory=dict)
