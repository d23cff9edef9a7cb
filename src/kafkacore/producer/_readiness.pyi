from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.producer.record_accumulator import ClusterView
from kafkacore.structs import Node

def check_ready(
    active: dict[PartitionQueue, None],
    cluster: ClusterView,
    now_ms: float,
    linger_ms: float,
    send_now: bool,
    wakeup: SenderWakeup,
    nodes: dict[int, Node],
    unknown_leader_topics: set[str],
) -> float: ...
def by_leader(
    active: dict[PartitionQueue, None], cluster: ClusterView
) -> dict[int, list[PartitionQueue]]: ...
def backing_off_ms(queue: PartitionQueue, cluster: ClusterView, now_ms: float) -> float: ...
def move_to_back(active: dict[PartitionQueue, None], queue: PartitionQueue) -> None: ...
