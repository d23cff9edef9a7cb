"""The load generator of consumer groups, against a scripted broker."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from uuid import UUID

import pytest
from model.heartbeat_load import HeartbeatLoad

from kafkacore.broker.group.consumer.consumer_member import LEAVE_EPOCH
from kafkacore.errors import FencedMemberEpochError, KafkaConnectionError
from kafkacore.protocol import decode_request, encode_response
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.testing import VirtualClock

TOPIC_ID = UUID(int=1)
INTERVAL_MS = 5
#: Limit of a run in seconds of the virtual clock.
LONGEST_S = 100_000
FENCED = FencedMemberEpochError.errno


class ScriptedGroups(ThreadingTCPServer):
    """A broker that gives the partition 0, 1, 2 and so on to the members of a group as they join."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self._lock = threading.Lock()
        self._partitions: dict[str, dict[str, int]] = {}
        self.heartbeats: list[ConsumerGroupHeartbeatRequest] = []
        #: Error codes of the next heartbeats of members that have joined.
        self.errors: deque[int] = deque()
        self.is_closing = False

    @property
    def servers(self) -> str:
        host, port = self.socket.getsockname()
        return f"{host}:{port}"

    def of(self, member_id: str) -> list[ConsumerGroupHeartbeatRequest]:
        """Return the heartbeats of a member."""
        with self._lock:
            return [one for one in self.heartbeats if one.member_id == member_id]

    def answer(self, request: Any) -> Any:
        """Return the response to a request, or ``None`` to close the connection."""
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(
                coordinators=[
                    FindCoordinatorResponse.Coordinator(key=key, node_id=1, host="127.0.0.1", port=9092)
                    for key in request.coordinator_keys
                ]
            )
        with self._lock:
            self.heartbeats.append(request)
            if self.is_closing:
                return None
            if request.member_epoch and self.errors:
                return ConsumerGroupHeartbeatResponse(error_code=self.errors.popleft())
            partitions = self._partitions.setdefault(request.group_id, {})
            partition = partitions.setdefault(request.member_id, len(partitions))
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=LEAVE_EPOCH if request.member_epoch == LEAVE_EPOCH else 1,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=None if request.member_epoch else assigned(partition),
        )


class TickingClock(VirtualClock):
    """A clock whose time moves a millisecond whenever it is read."""

    def monotonic_ms(self) -> float:
        self.advance(1)
        return super().monotonic_ms()


def started(groups: ScriptedGroups, topics: dict[str, str], members: int, connections: int) -> HeartbeatLoad:
    return HeartbeatLoad(groups.servers, topics, members, connections, TickingClock())


def assigned(partition: int) -> ConsumerGroupHeartbeatResponse.Assignment:
    topic = ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=TOPIC_ID, partitions=[partition])
    return ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=[topic])


class _Connection(StreamRequestHandler):
    server: ScriptedGroups

    def handle(self) -> None:
        while size := self.rfile.read(4):
            header, request = decode_request(self.rfile.read(struct.unpack(">i", size)[0]))
            response = self.server.answer(request)
            if response is None:
                return
            pieces = encode_response(response, header.request_api_version, header.correlation_id)
            body = b"".join(map(bytes, pieces))
            self.wfile.write(struct.pack(">i", len(body)) + body)


@pytest.fixture
def groups() -> Iterator[ScriptedGroups]:
    with ScriptedGroups() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_members_join_confirm_and_then_only_send_heartbeats(groups: ScriptedGroups) -> None:
    with closing(started(groups, {"a": "of-a", "b": "of-b"}, 10, 3)) as load:
        load.run(lambda: load.is_stable(10), LONGEST_S)
        load.forget_figures()
        load.run(lambda: len(load.latencies_ms) >= 30, LONGEST_S)
        assert load.owned() == 10
        assert load.assignments == 0
        assert not load.errors
        for member in load.members:
            join, confirmation, *others = groups.of(member.member_id)
            assert join.group_id == ("a", "b")[member.number % 2]
            assert (join.member_epoch, join.subscribed_topic_names) == (0, [f"of-{join.group_id}"])
            assert join.topic_partitions == []
            assert confirmation.member_epoch == 1
            assert confirmation.topic_partitions == member.owned
            assert {one.member_epoch for one in others} == {1}
            assert all(one.topic_partitions is None for one in others)
            assert all(one.subscribed_topic_names is None for one in others)


def test_fenced_member_joins_again(groups: ScriptedGroups) -> None:
    with closing(started(groups, {"a": "of-a"}, 2, 1)) as load:
        load.run(lambda: load.is_stable(2), LONGEST_S)
        groups.errors.append(FENCED)
        load.run(lambda: bool(load.errors), LONGEST_S)
        assert load.errors == {FENCED: 1}
        load.run(lambda: load.is_stable(2), LONGEST_S)
        joins = [one.member_epoch for member in load.members for one in groups.of(member.member_id)].count(0)
        assert joins == 3


def test_group_is_not_stable_while_partitions_are_missing(groups: ScriptedGroups) -> None:
    with closing(started(groups, {"a": "of-a"}, 3, 1)) as load:
        assert not load.is_stable(3)
        load.run(lambda: load.is_stable(3), LONGEST_S)
        assert not load.is_stable(4)
        load.members[0].owned, owned = load.members[1].owned, load.members[0].owned
        assert not load.is_stable(3), "one partition has two owners, and another none"
        load.members[0].owned = owned
        load.members[0].owes_confirmation = True
        assert not load.is_stable(3)


def test_run_that_takes_too_long_says_how_far_the_members_are(groups: ScriptedGroups) -> None:
    with closing(started(groups, {"a": "of-a"}, 4, 2)) as load:
        load.run(lambda: load.is_stable(4), LONGEST_S)
        with pytest.raises(TimeoutError, match="4 of 4 members joined and own 4 partitions"):
            load.run(lambda: False, 0)


def test_closed_connection_is_an_error(groups: ScriptedGroups) -> None:
    groups.is_closing = True
    with (
        closing(started(groups, {"a": "of-a"}, 1, 1)) as load,
        pytest.raises(KafkaConnectionError, match="closed a connection"),
    ):
        load.run(lambda: False, LONGEST_S)


def test_all_members_leave(groups: ScriptedGroups) -> None:
    with closing(started(groups, {"a": "of-a"}, 10, 3)) as load:
        load.run(lambda: load.is_stable(10), LONGEST_S)
        load.leave(LONGEST_S)
        for member in load.members:
            assert [one.member_epoch for one in groups.of(member.member_id)].count(LEAVE_EPOCH) == 1
            assert groups.of(member.member_id)[-1].member_epoch == LEAVE_EPOCH
