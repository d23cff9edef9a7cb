"""Build the requests that create, describe and delete ACLs, and read their responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kafkacore.admin.acls import ACL, ACLFilter, ResourcePattern
from kafkacore.admin.responses import error_of, member, paired
from kafkacore.admin.results import CreatedAcls
from kafkacore.errors import BrokerResponseError, IllegalArgumentError, MalformedMessageError, for_code
from kafkacore.protocol.generated.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacore.structs import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType

M = TypeVar("M")
_AclFields = DescribeAclsResponse.AclDescription | DeleteAclsResponse.DeleteAclsMatchingAcl


def describe(acl_filter: ACLFilter) -> DescribeAclsRequest:
    if not isinstance(acl_filter, ACLFilter):
        raise IllegalArgumentError(f"acl_filter must be an ACLFilter, not {type(acl_filter).__name__}")
    return _as_message(DescribeAclsRequest, acl_filter)


def described(answer: DescribeAclsResponse, acl_filter: ACLFilter) -> list[ACL]:
    if answer.error_code:
        raise error_of(answer.error_code, answer.error_message, acl_filter)
    return [
        _entry(acl, resource.resource_type, resource.resource_name, resource.pattern_type)
        for resource in answer.resources
        for acl in resource.acls
    ]


def create(entries: Sequence[ACL]) -> CreateAclsRequest:
    if strange := [each for each in entries if not isinstance(each, ACL)]:
        raise IllegalArgumentError(f"acls must be of ACL, not {type(strange[0]).__name__}")
    return CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=entry.resource_pattern.resource_type,
                resource_name=entry.resource_pattern.resource_name,
                resource_pattern_type=entry.resource_pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for entry in entries
        ]
    )


def created(entries: Sequence[ACL], answer: CreateAclsResponse, raise_errors: bool) -> CreatedAcls:
    results: CreatedAcls = {"succeeded": [], "failed": []}
    for entry, result in paired(entries, answer.results):
        if not result.error_code:
            results["succeeded"].append(entry)
        elif raise_errors:
            raise error_of(result.error_code, result.error_message, entry)
        else:
            results["failed"].append(for_code(result.error_code))
    return results


def delete(filters: Sequence[ACLFilter]) -> DeleteAclsRequest:
    if strange := [each for each in filters if not isinstance(each, ACLFilter)]:
        raise IllegalArgumentError(f"acl_filters must be of ACLFilter, not {type(strange[0]).__name__}")
    return DeleteAclsRequest(
        filters=[_as_message(DeleteAclsRequest.DeleteAclsFilter, each) for each in filters]
    )


def deleted(
    filters: Sequence[ACLFilter], answer: DeleteAclsResponse, raise_errors: bool
) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
    found = []
    for each, result in paired(filters, answer.filter_results):
        gone = []
        for acl in result.matching_acls:
            if not acl.error_code:
                gone.append(_entry(acl, acl.resource_type, acl.resource_name, acl.pattern_type))
            elif raise_errors:
                raise error_of(acl.error_code, acl.error_message, each)
        if result.error_code and raise_errors:
            raise error_of(result.error_code, result.error_message, each)
        found.append((each, gone, for_code(result.error_code)))
    return found


def _as_message(kind: Callable[..., M], acl_filter: ACLFilter) -> M:
    pattern = acl_filter.resource_pattern
    return kind(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.resource_name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=acl_filter.principal,
        host_filter=acl_filter.host,
        operation=acl_filter.operation,
        permission_type=acl_filter.permission_type,
    )


def _entry(acl: _AclFields, resource_type: int, resource_name: str, pattern_type: int) -> ACL:
    """Raises :class:`~kafkacore.errors.MalformedMessageError` for what only a filter may be."""
    try:
        pattern = ResourcePattern(
            member(ResourceType, resource_type), resource_name, member(ACLResourcePatternType, pattern_type)
        )
        operation = member(ACLOperation, acl.operation)
        return ACL(
            acl.principal, acl.host, operation, member(ACLPermissionType, acl.permission_type), pattern
        )
    except IllegalArgumentError as error:
        raise MalformedMessageError(f"the broker tells of an entry that cannot be: {error}") from None
