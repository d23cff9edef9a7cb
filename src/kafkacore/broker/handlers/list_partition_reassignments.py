"""ListPartitionReassignments: which partitions are being moved to other brokers: none (KIP-455).

Version 0. Gaps: none; a partition of this broker has one replica, and AlterPartitionReassignments is not
served. Kafka's topics tool asks before it describes a topic.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: Request, services: BrokerServices) -> Any:
    return ListPartitionReassignmentsResponse(error_message=None)


HANDLER = ApiHandler(ListPartitionReassignmentsRequest, 0, 0, handle)
