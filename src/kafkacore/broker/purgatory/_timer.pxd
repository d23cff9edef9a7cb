"""Cython declarations of ``_timer``."""

cdef class TimerTask:
    cdef public double deadline_ms
    # The tasks of the slot that contains this task; None if this task is not in a timer.
    cdef dict slot_tasks

    cdef int remove(self) except -1

cdef class Timer:
    cdef readonly long long _now
    cdef readonly list _wheels
    # Heap of (begin, tie breaker, slot) of the slots that have received a task since they were last due.
    cdef readonly list _queue
    cdef long long ties
    # Tasks that were due when they were added. The next advance runs them.
    cdef dict overdue

    cdef int add_task(self, double deadline_ms, TimerTask task) except -1
    cdef int place(self, long long tick, TimerTask task) except -1
    cdef int dequeue(self) except -1
