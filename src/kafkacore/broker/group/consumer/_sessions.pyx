"""Timers of the members of consumer groups: sessions, and the time to revoke partitions.

The behaviour is that of the timers in Kafka's ``GroupMetadataManager``.
"""

cimport cython

from kafkacore.broker.purgatory._timer cimport Timer, TimerTask


@cython.final
cdef class MemberTask(TimerTask):
    """The task that runs when a member has missed a deadline. Only :class:`Sessions` creates it."""

    cdef Sessions sessions
    cdef str group_id, member_id
    cdef object kind

    def run(self):
        self.sessions.on_missed(self.group_id, self.member_id, self.kind)


@cython.final
cdef class Sessions:
    """The deadlines of all members. Only the network thread may use it.

    Parameters
    ----------
    timer:
        Timer of the broker.
    clock:
        Source of the monotonic time.

    Attributes
    ----------
    on_missed:
        Called with the ids of the group and the member and with the deadline that the member has missed.
    """

    def __init__(self, Timer timer not None, clock):
        self.timer = timer
        self.clock = clock
        self.tasks = {}
        self.on_missed = None

    def begin(self, str group_id not None, str member_id not None, kind, double delay_ms):
        """Start a deadline, or restart it if it is running."""
        self.begin_at(group_id, member_id, kind, self.clock.monotonic_ms() + delay_ms)

    cdef int begin_at(self, str group_id, str member_id, kind, double deadline_ms) except -1:
        cdef TimerTask task = self.task_of(group_id, member_id, kind)
        cdef MemberTask new
        cdef dict members
        if task is None:
            task = new = MemberTask.__new__(MemberTask)
            new.sessions, new.group_id, new.member_id, new.kind = self, group_id, member_id, kind
            members = self.tasks.setdefault(group_id, {})
            members.setdefault(member_id, {})[kind] = task
        return self.timer.add_task(deadline_ms, task)

    cdef TimerTask task_of(self, str group_id, str member_id, kind):
        cdef dict members = self.tasks.get(group_id)
        cdef dict tasks = None if members is None else members.get(member_id)
        return None if tasks is None else tasks.get(kind)

    def begin_if_absent(self, str group_id not None, str member_id not None, kind, double delay_ms):
        """Start a deadline unless it is running."""
        cdef TimerTask task = self.task_of(group_id, member_id, kind)
        if task is None or not task.is_armed:
            self.begin(group_id, member_id, kind, delay_ms)

    def end(self, str group_id not None, str member_id not None, kind):
        """End a deadline, if it is running."""
        cdef TimerTask task = self.task_of(group_id, member_id, kind)
        if task is not None:
            task.cancel()

    def end_member(self, str group_id not None, str member_id not None):
        """End all deadlines of a member."""
        cdef dict members = self.tasks.get(group_id, {})
        for task in members.pop(member_id, {}).values():
            task.cancel()
        if not members:
            self.tasks.pop(group_id, None)

    def end_group(self, str group_id not None):
        """End all deadlines of the members of a group."""
        for member_id in list(self.tasks.get(group_id, ())):
            self.end_member(group_id, member_id)
