"""Answers the heartbeats that change nothing.

Nearly all heartbeats of a large group are such heartbeats. The result is that of ``ConsumerHeartbeats``; this
code only makes fewer calls.
"""

cimport cython

from kafkacore.broker.group.consumer._heartbeat cimport ConsumerHeartbeat, SteadyAnswer
from kafkacore.broker.group.consumer._sessions cimport MemberSession, Sessions

from kafkacore.broker.config import group_limits
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import MemberState
from kafkacore.broker.group.consumer.deadline import Deadline

cdef object SESSION = Deadline.SESSION
cdef object STABLE = MemberState.STABLE
cdef int MIN_GROUP_VERSION = group_limits.MIN_GROUP_VERSION


@cython.final
cdef class SteadyHeartbeats:
    """Answers heartbeats that change nothing. Only the network thread may use it.

    Parameters
    ----------
    log:
        Log of the group coordinator.
    registry:
        The groups.
    limits:
        Timeouts of the groups.
    topics:
        Catalog of the topics.
    features:
        Levels of the features. The level of ``group.version`` may forbid consumer groups.
    sessions:
        Deadlines of the members.
    """

    cdef object log, registry, limits, topics, features
    cdef Sessions sessions

    def __init__(self, log, registry, limits, topics, features, Sessions sessions not None):
        self.log = log
        self.registry = registry
        self.limits = limits
        self.topics = topics
        self.features = features
        self.sessions = sessions

    def member_of(self, ConsumerHeartbeat heartbeat not None):
        """Return the member that sends a heartbeat, or ``None`` if the heartbeat may change something."""
        if not heartbeat.is_plain_now():
            return None
        group = self.registry.get(heartbeat.group_id)
        if (
            type(group) is not ConsumerGroup
            or <int> group.topics_version != <int> self.topics.version
            or <int> group.assignment_epoch < <int> group.epoch
        ):
            return None
        member = group.get(heartbeat.member_id)
        if (
            member is not None
            and <int> member.member_epoch == heartbeat.member_epoch
            # The member has all partitions of its target assignment.
            and member.state is STABLE
            and <int> group.assignment_epoch == heartbeat.member_epoch
            and (heartbeat.instance_id is None or heartbeat.instance_id == member.instance_id)
            and <str> member.client_id == heartbeat.client_id
            and <str> member.client_host == heartbeat.client_host
            and not member.subscribed_topic_regex
            and member.classic is None
        ):
            return member
        return None

    cdef bint repeats(self, MemberSession session, ConsumerHeartbeat heartbeat) except -1:
        """Return whether the last heartbeat was the same, and nothing has changed in the group since then."""
        group = self.registry.get(heartbeat.group_id)
        return (
            group is not None
            and group is session.group
            and session.member_epoch == heartbeat.member_epoch
            and session.client_id == heartbeat.client_id
            and session.client_host == heartbeat.client_host
            and session.group_version == <long long> group.version
            and <int> group.topics_version == <int> self.topics.version
            and heartbeat.is_plain_now()
        )

    cdef bint is_steady(self, MemberSession session, ConsumerHeartbeat heartbeat) except -1:
        """Return whether a heartbeat changes nothing, and store it if so."""
        session.session = session.tasks.get(SESSION)
        if session.session is None or self.member_of(heartbeat) is None:
            return False
        session.group = group = self.registry.get(heartbeat.group_id)
        session.group_version = group.version
        session.member_epoch = heartbeat.member_epoch
        session.client_id, session.client_host = heartbeat.client_id, heartbeat.client_host
        return True

    def answer(self, ConsumerHeartbeat heartbeat not None, int node_id, double now_ms):
        """Answer a heartbeat that changes nothing, if it can be answered at once.

        Parameters
        ----------
        heartbeat:
            The heartbeat.
        node_id:
            Node that received the heartbeat.
        now_ms:
            Monotonic time in milliseconds at which the session begins again.

        Returns
        -------
        SteadyAnswer or None
            ``None`` if :class:`ConsumerHeartbeats` must handle the heartbeat. Nothing has changed then.
        """
        cdef SteadyAnswer answer
        cdef str group_id = heartbeat.group_id
        # Errors are left to the general code. A member that exists has valid ids.
        cdef MemberSession session = self.sessions.of(group_id, heartbeat.member_id)
        if (
            session is None
            or heartbeat.instance_id is not None
            or <int> self.features.group_version < MIN_GROUP_VERSION
            or not self.log.is_safe_now(group_id, node_id)
            or not (self.repeats(session, heartbeat) or self.is_steady(session, heartbeat))
        ):
            return None
        times = self.limits.by_group.get(group_id)
        if times is None:
            times = self.limits.default
        self.sessions.timer.add_task(now_ms + <int> times.session_timeout_ms, session.session)
        answer = SteadyAnswer.__new__(SteadyAnswer)
        answer.member_id = heartbeat.member_id
        answer.member_epoch = heartbeat.member_epoch
        answer.heartbeat_interval_ms = times.heartbeat_interval_ms
        return answer
