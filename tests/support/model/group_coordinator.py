"""A model of a group's coordinator, as one member of the group sees it.

It follows the protocol unless a test overrides it. It belongs to a
:class:`~model.consumer_cluster.ModelCluster` (``cluster.coordinator``). Of the other members, only their
subscriptions exist. A test requests errors by the class of the request, and ``cluster.held`` holds responses
back.
"""

from collections import defaultdict, deque
from contextlib import contextmanager

from model.committed import ModelOffsets
from model.consumer_group_coordinator import ModelConsumerGroup

from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED = 79
#: Node id of the coordinator connection to node 0.
COORDINATOR_ID = 2**31 - 1


class ModelCoordinator:
    """One group.

    Attributes
    ----------
    leads:
        Whether our member is elected as the leader.
    others:
        Subscriptions of the simulated members, by member id.
    assignment:
        Assignment of our member if another member is the leader.
    errors:
        Error codes for the next responses, by the class of the request.
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
        #: Assignments that our member sent as the leader, by member id.
        self.handed_in = {}
        #: The group in the protocol of KIP-848.
        self.consumers = ModelConsumerGroup(cluster)
        self.offsets = ModelOffsets(lambda: {tp.topic for tp in cluster.logs}, cluster.topic_id)

    @property
    def connection_id(self):
        """Return the node id of the consumer's connection to the coordinator."""
        return COORDINATOR_ID - self.node_id

    # ---- Inspection ---------------------------------------------------------------------------------------
    def of(self, kind):
        """Return the requests of a class in the order of their arrival."""
        return self.cluster.requests_of(kind)

    def subscription(self, join):
        """Return the subscription in our member's last JoinGroup."""
        return decode_subscription(join.protocols[0].metadata)

    def follow(self, *partitions):
        """Make another member the leader, which assigns these partitions to us."""
        self.leads, self.assignment = False, Assignment(partitions)

    def rebalance(self):
        """Start a rebalance, which the next heartbeat reports."""
        self.errors[HeartbeatRequest].append(27)

    @contextmanager
    def lost(self):
        """Keep the coordinator disconnected and unreachable within the block."""
        self.cluster.down.add(self.connection_id)
        yield
        self.cluster.down.discard(self.connection_id)

    # ---- Responses ----------------------------------------------------------------------------------------
    def answer(self, node_id, request):
        handlers = {
            FindCoordinatorRequest: self._find,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: lambda request, code: HeartbeatResponse(error_code=code),
            ConsumerGroupHeartbeatRequest: self.consumers.answer,
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
    """Return the subscription of another member."""
    return Subscription(topics, **fields)


class RecordingListener(ConsumerRebalanceListener):
    """A rebalance listener that records its calls and raises the errors that a test sets."""

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
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls
