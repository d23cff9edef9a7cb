"""Which partitions have something to send, and to whom; asked in every turn of the sender, of all that wait.

Queues and a snapshot of the cluster in, nodes and waits out. Does not know: requests, connections.
"""

from libc.math cimport INFINITY

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._partition_queue cimport PartitionQueue


cdef int _follow(PartitionQueue queue, cluster) except -1:
    """Look the partition's leader up, once for each snapshot."""
    if queue._cluster is not cluster:
        queue._leader = cluster.leader_for(queue.topic_partition)
        epoch = cluster.leader_epoch(queue.topic_partition)
        queue._leader_epoch = -1 if epoch is None else epoch
        queue._cluster = cluster
    return 0


cdef double _backing_off_ms(PartitionQueue queue, ProducerBatch head, double now_ms) except? -1:
    if not head.has_leader_changed(queue._leader_epoch) and head.attempts > 0:
        return head.last_attempt_ms + head.backoff_ms - now_ms
    return 0.0


def backing_off_ms(PartitionQueue queue not None, cluster, double now_ms):
    """Milliseconds for which the head batch still waits after a failure."""
    _follow(queue, cluster)
    return _backing_off_ms(queue, queue._batches[0], now_ms)


def check_ready(dict active not None, cluster, double now_ms, double linger_ms, bint send_now,
                dict nodes not None, set unknown_leader_topics not None):
    """Find the nodes with data to be sent.

    Parameters
    ----------
    active
        The queues that have batches; those that have none any more are taken out.
    cluster
        Says who leads.
    linger_ms
        How long a batch waits for more records; not at all with ``send_now``.
    nodes
        Node id → node: found ones are added.
    unknown_leader_topics
        Topics of partitions without a leader are added.

    Returns
    -------
    Milliseconds until one more is ready by itself; infinite if none will be.
    """
    cdef PartitionQueue queue
    cdef ProducerBatch head
    cdef double next_ms = INFINITY
    cdef double wait_ms
    for queue in list(active):
        if len(queue._batches) == 0:
            active.pop(queue, None)
            continue
        _follow(queue, cluster)
        # That call may have let another thread in, but only the sender's takes batches.
        head = queue._batches[0]
        if queue._leader is None:
            unknown_leader_topics.add(queue.topic_partition[0])
            continue
        if queue.muted:
            continue
        wait_ms = _backing_off_ms(queue, head, now_ms)
        if wait_ms <= 0 and not (send_now or head.attempts > 0 or head is not queue._open or head.is_full):
            wait_ms = head.created_ms + linger_ms - now_ms
        if wait_ms <= 0:
            nodes[queue._leader[0]] = queue._leader
        elif wait_ms < next_ms:
            next_ms = wait_ms
    return next_ms


def by_leader(dict active not None, cluster):
    """Node id → queues that it leads and that may be drained, those first that have waited longest."""
    cdef PartitionQueue queue
    cdef dict found = {}
    for queue in list(active):
        _follow(queue, cluster)
        if queue._leader is not None and not queue.muted and len(queue._batches):
            (<list>found.setdefault(queue._leader[0], [])).append(queue)
    return found


def move_to_back(dict active not None, PartitionQueue queue not None):
    """A batch has been taken: behind all others if there are more, out if not."""
    # Safe because of the GIL: an append in between would be forgotten.
    active.pop(queue, None)
    if len(queue._batches):
        active[queue] = None
