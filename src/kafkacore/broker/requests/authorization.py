"""May this client do that? What a handler asks before it touches data.

Without an authorizer everybody may do everything, which costs one comparison. A resource that may not be
described is not looked for, so that a response does not show whether it exists. ``services.authorizer`` has
the rules. The shape is that of Kafka's ``AuthHelper``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from kafkacore.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    SecurityDisabledError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)
from kafkacore.structs import ACLOperation, ResourceType

if TYPE_CHECKING:
    from kafkacore.broker.requests._request import Request, RequestContext
    from kafkacore.broker.requests.authorizer_log import AuthorizerLog

#: The name of the one resource of type ``CLUSTER``.
CLUSTER_NAME: Final = "kafka-cluster"

#: What can be done with a resource of each type, as in Kafka's ``AclEntry``.
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
#: Whose a resource of requests about configuration is, by its number there: brokers (4), their loggers (8)
#: and client metrics (16) are the cluster's.
_CONFIGURED: Final[dict[int, ResourceType]] = {
    2: ResourceType.TOPIC,
    4: ResourceType.CLUSTER,
    8: ResourceType.CLUSTER,
    16: ResourceType.CLUSTER,
    32: ResourceType.GROUP,
}


class Authorizer(Protocol):
    """Who may do what. Asked on the network thread, so it answers from memory."""

    def authorize(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the client of ``context`` may do that to the resource."""

    def authorize_by_resource_type(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of the type that it may do that to."""

    def why_denied(
        self, context: RequestContext, operation: ACLOperation, resource_type: ResourceType, name: str
    ) -> str:
        """By what :meth:`authorize` has denied that, for a line of the log: short, names escaped."""


class AuthorizationServices(Protocol):
    """What these questions need of the broker."""

    @property
    def authorizer(self) -> Authorizer | None:
        """``None`` where everybody may do everything."""

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
    """Whether the client may do that to one resource.

    Parameters
    ----------
    is_asked_for:
        Whether the client has asked for that: then a denial is logged. Otherwise there is another way to what
        it has asked for, or it is not shown what it has not named.
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
    """As :func:`allowed`, of the cluster."""
    return allowed(
        request, services, operation, ResourceType.CLUSTER, CLUSTER_NAME, is_asked_for=is_asked_for
    )


def allowed_on_any(
    request: Request, services: AuthorizationServices, operation: ACLOperation, resource_type: ResourceType
) -> bool:
    """Whether the client may do that to any resource of a type, existing or not (KIP-679)."""
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
    """Those of some resources that the client may do that to; ``is_asked_for`` as of :func:`allowed`."""
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
    topic_id: UUID | bytes | None = None,
) -> None:
    """Return if the client may do that to one resource.

    Parameters
    ----------
    topic_id:
        The topic's id, if the client asks by id: the error must not have the name, which it may not know.

    Raises
    ------
    TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError
        By the resource's type; the response has it.
    """
    if allowed(request, services, operation, resource_type, name):
        return
    is_cluster = resource_type == ResourceType.CLUSTER
    what = "the cluster" if is_cluster else f"{resource_type.name.lower().replace('_', ' ')} {name!r}"
    if topic_id is not None:
        what = f"the topic with id {topic_id if isinstance(topic_id, UUID) else UUID(bytes=topic_id)}"
    raise _ERRORS[resource_type](
        f"{request.context.principal} needs an ACL that allows {operation.name} on {what}"
    )


def require_cluster(request: Request, services: AuthorizationServices, operation: ACLOperation) -> None:
    """As :func:`require`, of the cluster."""
    require(request, services, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def require_acls(request: Request, services: AuthorizationServices, operation: ACLOperation) -> None:
    """As :func:`require_cluster`, of its access control entries.

    Raises
    ------
    SecurityDisabledError
        Nobody obeys them.
    """
    require_cluster(request, services, operation)
    if services.authorizer is None:
        raise SecurityDisabledError(
            "No Authorizer is configured: set authorizer.class.name in the broker's configuration."
        )


def require_configs(
    request: Request, services: AuthorizationServices, operation: ACLOperation, kind: int, name: str
) -> None:
    """As :func:`require`, of what ``kind`` and ``name`` mean in a request about configuration.

    A kind that nobody knows is let through, to be refused as such.
    """
    resource_type = _CONFIGURED.get(kind)
    if resource_type is not None:
        is_cluster = resource_type == ResourceType.CLUSTER
        require(request, services, operation, resource_type, CLUSTER_NAME if is_cluster else name)


def require_idempotent_write(request: Request, services: AuthorizationServices) -> None:
    """Return if the client may be an idempotent producer: of the cluster, or of any topic (KIP-679).

    Raises
    ------
    ClusterAuthorizationFailedError
        It may write to no topic.
    """
    on_cluster = ACLOperation.IDEMPOTENT_WRITE
    if not (
        allowed_on_cluster(request, services, on_cluster, is_asked_for=False)
        or allowed_on_any(request, services, ACLOperation.WRITE, ResourceType.TOPIC)
    ):
        assert services.authorizer is not None, "without one everything is allowed"
        services.authorizer_log.add(
            request, services.authorizer, on_cluster, ResourceType.CLUSTER, CLUSTER_NAME
        )
        raise ClusterAuthorizationFailedError(
            f"{request.context.principal} needs an ACL that allows WRITE on a topic"
        )


def authorized_operations(
    request: Request, services: AuthorizationServices, resource_type: ResourceType, name: str
) -> int:
    """All that the client may do to a resource, as a bit field: operation n is bit n (KIP-430)."""
    return bit_field(
        operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if allowed(request, services, operation, resource_type, name, is_asked_for=False)
    )


def cluster_operations(request: Request, services: AuthorizationServices) -> int:
    """As :func:`authorized_operations`, of the cluster; none for whoever may not describe it."""
    if not allowed_on_cluster(request, services, ACLOperation.DESCRIBE, is_asked_for=False):
        return 0
    return authorized_operations(request, services, ResourceType.CLUSTER, CLUSTER_NAME)


def bit_field(operations: Iterable[ACLOperation]) -> int:
    """Operation n is bit n."""
    return sum(1 << operation for operation in set(operations))
