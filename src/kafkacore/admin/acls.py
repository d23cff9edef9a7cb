"""Access control entries and filters. Names and arguments are those of kafka-python."""

from __future__ import annotations

from dataclasses import dataclass

from kafkacore.access_control import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafkacore.errors import IllegalArgumentError


def _check_member(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise IllegalArgumentError(f"{name}={value!r}: it must be a member of {kind.__name__}")


@dataclass(frozen=True)
class ResourcePatternFilter:
    """A filter for the resources of access control entries.

    Parameters
    ----------
    resource_type:
        Type of the resource; ``ResourceType.ANY`` for every type.
    resource_name:
        Name of the resource; ``None`` for every name.
    pattern_type:
        ``LITERAL`` or ``PREFIXED`` selects entries of that type. ``ANY`` selects entries of both types.
        ``MATCH`` selects all entries that apply to the resource with this name.

    Raises
    ------
    IllegalArgumentError
        A value is not a member of its enumeration.
    """

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: ACLResourcePatternType

    def __post_init__(self) -> None:
        _check_member("resource_type", self.resource_type, ResourceType)
        _check_member("pattern_type", self.pattern_type, ACLResourcePatternType)


@dataclass(frozen=True)
class ResourcePattern(ResourcePatternFilter):
    """The resources to which an entry applies: one name, all names with a prefix, or all names (``*``)."""

    resource_name: str
    pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resource_type is ResourceType.ANY:
            raise IllegalArgumentError("resource_type=ANY is valid only in a filter, not in an entry")
        if self.pattern_type in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH):
            raise IllegalArgumentError(
                f"pattern_type: an entry must be LITERAL or PREFIXED, not {self.pattern_type.name}"
            )


@dataclass(frozen=True)
class ACLFilter:
    """A filter for access control entries.

    Parameters
    ----------
    principal, host:
        Principal and address, such as ``User:alice`` and ``192.0.2.7``; ``None`` for all.
    operation, permission_type:
        Members of their enumerations; ``ANY`` for all.
    resource_pattern:
        Filter for the resources of the entries.

    Raises
    ------
    IllegalArgumentError
        A value is not a member of its enumeration.
    """

    principal: str | None
    host: str | None
    operation: ACLOperation
    permission_type: ACLPermissionType
    resource_pattern: ResourcePatternFilter

    def __post_init__(self) -> None:
        _check_member("operation", self.operation, ACLOperation)
        _check_member("permission_type", self.permission_type, ACLPermissionType)
        _check_member("resource_pattern", self.resource_pattern, ResourcePatternFilter)


@dataclass(frozen=True)
class ACL(ACLFilter):
    """An access control entry, which allows or denies an operation.

    The entry applies to requests of a principal from a host (``*`` for all).
    """

    principal: str
    host: str
    resource_pattern: ResourcePattern

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operation is ACLOperation.ANY:
            raise IllegalArgumentError("operation=ANY is valid only in a filter; an entry may have ALL")
        if self.permission_type is ACLPermissionType.ANY:
            raise IllegalArgumentError("permission_type: an entry must be ALLOW or DENY, not ANY")
        if not isinstance(self.resource_pattern, ResourcePattern):
            raise IllegalArgumentError("resource_pattern: an entry needs a ResourcePattern, not a filter")
