"""What is counted of each request of one API: how long it took, and which errors its answer tells.

Does not know: clocks of others, what the figures are shown as.
"""

from kafkacore.broker.replica._produce_call cimport ProduceCall, ProducePartition, ProduceTopic
from kafkacore.metrics._sensor cimport Sensor


cdef class ApiCounts:
    """What :class:`~kafkacore.broker.server.metrics.ApiStats` is made on.

    Parameters
    ----------
    total, remote, queue:
        Milliseconds; see there.
    outer, inner:
        Where in an answer the errors of its parts are: a list, and a list in each of that; or empty.
    """

    cdef readonly Sensor total
    cdef readonly Sensor remote
    cdef readonly Sensor queue
    cdef readonly dict errors
    cdef object _clock
    cdef str _outer
    cdef str _inner

    def __init__(self, Sensor total, Sensor remote, Sensor queue, clock, str outer, str inner):
        self.total, self.remote, self.queue = total, remote, queue
        self.errors = {}
        self._clock = clock
        self._outer, self._inner = outer, inner

    def answered(self, double began_ms, double waited_since_ms, response):
        """A request's answer is ready. ``waited_since_ms`` is 0 if it did not wait."""
        cdef double now_ms = self._clock.monotonic_ms()
        self.total.record(now_ms - began_ms, now_ms)
        if waited_since_ms != 0.0:
            self.remote.record(now_ms - waited_since_ms, now_ms)
        if isinstance(response, ProduceCall):
            self._count_produce(response)
        else:
            self._count(response)

    cdef int _count_produce(self, ProduceCall call) except -1:
        cdef ProduceTopic topic
        cdef ProducePartition partition
        for topic in call.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    self._add(partition.error_code)
        return 0

    cdef int _count(self, response) except -1:
        self._add(getattr(response, "error_code", 0))
        if not self._outer:
            return 0
        for outer in getattr(response, self._outer, None) or ():
            if not self._inner:
                self._add(outer.error_code)
                continue
            for inner in getattr(outer, self._inner):
                self._add(inner.error_code)
        return 0

    cdef int _add(self, code) except -1:
        if code:
            self.errors[code] = self.errors.get(code, 0) + 1
        return 0
