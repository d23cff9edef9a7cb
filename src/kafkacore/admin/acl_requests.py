"""Build the requests that create, describe and delete ACLs, and read their responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.admin.acls import ACL, ACLFilter, ResourcePattern
from kafkacore.admin.responses import error_of, member, paired
from kafkacore.admin.results import CreatedAcls
from kafkacore.errors import BrokerResponseError, IllegalArgumentError, MalformedMessageError, for_code
from kafkacore.protocol.generated.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse

M = TypeVar("M")
_AclFields = DescribeAclsResponse.AclDescription | DeleteAclsResponse.DeleteAclsMatchingAcl


def describe(acl_filter: ACLFilter) -> DescribeAclsRequest:
    if not isinstance(acl_filter, ACLFilter):
        raise IllegalArgumentError(f"acl_filter must be an ACLFilter, not {type(acl_filter).__name__}")
    return _as_message(DescribeAclsRequest, acl_filter)


def described(response: DescribeAclsResponse, acl_filter: ACLFilter) -> list[ACL]:
    if response.error_code:
        raise error_of(response.error_code, response.error_message, acl_filter)
    return [
        _entry(acl, resource.resource_type, resource.resource_name, resource.pattern_type)
        for resource in response.resources
        for acl in resource.acls
    ]


def create(entries: Sequence[ACL]) -> CreateAclsRequest:
    if invalid := [each for each in entries if not isinstance(each, ACL)]:
        raise IllegalArgumentError(f"acls must be ACL objects, not {type(invalid[0]).__name__}")
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


def created(entries: Sequence[ACL], response: CreateAclsResponse, raise_errors: bool) -> CreatedAcls:
    results: CreatedAcls = {"succeeded": [], "failed": []}
    for entry, result in paired(entries, response.results):
        if not result.error_code:
            results["succeeded"].append(entry)
        elif raise_errors:
            raise error_of(result.error_code, result.error_message, entry)
        else:
            results["failed"].append(for_code(result.error_code))
    return results


def delete(filters: Sequence[ACLFilter]) -> DeleteAclsRequest:
    if invalid := [each for each in filters if not isinstance(each, ACLFilter)]:
        raise IllegalArgumentError(f"acl_filters must be ACLFilter objects, not {type(invalid[0]).__name__}")
    return DeleteAclsRequest(
        filters=[_as_message(DeleteAclsRequest.DeleteAclsFilter, each) for each in filters]
    )


def deleted(
    filters: Sequence[ACLFilter], response: DeleteAclsResponse, raise_errors: bool
) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
    found = []
    for each, result in paired(filters, response.filter_results):
        removed = []
        for acl in result.matching_acls:
            if not acl.error_code:
                removed.append(_entry(acl, acl.resource_type, acl.resource_name, acl.pattern_type))
            elif raise_errors:
                raise error_of(acl.error_code, acl.error_message, each)
        if result.error_code and raise_errors:
            raise error_of(result.error_code, result.error_message, each)
        found.append((each, removed, for_code(result.error_code)))
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
    """Return an ACL of a response. Raise ``MalformedMessageError`` if a value is valid only in filters."""
    try:
        pattern = ResourcePattern(
            member(ResourceType, resource_type), resource_name, member(ACLResourcePatternType, pattern_type)
        )
        operation = member(ACLOperation, acl.operation)
        return ACL(
            acl.principal, acl.host, operation, member(ACLPermissionType, acl.permission_type), pattern
        )
    except IllegalArgumentError as error:
        raise MalformedMessageError(f"the broker returned an invalid ACL entry: {error}") from None
