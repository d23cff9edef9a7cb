"""Records that are deleted from a partition's beginning, as retention deletes them. A broker's address and an
offset in, a log that begins there out.
"""

from __future__ import annotations

from eventually import BUDGET_MS

from kafkacore.admin import KafkaAdminClient
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest


def move_log_start(bootstrap_servers: str, topic: str, partition: int, offset: int) -> None:
    """Delete what lies before ``offset``; of a cluster of one broker."""
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])],
        timeout_ms=int(BUDGET_MS),
    )
    with KafkaAdminClient(bootstrap_servers=bootstrap_servers) as admin:
        answer = admin._requester.send(request, BUDGET_MS)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.low_watermark) == (0, offset)
