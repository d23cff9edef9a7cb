"""From a frame to its answer: decodes a request, finds its handler, and encodes what the handler says.

A frame's payload in; pieces of a response frame out, now or later. Does not know: sockets, what any API does.
Source of the shape: Kafka's ``KafkaApis``.
"""

from __future__ import annotations

import logging

from kafkacore.broker.counted_cursor import counted
from kafkacore.broker.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
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
    sync_group,
)
from kafkacore.broker.metrics import BrokerMetrics
from kafkacore.broker.request import (
    ANSWERED_LATER,
    ApiHandler,
    BrokerServices,
    CloseConnectionError,
    Interceptor,
    OnResponse,
    Request,
    RequestContext,
)
from kafkacore.protocol.message import skip_tagged_fields
from kafkacore.wire import Cursor

logger = logging.getLogger(__name__)

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
    describe_groups.HANDLER,
    list_groups.HANDLER,
    api_versions.HANDLER,
    create_topics.HANDLER,
    delete_topics.HANDLER,
    init_producer_id.HANDLER,
    offset_for_leader_epoch.HANDLER,
    describe_configs.HANDLER,
    alter_configs.HANDLER,
    incremental_alter_configs.HANDLER,
    describe_log_dirs.HANDLER,
    describe_producers.HANDLER,
    describe_topic_partitions.HANDLER,
    list_partition_reassignments.HANDLER,
    elect_leaders.HANDLER,
    create_partitions.HANDLER,
    delete_records.HANDLER,
    delete_groups.HANDLER,
    offset_delete.HANDLER,
    describe_cluster.HANDLER,
)


class KafkaApis:
    """Used by the network thread alone.

    Parameters
    ----------
    services:
        What the handlers work with.
    interceptor:
        Gets each request before its handler does.
    """

    def __init__(self, services: BrokerServices, interceptor: Interceptor | None = None) -> None:
        self._services = services
        self._interceptor = interceptor
        self._handlers: dict[int, ApiHandler] = {h.request_class.API_KEY: h for h in HANDLERS}
        names = {key: h.request_class.NAME.removesuffix("Request") for key, h in self._handlers.items()}
        self.metrics = BrokerMetrics(names, services.clock)
        api_versions.serve(HANDLERS)

    def handle(self, context: RequestContext, payload: memoryview, on_response: OnResponse) -> Request:
        """Handle one request; ``on_response`` is called before this returns, or later if it has to wait.

        Raises
        ------
        MalformedMessageError
            The bytes are no request of the API and version that they claim to be.
        CloseConnectionError
            The request cannot be answered in its own protocol.
        """
        cursor = Cursor(payload)
        # What every version of the header begins with; the rest is only known once the version is.
        api_key, version, correlation_id = cursor.read_int16(), cursor.read_int16(), cursor.read_int32()
        handler = self._handlers.get(api_key)
        if handler is None:
            raise CloseConnectionError(f"API key {api_key} is not served")
        if not handler.min_version <= version <= handler.max_version:
            if handler is not api_versions.HANDLER:
                raise CloseConnectionError(f"{handler.request_class.NAME} version {version} is not served")
            request = Request(context, api_key, 0, correlation_id, None, None, handler.encode, on_response)
            request.respond(api_versions.unsupported_version())
            return request
        client_id = cursor.read_nullable_string(False)
        flexible_from = handler.request_class.FLEXIBLE_FROM
        if flexible_from is not None and version >= flexible_from:
            tag_count = cursor.read_unsigned_varint()
            if tag_count:
                skip_tagged_fields(cursor, tag_count)
        clock, stats = self._services.clock, self.metrics.apis[api_key]
        began_ms = clock.monotonic_ms()
        stats.queue.record(began_ms - self.metrics.turn_began_ms, began_ms)
        # Produce reads its own, in C.
        read_from = cursor if handler is produce.HANDLER else counted(cursor)
        message = (handler.decode or handler.request_class.decode)(read_from, version)
        request = Request(
            context, api_key, version, correlation_id, client_id, message, handler.encode, on_response
        )
        context.client_id = client_id
        request.stats, request.began_ms = stats, began_ms
        if self._services.quotas.is_enabled:
            request.size, request.quotas = len(payload), self._services.quotas
        if self._interceptor is None:
            self._serve(request)
        else:
            self._interceptor(request, self._serve)
        return request

    def _serve(self, request: Request) -> None:
        response = self._handlers[request.api_key].handle(request, self._services)
        if response is ANSWERED_LATER:
            request.waits_since_ms = self._services.clock.monotonic_ms()
        else:
            request.respond(response)
