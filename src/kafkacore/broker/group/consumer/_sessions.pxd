"""Cython declarations of ``_sessions``."""

from kafkacore.broker.purgatory._timer cimport Timer, TimerTask

cdef class Sessions:
    cdef Timer timer
    cdef object clock
    # Group id → member id → kind of deadline → task.
    cdef dict tasks
    cdef public object on_missed

    # Like begin(), with the monotonic time of the deadline in milliseconds.
    cdef int begin_at(self, str group_id, str member_id, kind, double deadline_ms) except -1
    cdef TimerTask task_of(self, str group_id, str member_id, kind)
