"""A sensor records values and computes averages, maxima and rates over its samples.

The behaviour is that of Kafka's ``Sensor`` and ``SampledStat``. The caller of each method passes the time.
"""

cimport cython
from libc.math cimport INFINITY, NAN
from libc.stdlib cimport calloc, free

cdef enum:
    # Maximum depth of the tree of parent sensors. It is limited because record() recurses per level.
    MAX_GENERATIONS = 8


# The GIL protects a sensor: recording and reading run no Python code, so no other thread can interrupt them.
@cython.final
cdef class Sensor:
    """A ring of samples, each of which covers a time window.

    Averages, maxima and rates cover all samples in the ring. Until the ring is full, rates count the missing
    samples as empty. Otherwise the first values would give a huge rate.

    Parameters
    ----------
    name
        Name of the sensor, for messages.
    sample_count
        Number of samples, 1 or more.
    window_ms
        Duration of a sample, in milliseconds.
    parents
        Sensors that also record every value of this sensor.

    Attributes
    ----------
    total, count, last
        Sum, number and last of all values recorded since the sensor was created.
    """

    def __cinit__(self, str name, int sample_count=2, double window_ms=30_000.0, tuple parents=()):
        if sample_count < 1 or not window_ms > 0:
            raise ValueError(f"{sample_count} samples of {window_ms} ms: both numbers must be above 0")
        if generations(parents) > MAX_GENERATIONS:
            raise ValueError(f"sensor {name!r} has more than {MAX_GENERATIONS} generations of parent sensors")
        self.name = name
        self._parents = parents
        self._window_ms = window_ms
        self._capacity = sample_count
        self._samples = <Sample *>calloc(sample_count, sizeof(Sample))
        if self._samples is NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self._samples)

    cpdef int record(self, double value, double now_ms) except -1:
        """Record a value at time ``now_ms``, in this sensor and in its parents."""
        cdef Sample *sample = &self._samples[self._current]
        cdef Sensor parent
        if self._used == 0:
            self._used = 1
            _begin(sample, now_ms)
        elif now_ms - sample.began_ms >= self._window_ms:
            self._current = (self._current + 1) % self._capacity
            self._used = max(self._used, self._current + 1)
            sample = &self._samples[self._current]
            _begin(sample, now_ms)
        sample.total += value
        sample.count += 1
        sample.largest = max(sample.largest, value)
        sample.smallest = min(sample.smallest, value)
        self.total += value
        self.count += 1
        self.last = value
        for parent in self._parents:
            parent.record(value, now_ms)
        return 0

    def average(self, double now_ms):
        """Return the average of the values in the samples; 0 without values."""
        cdef double total = 0.0
        cdef long long count = 0
        cdef int at
        self._forget_old(now_ms)
        for at in range(self._used):
            total += self._samples[at].total
            count += self._samples[at].count
        return total / count if count else 0.0

    def largest(self, double now_ms):
        """Return the maximum of the values in the samples; -infinity without values, as in kafka-python."""
        cdef double largest = -INFINITY
        cdef int at
        self._forget_old(now_ms)
        for at in range(self._used):
            largest = max(largest, self._samples[at].largest)
        return largest

    def smallest(self, double now_ms):
        """Return the minimum of the values in the samples; infinity without values."""
        cdef double smallest = INFINITY
        cdef int at
        self._forget_old(now_ms)
        for at in range(self._used):
            smallest = min(smallest, self._samples[at].smallest)
        return smallest

    def latest(self, double now_ms):
        """Return the last recorded value; NaN before the first value."""
        return self.last if self.count else NAN

    def rate(self, double now_ms):
        """Return the sum of the values in the samples, per second."""
        cdef double total = 0.0
        cdef double seconds
        cdef int at
        self._forget_old(now_ms)
        for at in range(self._used):
            total += self._samples[at].total
        seconds = self._seconds(now_ms)
        return total / seconds if seconds > 0 else 0.0

    def occurrence_rate(self, double now_ms):
        """Return the number of values in the samples, per second."""
        cdef long long count = 0
        cdef double seconds
        cdef int at
        self._forget_old(now_ms)
        for at in range(self._used):
            count += self._samples[at].count
        seconds = self._seconds(now_ms)
        return count / seconds if seconds > 0 else 0.0

    def sum(self, double now_ms):
        """Return the sum of all values since the sensor was created."""
        return self.total

    def occurrences(self, double now_ms):
        """Return the number of all values since the sensor was created."""
        return float(self.count)

    cdef int _forget_old(self, double now_ms) noexcept:
        cdef int at
        for at in range(self._used):
            if now_ms - self._samples[at].began_ms >= self._capacity * self._window_ms:
                _begin(&self._samples[at], now_ms)
        return 0

    cdef double _seconds(self, double now_ms) noexcept:
        """Return how many seconds the samples cover: at least ``sample_count - 1`` windows."""
        cdef double oldest_ms = now_ms
        cdef double elapsed_ms
        cdef int at, full
        for at in range(self._used):
            oldest_ms = min(oldest_ms, self._samples[at].began_ms)
        elapsed_ms = now_ms - oldest_ms
        full = <int>min(elapsed_ms / self._window_ms, <double>self._capacity)
        if full < self._capacity - 1:
            elapsed_ms += (self._capacity - 1 - full) * self._window_ms
        return elapsed_ms / 1000.0

    def __repr__(self):
        return f"<Sensor {self.name}: {self.count} values>"


cdef int generations(tuple parents) except -1:
    cdef Sensor parent
    cdef int most = 0
    for parent in parents:
        if parent is None:
            raise TypeError("the parents of a sensor must be sensors")
        most = max(most, 1 + generations(parent._parents))
    return most


cdef int _begin(Sample *sample, double now_ms) noexcept:
    sample.began_ms = now_ms
    sample.total = 0.0
    sample.largest = -INFINITY
    sample.smallest = INFINITY
    sample.count = 0
    return 0
