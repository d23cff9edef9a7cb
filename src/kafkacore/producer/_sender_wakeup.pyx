"""Decide when the network thread has to be woken.

A wake-up costs a system call and a switch of the GIL, so unnecessary wake-ups are avoided. Any thread that
holds the GIL may call the methods.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.producer._partition_queue cimport PartitionQueue


@cython.final
cdef class SenderWakeup:
    """Wakes one sender.

    Parameters
    ----------
    wakeup
        Function that makes the sender's current wait, or else the next wait, return immediately.

    Attributes
    ----------
    in_flight
        The sender's requests in flight, if a batch that is not full waits while its node has one, so that it
        collects more records (Nagle's algorithm); ``None`` if it does not wait.
    """

    def __init__(self, wakeup):
        self.wakeup = wakeup
        self._sleeps_until_ms = INFINITY
        self._busy_nodes = ()

    # ---- Calls of the sender -----------------------------------------------------------------------------

    def sender_runs(self):
        """Record that the sender is about to check all queues. Later events must wake the sender."""
        self._sleeps_until_ms = INFINITY
        self._busy_nodes = ()
        self._is_pending = False

    def sender_sleeps(self, double until_ms, busy_nodes=()):
        """Record that the sender has checked all queues and will wait.

        Parameters
        ----------
        until_ms
            Time at which the sender wakes by itself. A batch that is due later need not wake the sender.
        busy_nodes
            Ids of nodes that accept no further request until they have responded. The response wakes the
            sender, so new batches for these nodes need not wake the sender.
        """
        self._sleeps_until_ms = until_ms
        self._busy_nodes = busy_nodes

    # ---- Calls of appending threads ----------------------------------------------------------------------

    cdef bint _is_of_use(self, PartitionQueue queue) except -1:
        return not self._busy_nodes or queue._leader is None or queue._leader[0] not in self._busy_nodes

    cdef bint collects(self, PartitionQueue queue) except -1:
        """Return whether a batch that is not full waits for a response."""
        return (
            self.in_flight is not None and queue._leader is not None
            and self.in_flight.count(queue._leader[0]) > 0
        )

    cdef int batch_is_full(self, PartitionQueue queue) except -1:
        """Wake the sender for a batch that is full and has to be sent at once."""
        return self.wake() if self._is_of_use(queue) else 0

    cdef int batch_is_due(self, PartitionQueue queue, double due_ms) except -1:
        """Wake the sender for a new batch, if the batch is due before the sender wakes by itself."""
        if due_ms >= self._sleeps_until_ms or not self._is_of_use(queue) or self.collects(queue):
            return 0
        return self.wake()

    cpdef int wake(self) except -1:
        """Wake the sender at once."""
        # A single wake-up is enough until the sender runs again.
        if not self._is_pending:
            self._is_pending = True
            try:
                self.wakeup()
            except BaseException:
                # Ctrl-C may have prevented the wake-up, and the record would not be sent. So wake the sender
                # again now, and once more at the next event.
                self._is_pending = False
                self.wakeup()
                raise
        return 0
