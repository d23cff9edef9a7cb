"""Cython declarations of ``_sessions``."""

from kafkacore.broker.purgatory._timer cimport Timer, TimerTask

cdef class MemberSession:
    # Kind of deadline → task.
    cdef dict tasks
    # The last heartbeat that changed nothing: the group and its version, the fields of the heartbeat, and the
    # task of the session. The group is None if there was no such heartbeat.
    cdef object group
    cdef long long group_version
    cdef int member_epoch
    cdef str client_id, client_host
    cdef TimerTask session

cdef class Sessions:
    cdef Timer timer
    cdef object clock
    # Group id → member id → session.
    cdef dict members
    cdef public object on_missed

    cdef MemberSession of(self, str group_id, str member_id)
    cdef TimerTask task_of(self, str group_id, str member_id, kind)
