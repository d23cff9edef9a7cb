"""Counts the requests of one API: how long they took, and which errors they were answered with."""

cimport cython

from kafkacore.broker.replica._produce_call cimport ProduceCall, ProducePartition, ProduceTopic
from kafkacore.metrics._sensor cimport Sensor


cdef double WINDOW_MS = 30_000.0  # Averages and maxima are of so long.


@cython.final
cdef class ApiStats:
    """One API. Written by the network thread, read by any.

    Parameters
    ----------
    outer, inner:
        Where in an answer the errors of its parts are: a list, and a list in each of that; or empty.

    Attributes
    ----------
    total:
        Milliseconds from the beginning of a request's handling until its answer was ready.
    remote:
        Of that, waiting in a purgatory; only of requests that waited.
    queue:
        Milliseconds that it waited for the thread, after what was read together with it.
    errors:
        Code → how often; of requests that ask for several things, each of them counts.
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
