"""Group requests as bytes to a real broker, and a transcript with comparable member ids."""

from __future__ import annotations

import re
from typing import Any

from eventually import eventually
from model.raw_line import Line

from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest

UUID_AT_END = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RawGroup:
    """Members of one group with a connection each, and the transcript of their responses.

    The transcript replaces a member id by the order in which it was first seen.
    """

    def __init__(self, servers: str, group_id: str) -> None:
        self._servers = servers
        self.group_id = group_id
        self._lines: dict[str, Line] = {}
        #: Member ids by name.
        self.ids: dict[str, str] = {}
        self._seen: list[str] = []
        self.generation_id = -1
        self.transcript: list[Any] = []
        self._find()

    def _find(self) -> None:
        """Wait until the broker coordinates the group; its topic is created on the first request."""
        while True:
            found = self.line("admin").ask(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4)
            if found.coordinators[0].error_code == 0:
                probe = HeartbeatRequest(group_id=self.group_id, generation_id=1, member_id="unknown")
                if self.line("admin").ask(probe, 4).error_code == 25:
                    return

    def line(self, name: str) -> Line:
        if name not in self._lines:
            self._lines[name] = Line(self._servers)
        return self._lines[name]

    def known(self, member_id: str | None) -> str | None:
        """Return a member's id in the form that is the same for all brokers."""
        if not member_id:
            return member_id
        if member_id not in self._seen:
            self._seen.append(member_id)
        shape = UUID_AT_END.sub("<uuid>", member_id)
        return f"{shape}#{self._seen.index(member_id)}"

    def note(self, *said: Any) -> None:
        self.transcript.append(said)

    # ---- Members --------------------------------------------------------------------------------------

    def ask_join(
        self,
        name: str,
        *,
        version: int = 9,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"meta"),),
        kind: str = "consumer",
        session_ms: int = 60_000,
        member_id: str | None = None,
    ) -> None:
        message = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=60_000,
            member_id=self.ids.get(name, "") if member_id is None else member_id,
            group_instance_id=instance_id,
            protocol_type=kind,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        self.line(name).say(message, version)

    def hear_join(self, name: str) -> int:
        got = self.line(name).hear()
        if got.error_code in (0, 79):
            self.ids[name] = got.member_id
            self.generation_id = max(self.generation_id, got.generation_id)
        members = sorted(
            (self.known(one.member_id) or "", one.group_instance_id, bytes(one.metadata))
            for one in got.members
        )
        self.note(
            "join", name, got.error_code, got.generation_id, got.protocol_type, got.protocol_name,
            self.known(got.leader), self.known(got.member_id), got.skip_assignment, members,
        )  # fmt: skip
        return int(got.error_code)

    def join(self, name: str, **how: Any) -> int:
        """Join the group, with a second request if the broker first assigns an id."""
        self.ask_join(name, **how)
        code = self.hear_join(name)
        if code == 79:
            self.ask_join(name, **how)
            code = self.hear_join(name)
        return code

    def ask_sync(
        self, name: str, given: dict[str, bytes] | None = None, *, version: int = 5, **changed: Any
    ) -> None:
        fields = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.ids.get(name, name),
            "protocol_type": "consumer" if version >= 5 else None,
            "protocol_name": "range" if version >= 5 else None,
            **changed,
        }
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.ids[who], assignment=what)
            for who, what in (given or {}).items()
        ]
        self.line(name).say(SyncGroupRequest(assignments=assignments, **fields), version)

    def hear_sync(self, name: str) -> None:
        got = self.line(name).hear()
        self.note("sync", name, got.error_code, got.protocol_type, got.protocol_name, bytes(got.assignment))

    def sync(self, name: str, given: dict[str, bytes] | None = None, **how: Any) -> None:
        self.ask_sync(name, given, **how)
        self.hear_sync(name)

    def beat(self, name: str, *, version: int = 4, **changed: Any) -> None:
        fields = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.ids.get(name, name),
            **changed,
        }
        got = self.line(f"{name} beats").ask(HeartbeatRequest(**fields), version)
        self.note("heartbeat", name, got.error_code)

    def leave(self, *members: tuple[str, str | None], version: int = 5, group_id: str | None = None) -> None:
        """Remove members given by name (or id, or "") and instance id."""
        who = [(self.ids.get(name, name), instance_id) for name, instance_id in members]
        if version < 3:
            message = LeaveGroupRequest(group_id=group_id or self.group_id, member_id=who[0][0])
        else:
            identities = [LeaveGroupRequest.MemberIdentity(member_id=m, group_instance_id=i) for m, i in who]
            message = LeaveGroupRequest(
                group_id=self.group_id if group_id is None else group_id, members=identities
            )
        got = self.line("admin").ask(message, version)
        said = [(self.known(one.member_id), one.group_instance_id, one.error_code) for one in got.members]
        self.note("leave", got.error_code, said)

    # ---- Administration -------------------------------------------------------------------------------

    def describe(self, *group_ids: str, version: int = 6) -> None:
        message = DescribeGroupsRequest(
            groups=list(group_ids or (self.group_id,)), include_authorized_operations=version >= 3
        )
        got = self.line("admin").ask(message, version)
        for one in got.groups:
            members = sorted(
                (
                    self.known(member.member_id) or "",
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    bytes(member.member_metadata),
                    bytes(member.member_assignment),
                )
                for member in one.members
            )
            self.note(
                "describe", one.error_code, one.error_message, one.group_id, one.group_state,
                one.protocol_type, one.protocol_data, one.authorized_operations, members,
            )  # fmt: skip

    def await_rebalance(self) -> None:
        """Wait until the group is rebalancing, because the next request must find it in that state."""
        message = DescribeGroupsRequest(groups=[self.group_id])

        def state() -> str:
            return str(self.line("admin").ask(message, 6).groups[0].group_state)

        eventually(lambda: state() == "PreparingRebalance", lambda: f"{self.group_id} is {state()}")

    def list_groups(
        self, *, states: tuple[str, ...] = (), kinds: tuple[str, ...] = (), version: int = 5
    ) -> None:
        """List groups, and keep only this one."""
        message = ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
        got = self.line("admin").ask(message, version)
        mine = [
            (one.protocol_type, one.group_state, one.group_type)
            for one in got.groups
            if one.group_id == self.group_id
        ]
        self.note("list", got.error_code, mine)

    def delete(self, *group_ids: str, version: int = 2) -> None:
        message = DeleteGroupsRequest(groups_names=list(group_ids or (self.group_id,)))
        got = self.line("admin").ask(message, version)
        self.note("delete", sorted((one.group_id, one.error_code) for one in got.results))

    def hang_up(self, name: str) -> None:
        self._lines.pop(name).close()

    def __enter__(self) -> RawGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines.values():
            line.close()
