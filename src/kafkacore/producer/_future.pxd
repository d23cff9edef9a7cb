"""Futures and the results that complete them, for Cython callers."""

cdef class ProduceResult:
    cdef readonly object topic_partition
    cdef readonly bint done
    # Whether the batch is done and the callbacks have run. Later ones run in the thread that adds them.
    cdef bint _settled
    cdef readonly long long base_offset
    cdef readonly long long log_append_time_ms
    cdef readonly object error
    cdef object _record_errors
    # List of (first index, ProduceResult) after a split.
    cdef list _parts
    # Callbacks as a list of (future, function, whether the function is called on success), or None without
    # callbacks. A function with None in the third place is called without arguments, whatever the outcome is.
    # Until the batch is settled, the thread that has completed it also runs those that other threads add.
    cdef list _watchers
    cdef object _lock
    cdef object _condition
    cdef object _clock

    cdef int _run_callbacks(self) except -1
    cdef int _settle(self) except -1
    cdef int _wait_until(self, object deadline_ms, str what, object timeout) except -1


cdef class FutureRecordMetadata:
    cdef ProduceResult _result
    cdef int _index
    cdef int _key_size
    cdef int _value_size
    cdef int _header_size
    cdef long long _timestamp_ms

    cdef ProduceResult _current(self)
    cdef object _error_of(self, ProduceResult result)
    cdef object _add(self, object function, bint on_success, tuple args, dict kwargs)
    cdef int watch(self, object function, object on_success=*) except -1


cdef object deadline_of(object clock, object timeout)
# Return a future that is not part of a batch yet. Appending the record to a batch sets the future's result
# and index.
cdef FutureRecordMetadata new_future(long long timestamp_ms, int key_size, int value_size, int header_size)
