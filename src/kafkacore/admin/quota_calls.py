"""Quotas of users, clients and addresses: described and altered (KIP-546).

Does not know: how a request travels and is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacore.admin.calls import AdminCalls, error_of
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent
from kafkacore.errors import IllegalArgumentError, for_code
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest


class QuotaCalls(AdminCalls):
    """Of one admin client."""

    def describe_client_quotas(
        self, components: Iterable[ClientQuotaFilterComponent] = (), strict: bool = False
    ) -> list[dict[str, Any]]:
        """The quotas that match all of ``components``; all quotas without one.

        Parameters
        ----------
        strict:
            Leave out those of entities that are about something else besides.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1000000.0}}``; the name ``None``
            is the default one.
        """
        shape = DescribeClientQuotasRequest
        wanted = [
            shape.ComponentData(entity_type=each.entity_type, match_type=each.match, match=each.name)
            for each in components
        ]
        answer = self._ask(shape(components=wanted, strict=strict))
        if answer.error_code:
            raise error_of(answer.error_code, answer.error_message, "quotas")
        return [
            {
                "entity": {part.entity_type: part.entity_name for part in entry.entity},
                "quotas": {value.key: value.value for value in entry.values},
            }
            for entry in answer.entries or ()
        ]

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> list[dict[str, Any]]:
        """Set and remove quotas.

        Parameters
        ----------
        validate_only:
            Check and change nothing.
        raise_errors:
            Raise the first entity's error; otherwise it is in the result.

        Returns
        -------
        list
            ``{"entity": {"user": "alice"}, "error": None or text}``, in the broker's order.
        """
        answer = self._ask(
            AlterClientQuotasRequest(
                entries=[_alteration(each) for each in alterations], validate_only=validate_only
            )
        )
        results = []
        for entry in answer.entries:
            entity = {part.entity_type: part.entity_name for part in entry.entity}
            if entry.error_code and raise_errors:
                raise error_of(entry.error_code, entry.error_message, entity)
            said = entry.error_message or for_code(entry.error_code).__name__ if entry.error_code else None
            results.append({"entity": entity, "error": said})
        return results


def _alteration(alteration: ClientQuotaAlteration) -> AlterClientQuotasRequest.EntryData:
    if not isinstance(alteration, ClientQuotaAlteration):
        raise IllegalArgumentError(
            f"alterations must be of ClientQuotaAlteration, not {type(alteration).__name__}"
        )
    shape = AlterClientQuotasRequest
    return shape.EntryData(
        entity=[
            shape.EntityData(entity_type=kind, entity_name=name) for kind, name in alteration.entity.items()
        ],
        ops=[
            shape.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in alteration.ops.items()
        ],
    )
