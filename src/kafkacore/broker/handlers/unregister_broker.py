"""UnregisterBroker: remove a stopped node until it starts again.

Version 0. A running node is refused. Apache Kafka also unregisters a running node. A cluster of one node then
serves no client.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerIdNotRegisteredError, BrokerResponseError, InvalidRequestError
from kafkacore.protocol.generated.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: Request[UnregisterBrokerRequest], services: TopicServices) -> UnregisterBrokerResponse:
    broker_id = request.message.broker_id
    try:
        require_cluster(request, services, ACLOperation.ALTER)
        if services.cluster.node(broker_id) is not None:
            raise InvalidRequestError(f"Broker {broker_id} is running in this cluster: stop it instead.")
        if broker_id not in services.cluster.node_ids():
            raise BrokerIdNotRegisteredError(f"Broker ID {broker_id} is not currently registered")
        services.cluster.unregister(broker_id)
        return UnregisterBrokerResponse(error_message=None)
    except BrokerResponseError as error:
        return UnregisterBrokerResponse(error_code=error_code(error), error_message=error_message(error))


HANDLER = ApiHandler(UnregisterBrokerRequest, 0, 0, handle)
