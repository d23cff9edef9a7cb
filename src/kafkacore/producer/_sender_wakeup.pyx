"""When the network thread has to be woken: what happens to batches in, wake-ups out, as few as will do.

A wake-up is a system call, and a turn of a thread that wants the GIL. Any thread may call, each under the
GIL. Does not know: what the sender does in its turn.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.producer._partition_queue cimport PartitionQueue


@cython.final
cdef class SenderWakeup:
    """Of one sender.

    Parameters
    ----------
    wakeup
        Ends the sender's wait, or its next one at once.
    """

    def __init__(self, wakeup):
        self._wakeup = wakeup
        self._sleeps_until_ms = INFINITY
        self._busy_nodes = ()

    # ---- Of the sender -----------------------------------------------------------------------------------

    def sender_looks(self):
        """The sender is about to look at what there is: whatever comes from now on has to wake it."""
        self._sleeps_until_ms = INFINITY
        self._busy_nodes = ()
        self._is_pending = False

    def sender_sleeps(self, double until_ms, busy_nodes=()):
        """The sender has seen everything.

        Parameters
        ----------
        until_ms
            When it wakes by itself: a batch that is due later need not wake it.
        busy_nodes
            Ids of nodes that take no request before they have answered one, which wakes the sender: batches
            for them need not.
        """
        self._sleeps_until_ms = until_ms
        self._busy_nodes = busy_nodes

    # ---- Of those who append -----------------------------------------------------------------------------

    cdef bint _is_of_use(self, PartitionQueue queue) except -1:
        return not self._busy_nodes or queue._leader is None or queue._leader[0] not in self._busy_nodes

    cdef int batch_is_full(self, PartitionQueue queue) except -1:
        """A batch takes no more records, and so is to be sent at once."""
        return self.wake() if self._is_of_use(queue) else 0

    cdef int batch_is_due(self, PartitionQueue queue, double due_ms) except -1:
        """A new batch is to be sent at ``due_ms``."""
        return self.wake() if due_ms < self._sleeps_until_ms and self._is_of_use(queue) else 0

    cpdef int wake(self) except -1:
        """Have the sender look at once."""
        # Once is enough until it has looked.
        if not self._is_pending:
            self._is_pending = True
            try:
                self._wakeup()
            except BaseException:
                # A Ctrl-C may have come before the system call: without it, what was appended would lie.
                self._is_pending = False
                self._wakeup()
                raise
        return 0
