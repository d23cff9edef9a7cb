"""Members join, crash, rejoin and time out at random, and the group always recovers.

Every request is answered exactly once, each generation has one leader, and a group that is left
alone becomes empty.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from model.group_harness import GROUP, Answer, GroupHarness

from kafkacore.broker.group.classic_group import GroupState
from kafkacore.errors import MemberIdRequiredError, UnknownError

INSTANCES = ("s0", "s1")
#: Longer than any session timeout and the rebalance that follows it.
LONG_MS = 400_000


class Crowd:
    """Up to six members of a group and their requests without a response."""

    def __init__(self, harness: GroupHarness) -> None:
        self.harness = harness
        #: Member ids; "" for a client that has none yet.
        self.ids = [""] * 6
        self.joins: list[tuple[int, Answer]] = []
        self.syncs: list[Answer] = []

    def instance(self, place: int) -> str | None:
        return INSTANCES[place] if place < len(INSTANCES) else None

    def join(self, place: int, version: int) -> None:
        answer = self.harness.join(self.ids[place], instance_id=self.instance(place), version=version)
        self.joins.append((place, answer))
        self.collect_answers()

    def collect_answers(self) -> None:
        for place, answer in list(self.joins):
            if answer.result is not None:
                self.joins.remove((place, answer))
                is_member = answer.result.error_code in (0, MemberIdRequiredError.errno)
                self.ids[place] = answer.result.member_id if is_member else ""

    def sync(self, place: int) -> None:
        group = self.harness.registry.classic_group(GROUP)
        if group is None:
            return
        given = {one: b"x" for one in self.ids if one}
        member_id = self.ids[place] or "unknown"
        self.syncs.append(self.harness.sync(member_id, group.generation_id, given))

    def check(self) -> None:
        group = self.harness.registry.classic_group(GROUP)
        if group is None:
            return
        waiting = [one for one in group if one.is_awaiting_join]
        assert group.awaiting_join_count == len(waiting)
        assert (group.leader_id in group) == (len(group) > 0) or group.leader_id is None
        assert len(group) == 0 or not group.is_in(GroupState.EMPTY)
        assert set(group.sessions) <= {one.member_id for one in group} | group.pending_joins
        if group.is_in(GroupState.STABLE):
            assert not any(one.is_awaiting_sync for one in group)


PLACE = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), PLACE, st.sampled_from([3, 4, 9])),
        st.tuples(st.just("sync"), PLACE, st.just(0)),
        st.tuples(st.just("leave"), PLACE, st.just(0)),
        st.tuples(st.just("heartbeat"), PLACE, st.just(0)),
        st.tuples(st.just("forget"), PLACE, st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.sampled_from([1, 500, 3_000, 9_999, 20_000, 61_000])),
        st.tuples(st.just("fail"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=150)
@given(STEPS)
def test_group_finds_its_way_back_whatever_its_members_do(steps: list[tuple[str, int, int]]) -> None:
    crowd = Crowd(GroupHarness())
    for step, place, what in steps:
        harness = crowd.harness
        if step == "join":
            crowd.join(place, what)
        elif step == "sync":
            crowd.sync(place)
        elif step == "leave":
            harness.leave((crowd.ids[place], crowd.instance(place)))
        elif step == "heartbeat" and (group := harness.registry.classic_group(GROUP)) is not None:
            harness.heartbeat(crowd.ids[place], group.generation_id, crowd.instance(place))
        elif step == "forget":
            crowd.ids[place] = ""
        elif step == "pass":
            harness.pass_ms(what)
        elif step == "fail":
            harness.log.failures.append(UnknownError.errno)
        elif step == "restart":
            harness.registry.unload(harness.log.partition_for(GROUP))
            crowd.collect_answers()
            crowd.harness = harness.restarted()
        crowd.collect_answers()
        crowd.check()
    crowd.harness.log.failures.clear()
    crowd.harness.pass_ms(LONG_MS)
    crowd.collect_answers()
    assert crowd.joins == []
    assert all(answer.result is not None for answer in crowd.syncs)
    group = crowd.harness.registry.classic_group(GROUP)
    assert group is None or group.is_in(GroupState.EMPTY)
    assert len(crowd.harness.timer) == 0
