"""Sensor for Cython callers."""


cdef struct Sample:
    double began_ms
    double total
    double largest
    double smallest
    long long count


cdef class Sensor:
    cdef readonly str name
    # Sum, last value and number of all recorded values.
    cdef readonly double total
    cdef readonly double last
    cdef readonly long long count
    cdef tuple _parents
    cdef Sample *_samples
    cdef int _capacity
    cdef int _used
    cdef int _current
    cdef double _window_ms

    cpdef int record(self, double value, double now_ms) except -1
    cdef int _forget_old(self, double now_ms) noexcept
    cdef double _seconds(self, double now_ms) noexcept
