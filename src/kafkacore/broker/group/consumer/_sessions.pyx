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
cdef class MemberSession:
    """The deadlines of a member, and its last heartbeat that changed nothing."""

    def __cinit__(self):
        self.tasks = {}


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
        self.members = {}
        self.on_missed = None

    def begin(self, str group_id not None, str member_id not None, kind, double delay_ms):
        """Start a deadline, or restart it if it is running."""
        cdef MemberSession session = self.of(group_id, member_id)
        cdef MemberTask task
        if session is None:
            session = MemberSession()
            (<dict> self.members.setdefault(group_id, {}))[member_id] = session
        task = session.tasks.get(kind)
        if task is None:
            task = session.tasks[kind] = MemberTask.__new__(MemberTask)
            task.sessions, task.group_id, task.member_id, task.kind = self, group_id, member_id, kind
        self.timer.add_task(<double> self.clock.monotonic_ms() + delay_ms, task)

    cdef MemberSession of(self, str group_id, str member_id):
        cdef dict members = self.members.get(group_id)
        return None if members is None else members.get(member_id)

    cdef TimerTask task_of(self, str group_id, str member_id, kind):
        cdef MemberSession session = self.of(group_id, member_id)
        return None if session is None else session.tasks.get(kind)

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
        cdef MemberSession session = self.of(group_id, member_id)
        if session is None:
            return
        for task in session.tasks.values():
            task.cancel()
        members = self.members[group_id]
        del members[member_id]
        if not members:
            del self.members[group_id]

    def end_group(self, str group_id not None):
        """End all deadlines of the members of a group."""
        for member_id in list(self.members.get(group_id, ())):
            self.end_member(group_id, member_id)
