"""DescribeAcls: return the access control entries that match a filter.

Versions 1 to 3. As in Kafka, a broker without an authorizer returns an error.
"""

from __future__ import annotations

from itertools import groupby

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, MetadataServices, Request
from kafkacore.broker.metadata.acls import asked_filter
from kafkacore.broker.requests.authorization import require_acls
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: Request[DescribeAclsRequest], services: MetadataServices) -> DescribeAclsResponse:
    message = request.message
    try:
        require_acls(request, services, ACLOperation.DESCRIBE)
        wanted = asked_filter(message)
    except BrokerResponseError as error:
        return DescribeAclsResponse(
            error_code=error_code(error), error_message=error_message(error), resources=[]
        )
    found = sorted(services.metadata.acls.matching(wanted))
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResponse.DescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=[
                    DescribeAclsResponse.AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            for (kind, name, pattern), acls in groupby(found, key=lambda acl: acl[:3])
        ],
    )


HANDLER = ApiHandler(DescribeAclsRequest, 1, 3, handle)
