"""A partition of a coordinator's topic, and whether its coordinator can answer at once.

A group of 10,000 members sends 2,000 heartbeats per second that change nothing. The methods of the
coordinator's parts, one call after the other, took a fifth of the time of such a heartbeat. ``is_safe_now``
therefore reads their attributes.
"""

cimport cython

from kafkacore.coordinator import partition_for


@cython.final
cdef class CoordinatorPartition:
    """A partition of the topic that this broker coordinates, in one leader epoch.

    Parameters
    ----------
    topic_partition:
        The partition.
    log:
        Log of the partition.
    pending:
        The appends that are not safe yet.

    Attributes
    ----------
    leader_epoch:
        Leader epoch in which the partition is loaded.
    is_loading:
        Whether the records are still being read.
    has_failed:
        Whether the partition's log cannot be read or written until the broker restarts.
    is_gone:
        Whether this broker has stopped coordinating the partition.
    """

    cdef readonly object topic_partition, log, pending
    cdef readonly int leader_epoch
    cdef public bint is_loading, has_failed, is_gone
    cdef object epochs

    def __init__(self, topic_partition, log, pending):
        self.topic_partition = topic_partition
        self.log = log
        self.pending = pending
        self.epochs = log.epochs
        self.leader_epoch = log.leader_epoch
        self.is_loading = True

    cdef bint is_safe_now(self) except -1:
        """Return whether the partition is loaded, and all records applied so far are safe."""
        log, pending = self.log, self.pending
        return (
            not self.is_loading
            and not self.has_failed
            and log.failure is None
            and <int> self.epochs.latest == self.leader_epoch
            and not pending.waiting
            and <long long> log.high_watermark >= <long long> pending.last_required
        )


def is_safe_now(log not None, str key not None, int node_id):
    """Return whether ``log.check`` would pass and ``log.when_safe`` would call its function at once.

    If the state of the partition must first be updated, the result is ``False``. ``CoordinatorLog.check``
    then does that.

    Parameters
    ----------
    log:
        The ``CoordinatorLog``, whose attributes this function reads.
    key:
        Key, such as a group id.
    node_id:
        Node that received the request.
    """
    cdef list partitions = log._partitions
    cdef CoordinatorPartition partition
    if log.refusal is not None or not partitions or <int> log._topics_version != <int> log._topics.version:
        return False
    partition = partitions[<int> partition_for(key, len(partitions))]
    if partition is None:
        return False
    leader = log._cluster.only_node
    if <int> (log._cluster.leader(partition.topic_partition) if leader is None else leader) != node_id:
        return False
    return partition.is_safe_now()
