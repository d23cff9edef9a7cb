"""Entries of access control made, described and deleted: nouns in, nouns out.

Does not know: how a request travels and is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafkacore.admin.acls import ACL, ACLFilter, ResourcePattern
from kafkacore.admin.calls import AdminCalls, error_of, member, paired
from kafkacore.errors import (
    BrokerResponseError,
    IllegalArgumentError,
    MalformedMessageError,
    NoError,
    for_code,
)
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest
from kafkacore.structs import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType

M = TypeVar("M")


class AclCalls(AdminCalls):
    """Of one admin client."""

    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], type[NoError]]:
        """The entries that match.

        Returns
        -------
        tuple
            The entries, and the class ``NoError``, as kafka-python has it.

        Raises
        ------
        SecurityDisabledError
            The cluster has no authorizer.
        ClusterAuthorizationFailedError
            This client may not ask.
        """
        if not isinstance(acl_filter, ACLFilter):
            raise IllegalArgumentError(f"acl_filter must be an ACLFilter, not {type(acl_filter).__name__}")
        answer = self._ask(_as_message(DescribeAclsRequest, acl_filter))
        if answer.error_code:
            raise error_of(answer.error_code, answer.error_message, acl_filter)
        found = [
            _entry(acl, resource.resource_type, resource.resource_name, resource.pattern_type)
            for resource in answer.resources
            for acl in resource.acls
        ]
        return found, NoError

    def create_acls(self, acls: Iterable[ACL], raise_errors: bool = False) -> dict[str, list[Any]]:
        """Make entries; one that is there already is no error.

        Parameters
        ----------
        raise_errors:
            Raise the first entry's error, with what the broker says about it.

        Returns
        -------
        dict
            ``{"succeeded": [the entries], "failed": [the error class of each other]}``
        """
        entries = list(acls)
        if strange := [each for each in entries if not isinstance(each, ACL)]:
            raise IllegalArgumentError(f"acls must be of ACL, not {type(strange[0]).__name__}")
        creations = [
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
        results: dict[str, list[Any]] = {"succeeded": [], "failed": []}
        answer = self._ask(CreateAclsRequest(creations=creations))
        for entry, result in paired(entries, answer.results):
            if not result.error_code:
                results["succeeded"].append(entry)
            elif raise_errors:
                raise error_of(result.error_code, result.error_message, entry)
            else:
                results["failed"].append(for_code(result.error_code))
        return results

    def delete_acls(
        self, acl_filters: Iterable[ACLFilter], raise_errors: bool = False
    ) -> list[tuple[ACLFilter, list[ACL], type[BrokerResponseError]]]:
        """Delete the entries that match any of the filters.

        Parameters
        ----------
        raise_errors:
            Raise the first error, with what the broker says about it.

        Returns
        -------
        list
            Of each filter: itself, the entries that are gone, and an error class or ``NoError``.
        """
        filters = list(acl_filters)
        if strange := [each for each in filters if not isinstance(each, ACLFilter)]:
            raise IllegalArgumentError(f"acl_filters must be of ACLFilter, not {type(strange[0]).__name__}")
        request = DeleteAclsRequest(
            filters=[_as_message(DeleteAclsRequest.DeleteAclsFilter, each) for each in filters]
        )
        found = []
        for each, result in paired(filters, self._ask(request).filter_results):
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


def _entry(acl: Any, resource_type: int, resource_name: str, pattern_type: int) -> ACL:
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
