"""The nouns of access control: checked values in, nothing out. Names and arguments are kafka-python's."""

from __future__ import annotations

from dataclasses import dataclass

from kafkacore.errors import IllegalArgumentError
from kafkacore.structs import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType


def _check_member(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise IllegalArgumentError(f"{name}={value!r}: it must be a member of {kind.__name__}")


@dataclass(frozen=True)
class ResourcePatternFilter:
    """Which resources are meant.

    Parameters
    ----------
    resource_type:
        ``ResourceType.ANY`` for all kinds.
    resource_name:
        ``None`` for all names.
    pattern_type:
        ``LITERAL`` or ``PREFIXED`` for entries that were made so; ``ANY`` for both; ``MATCH`` for all entries
        that have an effect on the resource of this name.

    Raises
    ------
    IllegalArgumentError
        For what is no member of its enumeration.
    """

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: ACLResourcePatternType

    def __post_init__(self) -> None:
        _check_member("resource_type", self.resource_type, ResourceType)
        _check_member("pattern_type", self.pattern_type, ACLResourcePatternType)


@dataclass(frozen=True)
class ResourcePattern(ResourcePatternFilter):
    """The resources that an entry is about: one by its name, all that begin with it, or all (``*``)."""

    resource_name: str
    pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resource_type is ResourceType.ANY:
            raise IllegalArgumentError("an entry is about one kind of resource, not ANY")
        if self.pattern_type in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH):
            raise IllegalArgumentError(f"an entry is LITERAL or PREFIXED, not {self.pattern_type.name}")


@dataclass(frozen=True)
class ACLFilter:
    """Which entries are meant.

    Parameters
    ----------
    principal, host:
        As ``User:alice`` and ``192.0.2.7``; ``None`` for all.
    operation, permission_type:
        ``ANY`` for all.
    resource_pattern:
        The resources that they are about.

    Raises
    ------
    IllegalArgumentError
        For what is no member of its enumeration.
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
    """One entry: this principal, from this host (``*`` for everywhere), may or may not do this."""

    principal: str
    host: str
    resource_pattern: ResourcePattern

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operation is ACLOperation.ANY:
            raise IllegalArgumentError("an entry is about one operation, or ALL, not ANY")
        if self.permission_type is ACLPermissionType.ANY:
            raise IllegalArgumentError("an entry is ALLOW or DENY, not ANY")
        if not isinstance(self.resource_pattern, ResourcePattern):
            raise IllegalArgumentError("an entry is about a ResourcePattern; a filter is for a search")
