"""From a frame to its answer: decodes a request, finds its handler, and encodes what the handler says.

A frame's payload in; pieces of a response frame out, now or later. Does not know: sockets, what any API does.
Source of the shape: Kafka's ``KafkaApis``.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.handlers import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_user_scram_credentials,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl,
    sync_group,
    unregister_broker,
    update_features,
)
from kafkacore.broker.handlers.services import (
    HANG_UP,
    ApiHandler,
    BrokerServices,
    CloseConnectionError,
    Interceptor,
    OnResponse,
    Request,
    RequestContext,
)
from kafkacore.broker.server._dispatch import Dispatcher
from kafkacore.broker.server.metrics import BrokerMetrics
from kafkacore.errors import IllegalSaslStateError

#: Every API that this broker serves. What is not here is not advertised, and its request closes the
#: connection.
HANDLERS: tuple[ApiHandler, ...] = (
    produce.HANDLER,
    fetch.HANDLER,
    list_offsets.HANDLER,
    metadata.HANDLER,
    offset_commit.HANDLER,
    offset_fetch.HANDLER,
    find_coordinator.HANDLER,
    join_group.HANDLER,
    heartbeat.HANDLER,
    leave_group.HANDLER,
    sync_group.HANDLER,
    consumer_group_heartbeat.HANDLER,
    describe_groups.HANDLER,
    list_groups.HANDLER,
    sasl.HANDSHAKE,
    api_versions.HANDLER,
    create_topics.HANDLER,
    delete_topics.HANDLER,
    init_producer_id.HANDLER,
    offset_for_leader_epoch.HANDLER,
    sasl.AUTHENTICATE,
    describe_configs.HANDLER,
    alter_configs.HANDLER,
    incremental_alter_configs.HANDLER,
    describe_log_dirs.HANDLER,
    describe_producers.HANDLER,
    describe_topic_partitions.HANDLER,
    alter_partition_reassignments.HANDLER,
    list_partition_reassignments.HANDLER,
    elect_leaders.HANDLER,
    create_partitions.HANDLER,
    delete_records.HANDLER,
    delete_groups.HANDLER,
    offset_delete.HANDLER,
    describe_cluster.HANDLER,
    update_features.HANDLER,
    unregister_broker.HANDLER,
    describe_acls.HANDLER,
    create_acls.HANDLER,
    delete_acls.HANDLER,
    describe_client_quotas.HANDLER,
    alter_client_quotas.HANDLER,
    describe_user_scram_credentials.HANDLER,
    alter_user_scram_credentials.HANDLER,
)


class KafkaApis(Dispatcher):
    """Used by the network thread alone.

    Parameters
    ----------
    services:
        What the handlers work with.
    interceptor:
        Gets each request before its handler does.
    """

    def __init__(self, services: BrokerServices, interceptor: Interceptor | None = None) -> None:
        handlers = {h.request_class.API_KEY: h for h in HANDLERS}
        names = {key: h.request_class.NAME.removesuffix("Request") for key, h in handlers.items()}
        super().__init__(services, interceptor, handlers, BrokerMetrics(names, services.clock))
        api_versions.serve(HANDLERS)

    def answer_before_authentication(self, context: RequestContext, payload: memoryview) -> list[Any]:
        """The answer to an ApiVersions request, the one that may be made before it is known who asks.

        Raises
        ------
        MalformedMessageError, IllegalSaslStateError
            It is none.
        """
        answers: list[list[Any] | None] = []
        try:
            self.handle(context, payload, lambda request, pieces: answers.append(pieces))
        except CloseConnectionError as error:
            raise IllegalSaslStateError(str(error)) from error
        assert answers, "ApiVersions is answered at once"
        if answers[0] is None or answers[0] is HANG_UP:
            raise IllegalSaslStateError("there is no answer to its ApiVersions request")
        return answers[0]

    def _answer_unknown(
        self,
        handler: ApiHandler,
        context: RequestContext,
        api_key: int,
        version: int,
        correlation_id: int,
        on_response: OnResponse,
    ) -> Request:
        """A version that is not served: only ApiVersions has an answer to that."""
        if handler is not api_versions.HANDLER:
            raise CloseConnectionError(f"{handler.request_class.NAME} version {version} is not served")
        request = Request(context, api_key, 0, correlation_id, None, None, handler.encode, on_response)
        request.respond(api_versions.unsupported_version())
        return request
