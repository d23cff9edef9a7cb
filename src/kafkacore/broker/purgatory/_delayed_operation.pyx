"""The purgatory holds requests that cannot be answered yet.

An operation is completed once, by an event on one of its keys or by its deadline. Only the network thread
uses a purgatory, so there are no locks. The design is that of Kafka's ``DelayedOperationPurgatory``.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.broker.purgatory._timer cimport Timer, TimerTask

# Deadline of an operation without a timeout. Such an operation waits until an event completes it or a closed
# connection cancels it.
NEVER_MS = INFINITY


cdef class DelayedOperation(TimerTask):
    """A waiting request. A subclass determines when the request can be answered, and sends the response.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the operation expires; :data:`NEVER_MS` for no timeout.

    Attributes
    ----------
    purgatory, keys:
        The purgatory in which the operation waits, and the keys whose events can complete the operation.
    on_failure:
        Called with the exception if :meth:`on_complete` fails. The exception is then not raised, so that it
        does not affect other requests.
    """

    cdef public bint is_completed
    cdef public DelayedOperationPurgatory purgatory
    cdef public tuple keys
    cdef public object on_failure

    def __init__(self, double deadline_ms):
        self.deadline_ms = deadline_ms
        self.keys = ()

    def can_complete(self):
        """Return whether the operation can be completed now.

        This must be fast, because each event on a key calls it.
        """
        raise NotImplementedError(f"{type(self).__name__}.can_complete")

    def on_complete(self, expired):
        """Send the response. Called once, unless the operation is cancelled."""
        raise NotImplementedError(f"{type(self).__name__}.on_complete")

    def force_complete(self, bint expired):
        """Complete the operation now. Return false if it is already complete."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self.purgatory is not None:
            self.purgatory.remove(self)
        try:
            self.on_complete(expired)
        except Exception as error:
            if self.on_failure is None:
                raise
            self.on_failure(error)
        return True

    def run(self):
        """Complete the operation as expired; the timer calls this at the deadline."""
        self.force_complete(True)


cdef class DelayedOperationPurgatory:
    """Delayed operations, stored under the keys whose events can complete them.

    Parameters
    ----------
    timer:
        Timer of the broker. It completes the operations that have reached their deadlines.
    """

    cdef Timer timer
    cdef dict watchers
    cdef Py_ssize_t waiting_count

    def __init__(self, Timer timer not None):
        self.timer = timer
        self.watchers = {}

    def __len__(self):
        """Return the number of operations that are waiting."""
        return self.waiting_count

    @property
    def watched_key_count(self):
        return len(self.watchers)

    def try_complete_else_watch(self, DelayedOperation operation not None, keys):
        """Complete ``operation`` if possible, else watch it under ``keys``; return whether it is complete."""
        if operation.can_complete():
            return operation.force_complete(False)
        self.watch(operation, keys)
        return False

    def watch(self, DelayedOperation operation not None, keys):
        """Watch ``operation``, which cannot be completed now, for events on ``keys`` and its deadline."""
        cdef dict watching
        operation.purgatory = self
        operation.keys = tuple(keys)
        self.waiting_count += 1
        for key in operation.keys:
            watching = self.watchers.get(key)
            if watching is None:
                watching = self.watchers[key] = {}
            watching[operation] = None
        if operation.deadline_ms != INFINITY:
            self.timer.add_task(operation.deadline_ms, operation)

    def check_and_complete(self, key):
        """Complete the operations that can be completed after an event on ``key``; return their number."""
        cdef dict watching = self.watchers.get(key)
        cdef DelayedOperation operation
        cdef Py_ssize_t completed = 0
        if watching is None:
            return 0
        # Iterate over a copy, because completing an operation may add another operation to the same key.
        for operation in list(watching):
            if not operation.is_completed and operation.can_complete():
                completed += <bint> operation.force_complete(False)
        return completed

    def cancel(self, DelayedOperation operation not None):
        """Drop an operation without completing it, if this purgatory watches it."""
        if operation.purgatory is self:
            operation.is_completed = True
            self.remove(operation)

    cdef int remove(self, DelayedOperation operation) except -1:
        """Stop watching an operation and remove it from the timer."""
        cdef dict watching
        operation.purgatory = None
        # A subclass may override the method.
        operation.cancel()
        self.waiting_count -= 1
        for key in operation.keys:
            watching = self.watchers.get(key)
            # ``keys`` may contain the same key twice.
            if watching is not None:
                watching.pop(operation, None)
                if not watching:
                    del self.watchers[key]
        return 0


@cython.final
cdef class DelayedProduce(DelayedOperation):
    """A Produce that waits until the high watermark has passed all its records, or until they are lost.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the Produce times out.
    pending:
        Partitions to which the request has appended records.
    answer:
        Called once, when every outcome is known or the deadline is reached.
    """

    cdef object pending, answer

    def __init__(self, double deadline_ms, pending, answer):
        DelayedOperation.__init__(self, deadline_ms)
        self.pending = pending
        self.answer = answer

    def can_complete(self):
        for partition in self.pending:
            if partition.outcome() is None:
                return False
        return True

    def on_complete(self, expired):
        self.answer()


@cython.final
cdef class DelayedFetch(DelayedOperation):
    """A Fetch that waits until ``min_bytes`` of records are available.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the Fetch is answered with the records that are available.
    is_satisfied:
        Returns whether enough bytes or an error can be returned now.
    answer:
        Called once to answer the Fetch. The function reads the partitions again, because more records may
        have been appended.
    """

    cdef object is_satisfied, answer

    def __init__(self, double deadline_ms, is_satisfied, answer):
        DelayedOperation.__init__(self, deadline_ms)
        self.is_satisfied = is_satisfied
        self.answer = answer

    def can_complete(self):
        return self.is_satisfied()

    def on_complete(self, expired):
        self.answer()
