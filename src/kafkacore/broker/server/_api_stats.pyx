"""Counters of one API: latencies of its requests and error codes of its responses."""

cimport cython

from kafkacore.broker.replica._produce_call cimport ProduceCall, ProducePartition, ProduceTopic
from kafkacore.metrics._sensor cimport Sensor


cdef double WINDOW_MS = 30_000.0  # Time window of the averages and maxima.


@cython.final
cdef class ApiStats:
    """The metrics of one API. The network thread writes them, and any thread may read them.

    Parameters
    ----------
    outer, inner:
        Names of the response fields that contain errors: ``outer`` is a list in the response, and ``inner``
        is a list in each element of that list. An empty string means that the field does not exist.

    Attributes
    ----------
    total:
        Milliseconds from the start of the handling until the response is ready.
    remote:
        Milliseconds of ``total`` spent in a purgatory. Only requests that waited there are recorded.
    queue:
        Milliseconds that a request waited for the network thread after it was read.
    errors:
        Number of errors by error code. If a request has several parts, such as partitions, each failed part
        counts as one error.
    """

    cdef readonly str name
    cdef readonly Sensor total
    cdef readonly Sensor remote
    cdef readonly Sensor queue
    cdef readonly dict errors
    cdef object _clock
    cdef str _outer
    cdef str _inner

    def __init__(self, str name not None, clock, str outer not None, str inner not None):
        self.name = name
        self.total = Sensor(f"{name} total", window_ms=WINDOW_MS)
        self.remote = Sensor(f"{name} remote", window_ms=WINDOW_MS)
        self.queue = Sensor(f"{name} queue", window_ms=WINDOW_MS)
        self.errors = {}
        self._clock = clock
        self._outer, self._inner = outer, inner

    def answered(self, double began_ms, double waited_since_ms, response):
        """Record a response. ``waited_since_ms`` is 0 if the request did not wait in a purgatory."""
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
