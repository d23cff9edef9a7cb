"""Access control entries (ACLs), the filters that select them, and the store of all entries.

The behaviour is that of Kafka's ``AclControlManager``, ``ResourcePatternFilter`` and
``AccessControlEntryFilter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.broker.requests.authorization import CLUSTER_NAME
from kafkacore.clock import Clock
from kafkacore.errors import IllegalArgumentError, InvalidRequestError
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from kafkacore.security.principal import KafkaPrincipal
from kafkacore.wire import Uuid

#: Wildcard. As the name of a resource, host or user, it matches every resource, host or user.
WILDCARD: Final = "*"
_NUMBERS: Final[dict[type[IntEnum], frozenset[int]]] = {
    kind: frozenset(each.value for each in kind)
    for kind in (ResourceType, ACLResourcePatternType, ACLOperation, ACLPermissionType)
}


class Acl(NamedTuple):
    """Access control entry that allows or denies a principal an operation on the resources of a pattern."""

    resource_type: ResourceType
    name: str
    pattern_type: ACLResourcePatternType
    principal: str
    host: str
    operation: ACLOperation
    permission: ACLPermissionType


class AskedFilter(Protocol):
    """The fields of an ACL filter in a DescribeAcls or DeleteAcls request."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class AclFilter(NamedTuple):
    """Filter that selects access control entries. A field that is ``None`` or ``ANY`` matches every value."""

    resource_type: ResourceType
    name: str | None
    pattern_type: ACLResourcePatternType
    principal: str | None
    host: str | None
    operation: ACLOperation
    permission: ACLPermissionType

    def matches(self, acl: Acl) -> bool:
        """Return whether an entry matches the filter."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ACLOperation.ANY, acl.operation)
            and self.permission in (ACLPermissionType.ANY, acl.permission)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        pattern = self.pattern_type
        any_pattern = pattern in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH)
        if not any_pattern and pattern != acl.pattern_type:
            return False
        if self.name is None or self.name == acl.name:
            return True
        if pattern != ACLResourcePatternType.MATCH:
            return False
        # The pattern type MATCH selects every pattern that applies to the resource with the filter's name.
        if acl.pattern_type == ACLResourcePatternType.LITERAL:
            return acl.name == WILDCARD
        return self.name.startswith(acl.name)


def checked_acl(
    resource_type: int,
    name: str,
    pattern_type: int,
    principal: str,
    host: str,
    operation: int,
    permission: int,
) -> Acl:
    """Check the fields of an entry, and return the entry.

    Raises
    ------
    InvalidRequestError
        A field is invalid.
    """
    if not _is_concrete(ResourceType, resource_type):
        raise InvalidRequestError(f"Invalid resourceType {_named(ResourceType, resource_type)}")
    if pattern_type not in (ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED):
        raise InvalidRequestError(f"Invalid patternType {_named(ACLResourcePatternType, pattern_type)}")
    if not _is_concrete(ACLOperation, operation):
        raise InvalidRequestError(f"Invalid operation {_named(ACLOperation, operation)}")
    if permission not in (ACLPermissionType.DENY, ACLPermissionType.ALLOW):
        raise InvalidRequestError(f"Invalid permissionType {_named(ACLPermissionType, permission)}")
    if resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequestError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise InvalidRequestError("Invalid empty resource name")
    try:
        KafkaPrincipal.parse(principal)
    except IllegalArgumentError as error:
        raise InvalidRequestError(str(error.args[0])) from None
    return Acl(
        ResourceType(resource_type),
        name,
        ACLResourcePatternType(pattern_type),
        principal,
        host,
        ACLOperation(operation),
        ACLPermissionType(permission),
    )


def checked_filter(
    resource_type: int,
    name: str | None,
    pattern_type: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> AclFilter:
    """Check the fields of a filter, and return the filter.

    Raises
    ------
    InvalidRequestError
        A field has the value UNKNOWN or an undefined number.
    """
    known = (
        (ResourceType, resource_type),
        (ACLResourcePatternType, pattern_type),
        (ACLOperation, operation),
        (ACLPermissionType, permission),
    )
    for kind, number in known:
        if number == 0 or number not in _NUMBERS[kind]:
            raise InvalidRequestError(f"Invalid {kind.__name__} {number} in the filter")
    return AclFilter(
        ResourceType(resource_type),
        name,
        ACLResourcePatternType(pattern_type),
        principal,
        host,
        ACLOperation(operation),
        ACLPermissionType(permission),
    )


def asked_filter(message: AskedFilter) -> AclFilter:
    """Check and return the filter of a DescribeAcls or DeleteAcls request, like :func:`checked_filter`."""
    return checked_filter(
        message.resource_type_filter,
        message.resource_name_filter,
        message.pattern_type_filter,
        message.principal_filter,
        message.host_filter,
        message.operation,
        message.permission_type,
    )


def _is_concrete(kind: type[IntEnum], number: int) -> bool:
    """Return whether ``number`` is a defined value of ``kind`` and is neither UNKNOWN nor ANY."""
    return number > 1 and number in _NUMBERS[kind]


def _named(kind: type[IntEnum], number: int) -> str:
    return kind(number).name if number in _NUMBERS[kind] else str(number)


class AclStore:
    """Store of all access control entries. Only the network thread may use it.

    Parameters
    ----------
    clock:
        Source of random entry ids.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids: dict[Acl, Uuid] = {}
        self._acls: dict[Uuid, Acl] = {}
        #: Number of changes to the store. The authorizer compares this number to detect that its cached
        #: decisions are outdated.
        self.version = 0

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._ids)

    def matching(self, wanted: AclFilter) -> list[Acl]:
        return [acl for acl in self._ids if wanted.matches(acl)]

    # ---- Changes ---------------------------------------------------------------------------------------

    def additions(self, acls: Iterable[Acl]) -> list[AccessControlEntryRecord]:
        """Return the log records that add the entries of ``acls``, except those that exist already."""
        return [self._record(acl, self._new_id()) for acl in dict.fromkeys(acls) if acl not in self._ids]

    def removals(self, acls: Iterable[Acl]) -> list[RemoveAccessControlEntryRecord]:
        """Return the records that remove existing entries."""
        return [RemoveAccessControlEntryRecord(id=self._ids[acl]) for acl in dict.fromkeys(acls)]

    def add(self, record: AccessControlEntryRecord) -> None:
        acl = checked_acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self._ids[acl] = record.id
        self._acls[record.id] = acl
        self.version += 1

    def remove(self, record: RemoveAccessControlEntryRecord) -> None:
        acl = self._acls.pop(record.id, None)
        if acl is not None:
            del self._ids[acl]
        self.version += 1

    def records(self) -> list[AccessControlEntryRecord]:
        """Return the records of all entries, for rewriting the log."""
        return [self._record(acl, acl_id) for acl, acl_id in self._ids.items()]

    def _new_id(self) -> Uuid:
        return Uuid.from_random_bits(self._clock.random.getrandbits(128))

    @staticmethod
    def _record(acl: Acl, acl_id: Uuid) -> AccessControlEntryRecord:
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=acl.resource_type,
            resource_name=acl.name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
