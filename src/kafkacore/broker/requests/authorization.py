"""Authorization checks that the request handlers make, as in Kafka's ``AuthHelper``.

Without an authorizer, everything is allowed. A handler does not look up a resource that the client may not
describe, so that the response does not reveal whether the resource exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    SecurityDisabledError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.requests._request import Request, RequestContext
    from kafkacore.broker.requests.authorizer_log import AuthorizerLog

#: The name of the only resource of type ``CLUSTER``.
CLUSTER_NAME: Final = "kafka-cluster"

#: Operations that each resource type supports, as in Kafka's ``AclEntry``.
SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: frozenset(
        {
            ACLOperation.READ,
            ACLOperation.WRITE,
            ACLOperation.CREATE,
            ACLOperation.DESCRIBE,
            ACLOperation.DELETE,
            ACLOperation.ALTER,
            ACLOperation.DESCRIBE_CONFIGS,
            ACLOperation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {
            ACLOperation.READ,
            ACLOperation.DESCRIBE,
            ACLOperation.DELETE,
            ACLOperation.DESCRIBE_CONFIGS,
            ACLOperation.ALTER_CONFIGS,
        }
    ),
    ResourceType.CLUSTER: frozenset(
        {
            ACLOperation.CREATE,
            ACLOperation.CLUSTER_ACTION,
            ACLOperation.DESCRIBE_CONFIGS,
            ACLOperation.ALTER_CONFIGS,
            ACLOperation.IDEMPOTENT_WRITE,
            ACLOperation.ALTER,
            ACLOperation.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {ACLOperation.DESCRIBE, ACLOperation.WRITE, ACLOperation.TWO_PHASE_COMMIT}
    ),
    ResourceType.DELEGATION_TOKEN: frozenset({ACLOperation.DESCRIBE}),
    ResourceType.USER: frozenset({ACLOperation.CREATE_TOKENS, ACLOperation.DESCRIBE_TOKENS}),
}

_ERRORS: Final[dict[ResourceType, type[AuthorizationError]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailedError,
    ResourceType.GROUP: GroupAuthorizationFailedError,
    ResourceType.CLUSTER: ClusterAuthorizationFailedError,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailedError,
}
#: Resource type of a configuration request → the resource type whose permissions are checked. For brokers
#: (4), broker loggers (8) and client metrics (16), the permissions of the cluster are checked.
_CONFIGURED: Final[dict[int, ResourceType]] = {
    2: ResourceType.TOPIC,
    4: ResourceType.CLUSTER,
    8: ResourceType.CLUSTER,
    16: ResourceType.CLUSTER,
    32: ResourceType.GROUP,
}


class Authorizer(Protocol):
    """Decides what clients may do. It runs on the network thread, so it must not block."""

    def authorize(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Return whether the client of ``context`` may perform the operation on the resource."""

    def authorize_by_resource_type(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the client may perform the operation on at least one resource of the type."""

    def why_denied(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> str:
        """Return why :meth:`authorize` has denied the operation, as a short log text with escaped names."""


class AuthorizationServices(Protocol):
    """The parts of the broker that authorization checks use."""

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer; ``None`` if everything is allowed."""

    @property
    def authorizer_log(self) -> AuthorizerLog: ...


def allowed(
    request: Request,
    services: AuthorizationServices,
    operation: ACLOperation,
    resource_type: ResourceType,
    name: str,
    *,
    is_asked_for: bool = True,
) -> bool:
    """Return whether the client may perform an operation on a resource.

    Parameters
    ----------
    request:
        The client's request.
    services:
        Parts of the broker that the check uses.
    operation:
        Operation to check.
    resource_type, name:
        The resource.
    is_asked_for:
        Whether to log a denial. The value must be false if the client did not name this resource, or if
        another permission may allow the request.
    """
    authorizer = services.authorizer
    if authorizer is None or authorizer.authorize(request.context, operation, resource_type, name):
        return True
    if is_asked_for:
        services.authorizer_log.add(request, authorizer, operation, resource_type, name)
    return False


def allowed_on_cluster(
    request: Request, services: AuthorizationServices, operation: ACLOperation, *, is_asked_for: bool = True
) -> bool:
    """Return whether the client may perform an operation on the cluster, like :func:`allowed`."""
    return allowed(
        request, services, operation, ResourceType.CLUSTER, CLUSTER_NAME, is_asked_for=is_asked_for
    )


def allowed_on_any(
    request: Request, services: AuthorizationServices, operation: ACLOperation, resource_type: ResourceType
) -> bool:
    """Return whether the client may perform an operation on at least one resource of a type (KIP-679).

    The resource need not exist.
    """
    authorizer = services.authorizer
    return authorizer is None or authorizer.authorize_by_resource_type(
        request.context, operation, resource_type
    )


def allowed_names(
    request: Request,
    services: AuthorizationServices,
    operation: ACLOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    is_asked_for: bool = True,
) -> set[str]:
    """Return the names of the resources on which the client may perform an operation.

    ``is_asked_for`` has the same meaning as in :func:`allowed`.
    """
    if services.authorizer is None:
        return set(names)
    return {
        name
        for name in dict.fromkeys(names)
        if allowed(request, services, operation, resource_type, name, is_asked_for=is_asked_for)
    }


def require(
    request: Request,
    services: AuthorizationServices,
    operation: ACLOperation,
    resource_type: ResourceType,
    name: str,
    topic_id: Uuid | None = None,
) -> None:
    """Check that the client may perform an operation on a resource.

    Parameters
    ----------
    request:
        The client's request.
    services:
        Parts of the broker that the check uses.
    operation:
        Operation to check.
    resource_type, name:
        The resource.
    topic_id:
        Id of the topic, if the request identifies the topic by id. The error then contains the id and not the
        name, because the client may not be allowed to know the name.

    Raises
    ------
    TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError
        The client is not authorized. The type depends on the resource type.
    """
    if allowed(request, services, operation, resource_type, name):
        return
    is_cluster = resource_type == ResourceType.CLUSTER
    what = "the cluster" if is_cluster else f"{resource_type.name.lower().replace('_', ' ')} {name!r}"
    if topic_id is not None:
        what = f"the topic with id {topic_id}"
    raise _ERRORS[resource_type](
        f"{request.context.principal} needs an ACL that allows {operation.name} on {what}"
    )


def require_cluster(request: Request, services: AuthorizationServices, operation: ACLOperation) -> None:
    """Check that the client may perform an operation on the cluster, like :func:`require`."""
    require(request, services, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def require_acls(request: Request, services: AuthorizationServices, operation: ACLOperation) -> None:
    """Check that the client may perform an operation on the cluster's ACLs.

    Raises
    ------
    ClusterAuthorizationFailedError
        The client is not authorized.
    SecurityDisabledError
        The broker has no authorizer, so ACLs have no effect.
    """
    require_cluster(request, services, operation)
    if services.authorizer is None:
        raise SecurityDisabledError(
            "No Authorizer is configured. Set authorizer.class.name in the broker's configuration."
        )


def require_configs(
    request: Request, services: AuthorizationServices, operation: ACLOperation, kind: int, name: str
) -> None:
    """Check that the client may perform an operation on the resource of a configuration request.

    An unknown ``kind`` passes the check, because the handler rejects it.
    """
    resource_type = _CONFIGURED.get(kind)
    if resource_type is not None:
        is_cluster = resource_type == ResourceType.CLUSTER
        require(request, services, operation, resource_type, CLUSTER_NAME if is_cluster else name)


def require_idempotent_write(request: Request, services: AuthorizationServices) -> None:
    """Check that the client may be an idempotent producer (KIP-679).

    The client needs IDEMPOTENT_WRITE on the cluster, or WRITE on at least one topic.

    Raises
    ------
    ClusterAuthorizationFailedError
        The client is not authorized.
    """
    on_cluster = ACLOperation.IDEMPOTENT_WRITE
    if not (
        allowed_on_cluster(request, services, on_cluster, is_asked_for=False)
        or allowed_on_any(request, services, ACLOperation.WRITE, ResourceType.TOPIC)
    ):
        assert services.authorizer is not None, "without an authorizer, everything is allowed"
        services.authorizer_log.add(
            request, services.authorizer, on_cluster, ResourceType.CLUSTER, CLUSTER_NAME
        )
        raise ClusterAuthorizationFailedError(
            f"{request.context.principal} needs an ACL that allows WRITE on a topic"
        )


def authorized_operations(
    request: Request, services: AuthorizationServices, resource_type: ResourceType, name: str
) -> int:
    """Return the operations that the client may perform on a resource, as a bit field (KIP-430)."""
    return bit_field(
        operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if allowed(request, services, operation, resource_type, name, is_asked_for=False)
    )


def cluster_operations(request: Request, services: AuthorizationServices) -> int:
    """Return the client's operations on the cluster as a bit field; 0 if it may not describe the cluster."""
    if not allowed_on_cluster(request, services, ACLOperation.DESCRIBE, is_asked_for=False):
        return 0
    return authorized_operations(request, services, ResourceType.CLUSTER, CLUSTER_NAME)


def bit_field(operations: Iterable[ACLOperation]) -> int:
    """Encode operations as a bit field in which bit n is operation n."""
    return sum(1 << operation for operation in set(operations))
