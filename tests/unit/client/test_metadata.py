"""Metadata and Cluster, with the cases of Kafka's MetadataTest."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest
from eventually import BUDGET_MS, BUDGET_S
from model.blocking_clock import BlockingClock

from kafkacore.client import Cluster, Metadata, PartitionMetadata
from kafkacore.client.addresses import bootstrap_nodes
from kafkacore.errors import (
    IllegalStateError,
    InvalidTopicError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.structs import Node, TopicPartition
from kafkacore.testing import VirtualClock

TP = TopicPartition("t", 0)
FIRST_ID, SECOND_ID = UUID(int=1), UUID(int=2)
BROKERS = (0, 1)


def topic(
    name: str = "t", *, epoch: int = -1, leader: int = 0, topic_id: UUID = ZERO_UUID, **fields: Any
) -> Any:
    partition = MetadataResponse.MetadataResponsePartition(
        partition_index=0,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[0, 1],
        isr_nodes=[0, 1],
        error_code=fields.pop("partition_error", 0),
    )
    partitions = [] if fields.get("error_code") else [partition]
    return MetadataResponse.MetadataResponseTopic(
        name=name, topic_id=topic_id, partitions=partitions, **fields
    )


def answer(*topics: Any, brokers: tuple[int, ...] = BROKERS) -> MetadataResponse:
    return MetadataResponse(
        cluster_id="c",
        controller_id=1,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=each, host=f"node{each}", port=9092 + each)
            for each in brokers
        ],
        topics=list(topics),
    )


class Subject:
    """A bootstrapped Metadata that follows topic ``t``."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.metadata = Metadata(self.clock, **options)
        self.metadata.bootstrap(bootstrap_nodes([("node0", 9092)]))
        self.metadata.set_topics({"t"})

    @property
    def now_ms(self) -> float:
        return self.clock.monotonic_ms()

    def update(self, *topics: Any, version: int = 13, brokers: tuple[int, ...] = BROKERS) -> Cluster:
        """Handle one metadata request and its response."""
        asked = self.metadata.new_metadata_request(self.now_ms)
        response = answer(*topics, brokers=brokers)
        self.metadata.update(asked.request_version, response, asked.is_partial, self.now_ms, version)
        return self.metadata.fetch()

    def wait_ms(self) -> float:
        return self.metadata.time_to_next_update(self.now_ms)


@pytest.fixture
def subject() -> Subject:
    return Subject()


def test_the_first_snapshot_is_the_bootstrap_servers(subject: Subject) -> None:
    cluster = subject.metadata.fetch()
    assert cluster.is_bootstrap
    assert cluster.nodes == (Node(-1, "node0", 9092),)
    assert subject.wait_ms() == 0


def test_an_answer_replaces_the_bootstrap_servers(subject: Subject) -> None:
    cluster = subject.update(topic(epoch=3, topic_id=FIRST_ID, is_internal=True))
    assert not cluster.is_bootstrap
    assert cluster.nodes == (Node(0, "node0", 9092), Node(1, "node1", 9093))
    assert cluster.partitions_for_topic("t") == cluster.available_partitions("t") == (0,)
    assert cluster.leader_for(TP) == Node(0, "node0", 9092)
    assert cluster.leader_epoch(TP) == 3
    assert (cluster.topic_id("t"), cluster.topic_name(FIRST_ID)) == (FIRST_ID, "t")
    assert cluster.internal_topics == {"t"}
    assert cluster.controller == Node(1, "node1", 9093)
    assert cluster.cluster_id == "c"
    assert cluster.replicas(TP) == cluster.nodes
    assert cluster.partitions_for_topic("other") is None


# ---- Leader epochs -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("Metadata", "older leader epochs are ignored, equal and newer ones are accepted")
def test_an_older_leader_epoch_is_ignored_an_equal_one_accepted_a_newer_taken(subject: Subject) -> None:
    subject.update(topic(epoch=10, leader=0))
    assert subject.update(topic(epoch=9, leader=1)).leader_for(TP) == Node(0, "node0", 9092)
    assert subject.metadata.fetch().leader_epoch(TP) == 10
    assert subject.update(topic(epoch=10, leader=1)).leader_for(TP) == Node(1, "node1", 9093)
    assert subject.update(topic(epoch=11, leader=0)).leader_epoch(TP) == 11


def test_newer_epoch_in_another_answer_asks_for_metadata(subject: Subject) -> None:
    subject.update(topic(epoch=10))
    assert not subject.metadata.update_last_seen_epoch_if_newer(TP, 10)
    assert not subject.metadata.update_requested
    assert subject.metadata.update_last_seen_epoch_if_newer(TP, 11)
    assert subject.metadata.update_requested
    # Metadata older than that epoch are ignored.
    assert subject.update(topic(epoch=10, leader=1)).leader_for(TP) == Node(0, "node0", 9092)
    assert not subject.metadata.update_last_seen_epoch_if_newer(TP, 11)


@pytest.mark.kafka("OffsetFetcherTest.testListOffsetNoUpdateMissingEpoch")
def test_epoch_of_a_partition_without_one_is_no_news(subject: Subject) -> None:
    subject.update(topic(epoch=-1))
    assert not subject.metadata.update_last_seen_epoch_if_newer(TP, 3)
    assert not subject.metadata.update_requested


@pytest.mark.behaviour("Metadata", "another topic id restarts the leader epochs")
def test_a_new_topic_id_accepts_a_lower_epoch(subject: Subject) -> None:
    subject.update(topic(epoch=10, topic_id=FIRST_ID))
    cluster = subject.update(topic(epoch=1, leader=1, topic_id=SECOND_ID))
    assert cluster.leader_epoch(TP) == 1
    assert cluster.topic_name(FIRST_ID) is None
    assert subject.update(topic(epoch=0, leader=0, topic_id=SECOND_ID)).leader_epoch(TP) == 1


@pytest.mark.behaviour("Metadata", "brokers that do not support leader epochs set none")
def test_answers_of_brokers_without_reliable_epochs_set_none(subject: Subject) -> None:
    subject.update(topic(epoch=10, leader=0))
    cluster = subject.update(topic(epoch=5, leader=1), version=8)
    assert cluster.leader_epoch(TP) is None
    assert cluster.leader_for(TP) == Node(1, "node1", 9093)
    assert subject.update(topic(epoch=3, leader=0)).leader_epoch(TP) == 3


def test_a_hinted_leader_is_taken_if_it_is_newer_and_its_node_is_known(subject: Subject) -> None:
    subject.update(topic(epoch=5, leader=0))
    version = subject.metadata.update_version
    hint = subject.metadata.update_partition_leadership
    assert hint({TP: (1, 5)}, []) == set()
    assert hint({TP: (7, 6)}, []) == set()
    assert hint({TopicPartition("other", 0): (1, 9)}, []) == set()
    assert subject.metadata.update_version == version
    assert hint({TP: (7, 6)}, [Node(7, "node7", 9099)]) == {TP}
    assert subject.metadata.fetch().leader_for(TP) == Node(7, "node7", 9099)
    assert subject.metadata.update_version == version + 1
    assert subject.update(topic(epoch=5, leader=0)).leader_epoch(TP) == 6


@pytest.mark.behaviour("Metadata", "a leader without a broker entry counts as unknown")
def test_a_leader_that_is_not_among_the_brokers_is_offline(subject: Subject) -> None:
    cluster = subject.update(topic(epoch=1, leader=7))
    assert cluster.leader_for(TP) is None
    assert cluster.partitions_for_topic("t") == (0,)
    assert cluster.available_partitions("t") == ()


def test_a_partition_without_a_leader_is_asked_about_again(subject: Subject) -> None:
    subject.update(topic(leader=-1, partition_error=5))
    assert subject.metadata.update_requested
    subject.update(topic())
    assert not subject.metadata.update_requested


# ---- When to update ----------------------------------------------------------------------------------------


def test_metadata_are_asked_anew_when_they_are_old() -> None:
    subject = Subject(metadata_max_age_ms=5000)
    subject.update(topic())
    assert subject.wait_ms() == 5000
    subject.clock.advance(4999)
    assert subject.wait_ms() == 1
    subject.clock.advance(1)
    assert subject.wait_ms() == 0
    assert not subject.metadata.new_metadata_request(subject.now_ms).is_partial


@pytest.mark.behaviour(
    "Metadata",
    "the back-off also applies to explicit requests, and grows with responses that change nothing",
)
def test_the_back_off_is_respected_even_when_asked_explicitly() -> None:
    subject = Subject(refresh_backoff_ms=100)
    subject.update(topic())
    subject.metadata.request_update()
    assert 80 <= subject.wait_ms() <= 120


def test_failures_back_off_exponentially() -> None:
    subject = Subject(refresh_backoff_ms=100, refresh_backoff_max_ms=1000)
    for expected_ms in (100, 200, 400, 800, 1000, 1000):
        subject.metadata.failed_update(subject.now_ms)
        wait_ms = subject.wait_ms()
        assert expected_ms * 0.8 <= wait_ms <= min(expected_ms * 1.2, 1000)
        assert subject.wait_ms() == wait_ms, "the jitter must be drawn once per failure"
    subject.clock.advance(1000)
    subject.update(topic())
    subject.metadata.request_update()
    assert subject.wait_ms() <= 120


@pytest.mark.behaviour(
    "Metadata",
    "the back-off also applies to explicit requests, and grows with responses that change nothing",
)
def test_equivalent_answers_back_off_too() -> None:
    subject = Subject(refresh_backoff_ms=100, refresh_backoff_max_ms=1000)
    waits = []
    for _ in range(5):
        subject.update(topic(epoch=1))
        subject.metadata.request_update()
        waits.append(subject.wait_ms())
    assert 320 <= waits[3] <= 480
    subject.update(topic(epoch=2))
    subject.metadata.request_update()
    assert subject.wait_ms() <= 120
    subject.update(topic(epoch=2))
    subject.update(topic(epoch=2))
    subject.metadata.request_update(reset_equivalent_backoff=True)
    assert subject.wait_ms() <= 120


@pytest.mark.behaviour("Metadata", "an update that is requested during a request is made by the next request")
def test_a_request_made_while_one_is_in_flight_is_not_lost(subject: Subject) -> None:
    asked = subject.metadata.new_metadata_request(subject.now_ms)
    subject.metadata.request_update()
    subject.metadata.update(asked.request_version, answer(topic()), asked.is_partial, subject.now_ms)
    assert subject.metadata.update_requested
    assert not subject.metadata.new_metadata_request(subject.now_ms).is_partial
    subject.update(topic())
    assert not subject.metadata.update_requested


@pytest.mark.behaviour("Metadata", "an update that is requested during a request is made by the next request")
def test_a_topic_added_while_a_request_is_in_flight_is_asked_about_next(subject: Subject) -> None:
    subject.update(topic())
    subject.metadata.add_topic("u")
    first = subject.metadata.new_metadata_request(subject.now_ms)
    subject.metadata.add_topic("v")
    subject.metadata.update(first.request_version, answer(topic("u")), first.is_partial, subject.now_ms)
    second = subject.metadata.new_metadata_request(subject.now_ms)
    assert second.is_partial
    assert [each.name for each in second.request.topics or []] == ["v"]
    subject.metadata.update(second.request_version, answer(topic("v")), second.is_partial, subject.now_ms)
    assert subject.metadata.fetch().topics == {"t", "u", "v"}
    assert not subject.metadata.update_requested


# ---- Partial updates ---------------------------------------------------------------------------------------


def test_a_new_topic_alone_is_asked_about_at_once_and_keeps_the_others(subject: Subject) -> None:
    before = subject.update(topic(epoch=4, topic_id=FIRST_ID, is_internal=True))
    subject.metadata.add_topic("u")
    assert subject.wait_ms() == 0
    asked = subject.metadata.new_metadata_request(subject.now_ms)
    assert asked.is_partial
    assert [each.name for each in asked.request.topics or []] == ["u"]
    cluster = subject.update(topic("u"))
    assert cluster.topics == {"t", "u"}
    assert cluster.partition(TP) == before.partition(TP)
    assert (cluster.topic_id("t"), cluster.internal_topics) == (FIRST_ID, {"t"})


@pytest.mark.behaviour(
    "Metadata",
    "a partial update does not replace the full one, and two overlapping partial updates are both applied",
)
def test_a_partial_update_does_not_postpone_the_full_refresh() -> None:
    subject = Subject(metadata_max_age_ms=5000)
    subject.update(topic())
    subject.clock.advance(4000)
    subject.metadata.add_topic("u")
    subject.update(topic("u"))
    assert subject.wait_ms() == 1000
    subject.metadata.request_update()
    subject.metadata.add_topic("v")
    assert not subject.metadata.new_metadata_request(subject.now_ms).is_partial


@pytest.mark.behaviour(
    "Metadata",
    "a partial update does not replace the full one, and two overlapping partial updates are both applied",
)
def test_a_full_update_that_is_wanted_survives_a_partial_answer(subject: Subject) -> None:
    subject.update(topic())
    subject.metadata.add_topic("u")
    partial = subject.metadata.new_metadata_request(subject.now_ms)
    subject.metadata.request_update()
    subject.metadata.update(partial.request_version, answer(topic("u")), True, subject.now_ms)
    assert subject.metadata.update_requested
    assert not subject.metadata.new_metadata_request(subject.now_ms).is_partial


@pytest.mark.behaviour(
    "Metadata",
    "a partial update does not replace the full one, and two overlapping partial updates are both applied",
)
def test_partial_answers_that_overlap_both_count(subject: Subject) -> None:
    subject.update(topic())
    subject.metadata.add_topic("u")
    first = subject.metadata.new_metadata_request(subject.now_ms)
    subject.metadata.add_topic("v")
    second = subject.metadata.new_metadata_request(subject.now_ms)
    assert [each.name for each in second.request.topics or []] == ["u", "v"]
    for asked, found in (
        (second, [topic("u", epoch=5, leader=1), topic("v")]),
        (first, [topic("u", epoch=4)]),
    ):
        subject.metadata.update(asked.request_version, answer(*found), asked.is_partial, subject.now_ms)
    cluster = subject.metadata.fetch()
    assert cluster.topics == {"t", "u", "v"}
    assert cluster.leader_epoch(TopicPartition("u", 0)) == 5


# ---- Topics ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Metadata", "followed topics are kept, others removed; internal topics are marked")
def test_topics_that_are_followed_are_kept_and_others_dropped(subject: Subject) -> None:
    subject.metadata.add_topic("u")
    subject.update(topic(epoch=9), topic("u"), topic("uninvited"))
    assert subject.metadata.fetch().topics == {"t", "u"}
    subject.metadata.set_topics({"u"})
    assert subject.update(topic(epoch=9), topic("u")).topics == {"u"}
    subject.metadata.set_topics({"t", "u"})
    assert subject.update(topic(epoch=1), topic("u")).leader_epoch(TP) == 1


@pytest.mark.behaviour("Metadata", "followed topics are kept, others removed; internal topics are marked")
def test_topics_are_internal_as_the_last_answer_about_them_says(subject: Subject) -> None:
    subject.metadata.set_topics({"t", "u"})
    assert subject.update(topic(is_internal=True), topic("u")).internal_topics == {"t"}
    subject.metadata.add_topic("v")
    assert subject.update(topic("v", is_internal=True)).internal_topics == {"t", "v"}
    assert subject.update(topic(), topic("u", is_internal=True), topic("v")).internal_topics == {"u"}


def test_all_topics_are_followed_when_asked_for(subject: Subject) -> None:
    subject.metadata.set_need_all_topics(True)
    assert subject.wait_ms() == 0
    assert subject.metadata.new_metadata_request(subject.now_ms).request.topics is None
    assert subject.update(topic(), topic("whatever")).topics == {"t", "whatever"}
    subject.metadata.set_need_all_topics(False)
    assert [
        each.name for each in subject.metadata.new_metadata_request(subject.now_ms).request.topics or []
    ] == ["t"]


def test_a_topic_that_nobody_names_expires() -> None:
    subject = Subject(topic_expiry_ms=1000)
    subject.metadata.add_topic("u")
    subject.update(topic(), topic("u"))
    subject.clock.advance(900)
    subject.metadata.add_topic("u")
    subject.clock.advance(200)
    subject.metadata.request_update()
    assert [
        each.name for each in subject.metadata.new_metadata_request(subject.now_ms).request.topics or []
    ] == ["u"]
    assert subject.metadata.topics == {"u"}


def test_the_request_says_whether_a_topic_may_be_created() -> None:
    for allowed in (True, False):
        subject = Subject(allow_auto_topic_creation=allowed)
        assert subject.metadata.new_metadata_request(0).request.allow_auto_topic_creation is allowed


# ---- Errors ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Metadata",
    "invalid and unauthorized topics are raised once, for followed topics only",
)
@pytest.mark.parametrize(("code", "error"), [(17, InvalidTopicError), (29, TopicAuthorizationFailedError)])
def test_invalid_and_forbidden_topics_surface_once(
    subject: Subject, code: int, error: type[Exception]
) -> None:
    cluster = subject.update(topic(error_code=code))
    assert isinstance(cluster.topic_error("t"), error)
    with pytest.raises(error, match="'t'"):
        subject.metadata.maybe_raise_any_error()
    subject.metadata.maybe_raise_any_error()
    subject.update(topic(error_code=code))
    subject.update(topic())
    subject.metadata.maybe_raise_any_error()


def test_a_topic_that_does_not_exist_is_no_error_to_raise_but_to_ask_about(subject: Subject) -> None:
    cluster = subject.update(topic(error_code=3))
    assert isinstance(cluster.topic_error("t"), UnknownTopicOrPartitionError)
    assert cluster.partitions_for_topic("t") is None
    subject.metadata.maybe_raise_any_error()
    assert subject.metadata.update_requested


def test_a_fatal_error_wakes_who_waits_and_is_raised_once(subject: Subject) -> None:
    subject.metadata.fatal_error(SaslAuthenticationFailedError("who are you"))
    with pytest.raises(SaslAuthenticationFailedError):
        subject.metadata.wait_for_update(subject.metadata.update_version, 1000)
    assert not subject.metadata.wait_for_update(subject.metadata.update_version, 1000)


def test_bytes_that_make_no_sense_do_no_harm(subject: Subject) -> None:
    odd = topic(epoch=1)
    odd.partitions.append(MetadataResponse.MetadataResponsePartition(partition_index=-5))
    odd.partitions.append(
        MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=1)
    )
    response = answer(odd, brokers=(0, 0, 1, -1))
    response.topics.append(MetadataResponse.MetadataResponseTopic(name=None))
    subject.metadata.update(0, response, False, subject.now_ms)
    cluster = subject.metadata.fetch()
    assert [node.node_id for node in cluster.nodes] == [0, 1]
    assert cluster.partitions_for_topic("t") == (0,)


@pytest.mark.parametrize("address", [("node9", -1), ("node9", 0), ("node9", 65_536), ("", 9092)])
def test_broker_with_an_impossible_address_is_left_out(subject: Subject, address: tuple[str, int]) -> None:
    host, port = address
    response = answer(topic(leader=9))
    response.brokers.append(MetadataResponse.MetadataResponseBroker(node_id=9, host=host, port=port))
    subject.metadata.update(0, response, False, subject.now_ms)
    cluster = subject.metadata.fetch()
    assert [node.node_id for node in cluster.nodes] == [0, 1]
    assert cluster.leader_for(TP) is None


@pytest.mark.parametrize("node", [Node(9, "node9", 65_536), Node(9, "", 9092), Node(-1, "node9", 9092)])
def test_hinted_leader_with_an_impossible_address_is_ignored(subject: Subject, node: Node) -> None:
    known = subject.update(topic(epoch=1))
    assert not subject.metadata.update_partition_leadership({TP: (node.node_id, 5)}, [node])
    assert subject.metadata.fetch() is known


def test_stale_epoch_of_a_forgotten_partition_is_asked_again(subject: Subject) -> None:
    subject.update(topic(epoch=10))
    subject.update(topic(error_code=3))
    assert subject.update(topic(epoch=9)).partition(TP) is None
    assert subject.metadata.update_requested


@pytest.mark.behaviour(
    "Metadata",
    "invalid and unauthorized topics are raised once, for followed topics only",
)
def test_errors_of_topics_that_are_not_followed_surface_to_nobody(subject: Subject) -> None:
    cluster = subject.update(topic(), topic("uninvited", error_code=29))
    assert cluster.topic_error("uninvited") is None
    subject.metadata.maybe_raise_any_error()


# ---- Other threads -----------------------------------------------------------------------------------------


def test_waiting_ends_with_the_update(subject: Subject) -> None:
    metadata = Metadata(BlockingClock())
    metadata.bootstrap(bootstrap_nodes([("node0", 9092)]))
    version = metadata.request_update()
    waiting = threading.Event()
    done: list[bool] = []

    def wait() -> None:
        waiting.set()
        done.append(metadata.wait_for_update(version, BUDGET_MS))

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    metadata.update(0, answer(), False, 0.0)
    thread.join(BUDGET_S)
    assert done == [True]


def test_waiting_ends_when_the_time_is_up(subject: Subject) -> None:
    before_ms = subject.now_ms
    assert not subject.metadata.wait_for_update(subject.metadata.update_version, 700)
    assert subject.now_ms == before_ms + 700
    assert subject.metadata.wait_for_update(subject.metadata.update_version - 1, 0)


@pytest.mark.behaviour("Metadata", "after close there are no more updates, and all waiting threads are woken")
def test_update_after_close_is_refused_and_waiters_wake(subject: Subject) -> None:
    metadata = Metadata(BlockingClock())
    raised: list[BaseException] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        try:
            metadata.wait_for_update(0, BUDGET_MS)
        except IllegalStateError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    metadata.close()
    thread.join(BUDGET_S)
    assert len(raised) == 1
    with pytest.raises(IllegalStateError, match="closed"):
        metadata.update(0, answer(), False, 0.0)


@pytest.mark.behaviour("Metadata", "other threads see consistent snapshots")
def test_snapshots_read_by_another_thread_are_never_torn(subject: Subject) -> None:
    """Leader, epoch and topic id of a snapshot always come from the same response."""
    torn: list[Cluster] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            cluster = subject.metadata.fetch()
            leader, epoch = cluster.leader_for(TP), cluster.leader_epoch(TP)
            if leader is not None and epoch is not None and leader.node_id != epoch % 2:
                torn.append(cluster)

    thread = threading.Thread(target=read)
    thread.start()
    for epoch in range(1000):
        subject.update(topic(epoch=epoch, leader=epoch % 2))
    stop.set()
    thread.join()
    assert torn == []


@pytest.mark.behaviour("Metadata", "other threads see consistent snapshots")
def test_a_snapshot_does_not_change_with_the_next_answer(subject: Subject) -> None:
    first = subject.update(topic(epoch=1, leader=0))
    subject.update(topic(epoch=2, leader=1))
    assert first.leader_for(TP) == Node(0, "node0", 9092)
    assert first.partition(TP) == PartitionMetadata(TP, 0, 1, (0, 1), (0, 1), (), 0)
