"""Build the requests that describe and alter client quotas (KIP-546), and read their responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacore.admin.arguments import instances, mapping
from kafkacore.admin.quotas import ClientQuotaAlteration, ClientQuotaFilterComponent
from kafkacore.admin.responses import error_of, error_text, paired
from kafkacore.admin.results import AlteredClientQuotas, ClientQuotas
from kafkacore.errors import IllegalArgumentError
from kafkacore.protocol.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kafkacore.protocol.generated.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def describe(components: Iterable[ClientQuotaFilterComponent], strict: bool) -> DescribeClientQuotasRequest:
    request_class = DescribeClientQuotasRequest
    wanted = [
        request_class.ComponentData(entity_type=each.entity_type, match_type=each.match, match=each.name)
        for each in instances("components", components, ClientQuotaFilterComponent)
    ]
    return request_class(components=wanted, strict=strict)


def described(response: DescribeClientQuotasResponse) -> list[ClientQuotas]:
    if response.error_code:
        raise error_of(response.error_code, response.error_message, "quotas")
    return [
        {
            "entity": {part.entity_type: part.entity_name for part in entry.entity},
            "quotas": {value.key: value.value for value in entry.values},
        }
        for entry in response.entries or ()
    ]


def alter(alterations: Iterable[ClientQuotaAlteration], validate_only: bool) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[_alteration(each) for each in alterations],
        validate_only=validate_only,
    )


def altered(
    alterations: Sequence[ClientQuotaAlteration], response: AlterClientQuotasResponse, raise_errors: bool
) -> list[AlteredClientQuotas]:
    results: list[AlteredClientQuotas] = []
    for _, entry in paired(alterations, response.entries):
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        if entry.error_code and raise_errors:
            raise error_of(entry.error_code, entry.error_message, entity)
        results.append({"entity": entity, "error": error_text(entry)})
    return results


def _alteration(alteration: ClientQuotaAlteration) -> AlterClientQuotasRequest.EntryData:
    if not isinstance(alteration, ClientQuotaAlteration):
        raise IllegalArgumentError(
            f"alterations must be ClientQuotaAlteration objects, not {type(alteration).__name__}"
        )
    request_class = AlterClientQuotasRequest
    return request_class.EntryData(
        entity=[
            request_class.EntityData(entity_type=kind, entity_name=name)
            for kind, name in mapping("entity", alteration.entity, "types to names").items()
        ],
        ops=[
            request_class.OpData(key=key, value=_limit(key, value), remove=value is None)
            for key, value in mapping("ops", alteration.ops, "quotas to values").items()
        ],
    )


def _limit(key: str, value: object) -> float:
    if value is None:
        return 0.0
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"quota {key}: {value!r} is not a number")
    return float(value)
