"""Delete records from the beginning of a partition, as retention does."""

from __future__ import annotations

from eventually import BUDGET_MS

from kafkacore.admin import KafkaAdminClient
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest


def move_log_start(bootstrap_servers: str, topic: str, partition: int, offset: int) -> None:
    """Delete the records before ``offset``. The cluster has a single broker."""
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])],
        timeout_ms=int(BUDGET_MS),
    )
    with KafkaAdminClient(bootstrap_servers=bootstrap_servers) as admin:
        answer = admin._requester.send(request, BUDGET_MS)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.low_watermark) == (0, offset)
