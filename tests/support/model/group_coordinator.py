"""A group's coordinator as one member of the group sees it: played by the book, or as a test tells.

Stands behind a :class:`~model.consumer_cluster.ModelCluster` (``cluster.coordinator``). Other members exist
only in what they subscribe to. Errors are asked for by request class; answers are held back by
``cluster.held``.
"""

from collections import defaultdict, deque
from contextlib import contextmanager

from model.committed import ModelOffsets

from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED = 79
#: The node id of node 0's connection as coordinator.
COORDINATOR_ID = 2**31 - 1


class ModelCoordinator:
    """One group.

    Attributes
    ----------
    leads:
        Whether our member is elected.
    others:
        Member id → subscription of those that do not exist.
    assignment:
        What the leader, if another, gives us.
    errors:
        Request class → codes for the next answers.
    """

    def __init__(self, cluster):
        self.cluster = cluster
        self.node_id = 0
        self.generation_id = 0
        self.member_count = 0
        self.leads = True
        self.others = {}
        self.assignment = Assignment(())
        self.skip_assignment = False
        self.protocol_type = self.sync_protocol_type = "consumer"
        self.sync_protocol_name = None
        self.errors = defaultdict(deque)
        #: Member id → assignment, as our member has handed it in as the leader.
        self.handed_in = {}
        self.offsets = ModelOffsets(lambda: {tp.topic for tp in cluster.logs}, cluster.topic_id)

    @property
    def connection_id(self):
        """Of the consumer's connection to it."""
        return COORDINATOR_ID - self.node_id

    # ---- What a test asks ---------------------------------------------------------------------------------
    def of(self, kind):
        """The requests of a class, as they came."""
        return self.cluster.requests_of(kind)

    def subscription(self, join):
        """What our member told in a JoinGroup."""
        return decode_subscription(join.protocols[0].metadata)

    def follow(self, *partitions):
        """Another leads, and gives us these."""
        self.leads, self.assignment = False, Assignment(partitions)

    def rebalance(self):
        """The group rebalances: the next heartbeat hears of it."""
        self.errors[HeartbeatRequest].append(27)

    @contextmanager
    def lost(self):
        """Its connection is gone, and cannot be had again within."""
        self.cluster.down.add(self.connection_id)
        yield
        self.cluster.down.discard(self.connection_id)

    # ---- Answers ------------------------------------------------------------------------------------------
    def answer(self, node_id, request):
        handlers = {
            FindCoordinatorRequest: self._find,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: lambda request, code: HeartbeatResponse(error_code=code),
            LeaveGroupRequest: lambda request, code: LeaveGroupResponse(error_code=code),
            OffsetCommitRequest: self.offsets.commit,
            OffsetFetchRequest: self.offsets.fetch,
        }
        kind = next(each for each in handlers if isinstance(request, each))
        if kind not in (FindCoordinatorRequest, LeaveGroupRequest):
            assert node_id == self.connection_id, f"{request} went to {node_id}"
        code = self.errors[kind].popleft() if self.errors[kind] else 0
        return handlers[kind](request, code)

    def _find(self, request, code):
        node = self.cluster.nodes[self.node_id]
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponse.Coordinator(
                    key=request.coordinator_keys[0],
                    node_id=-1 if code else node.node_id,
                    host="" if code else node.host,
                    port=-1 if code else node.port,
                    error_code=code,
                )
            ]
        )

    def _join(self, request, code):
        static = request.group_instance_id is not None
        if code == 0 and not request.member_id and not static:
            code = MEMBER_ID_REQUIRED
        if code:
            if code == MEMBER_ID_REQUIRED:
                self.member_count += 1
            return JoinGroupResponse(
                error_code=code, member_id=f"member-{self.member_count}" if code == MEMBER_ID_REQUIRED else ""
            )
        member_id = request.member_id or f"{request.group_instance_id}-1"
        self.generation_id += 1
        chosen = request.protocols[0]
        members = [(member_id, request.group_instance_id, chosen.metadata)]
        members += [
            (other, None, each)
            if isinstance(each, bytes)
            else (other, each.group_instance_id, encode_subscription(each))
            for other, each in self.others.items()
        ]
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=chosen.name,
            leader=member_id if self.leads else "other",
            member_id=member_id,
            skip_assignment=self.skip_assignment,
            members=[
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=each, group_instance_id=instance, metadata=memoryview(metadata)
                )
                for each, instance, metadata in (members if self.leads else [])
            ],
        )

    def _sync(self, request, code):
        self.handed_in = {each.member_id: decode_assignment(each.assignment) for each in request.assignments}
        mine = self.handed_in.get(request.member_id, self.assignment)
        return SyncGroupResponse(
            error_code=code,
            protocol_type=self.sync_protocol_type,
            protocol_name=self.sync_protocol_name or request.protocol_name,
            assignment=memoryview(encode_assignment(mine)),
        )


def subscribed(*topics, **fields):
    """Another member's subscription."""
    return Subscription(topics, **fields)


class RecordingListener(ConsumerRebalanceListener):
    """Records its calls, and raises the errors that the test sets."""

    def __init__(self):
        self.calls = []
        self.raises = {}
        self.meanwhile = None

    def _call(self, what, partitions):
        self.calls.append((what, set(partitions)))
        if self.meanwhile is not None:
            self.meanwhile(what)
        error = self.raises.pop(what, None)
        if error is not None:
            raise error

    def on_partitions_revoked(self, revoked):
        self._call("revoked", revoked)

    def on_partitions_assigned(self, assigned):
        self._call("assigned", assigned)

    def on_partitions_lost(self, lost):
        self._call("lost", lost)

    def take(self):
        """What was told since."""
        calls, self.calls = self.calls, []
        return calls
