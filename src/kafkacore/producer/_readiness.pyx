"""Find the partitions with batches to send, and their leaders, in each iteration of the sender."""

from libc.math cimport INFINITY

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._sender_wakeup cimport SenderWakeup


cdef int _update_leader(PartitionQueue queue, cluster) except -1:
    """Look up the leader of the queue's partition, once per snapshot of the metadata."""
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
    """Return how many milliseconds the first batch must still back off after a failure."""
    _update_leader(queue, cluster)
    return _backing_off_ms(queue, queue._batches[0], now_ms)


def check_ready(dict active not None, cluster, double now_ms, double linger_ms, bint send_now,
                SenderWakeup wakeup not None, dict nodes not None, set unknown_leader_topics not None):
    """Find the nodes that have data to be sent.

    Parameters
    ----------
    active
        The queues that have batches. The function removes empty queues.
    cluster
        Snapshot of the metadata with the leaders.
    now_ms
        Current monotonic time in milliseconds.
    linger_ms
        How long a batch waits for more records.
    send_now
        Whether batches are sent without waiting for ``linger_ms`` or for a response.
    wakeup
        Knows whether batches wait for a response.
    nodes
        Node id → node. The function adds the nodes that it finds.
    unknown_leader_topics
        Set to which the function adds the topics of partitions without a leader.

    Returns
    -------
    float
        Milliseconds until the time at which the next batch becomes ready; infinity if no batch becomes ready
        without an event.
    """
    cdef PartitionQueue queue
    cdef ProducerBatch head
    cdef double next_ms = INFINITY
    cdef double wait_ms
    for queue in list(active):
        if len(queue._batches) == 0:
            active.pop(queue, None)
            continue
        _update_leader(queue, cluster)
        # The queue still has a batch. Other threads may have run during the call above, but only the sender
        # removes batches.
        head = queue._batches[0]
        if queue._leader is None:
            unknown_leader_topics.add(queue.topic_partition[0])
            continue
        if queue.muted:
            continue
        wait_ms = _backing_off_ms(queue, head, now_ms)
        if wait_ms <= 0 and not (send_now or head.attempts > 0 or head is not queue._open or head.is_full):
            wait_ms = INFINITY if wakeup.collects(queue) else head.created_ms + linger_ms - now_ms
        if wait_ms <= 0:
            nodes[queue._leader[0]] = queue._leader
        elif wait_ms < next_ms:
            next_ms = wait_ms
    return next_ms


def by_leader(dict active not None, cluster):
    """Return node id → queues that may be drained. Queues that have waited longest come first."""
    cdef PartitionQueue queue
    cdef dict found = {}
    for queue in list(active):
        _update_leader(queue, cluster)
        if queue._leader is not None and not queue.muted and len(queue._batches):
            (<list>found.setdefault(queue._leader[0], [])).append(queue)
    return found


def move_to_back(dict active not None, PartitionQueue queue not None):
    """Move a queue to the end after one of its batches was drained, or remove it if it is empty."""
    # These steps hold the GIL, so no other thread can add a batch between them. A batch that is added in
    # between would not be sent.
    active.pop(queue, None)
    if len(queue._batches):
        active[queue] = None
