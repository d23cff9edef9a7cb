"""A coordinator for offset commits and a scripted group membership, on a virtual clock.

The real network client is used with ``kafkacore.testing.MockClient``, so requests and responses are encoded
in the negotiated version. A test can request errors, missing responses and lost connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from model.committed import ModelOffsets, topic_id

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.committed_offsets import CommittedOffsets
from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.consumer.group.group_requests import GroupParts
from kafkacore.consumer.group.membership import GroupCommits
from kafkacore.consumer.group.offset_commits import OffsetCommits
from kafkacore.consumer.interceptors import ConsumerInterceptors
from kafkacore.consumer.offset_validator import OffsetValidator
from kafkacore.consumer.subscription_state import OffsetResetStrategy, SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import CoordinatorNotAvailableError, KafkaConnectionError
from kafkacore.protocol import ApiKey
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.structs import ConsumerGroupMetadata, Node, OffsetAndMetadata, TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.mock_client import MockClient

GROUP = "readers"
MEMBER = Generation(7, "member-1", "range")


class OffsetsBroker(MockClient):
    """A node that stores the committed offsets of groups.

    ``versions`` limits the supported versions: API key → highest version. Each of ``errors`` is used for all
    partitions of one request of its kind. ``group_errors`` are the top-level errors of OffsetFetch. Requests
    that arrive while ``silent`` is set are kept in ``unanswered``.
    """

    def __init__(self, versions: Mapping[ApiKey, int], **options: Any) -> None:
        super().__init__(**options)
        self.offsets = ModelOffsets(lambda: self.topics)
        self.errors: dict[type, deque[int]] = {OffsetCommitRequest: deque(), OffsetFetchRequest: deque()}
        self.group_errors: deque[int] = deque()
        self.silent = False
        self.with_ids = True
        for known in self.api_versions.api_keys:
            known.max_version = min(known.max_version, versions.get(ApiKey(known.api_key), known.max_version))

    @property
    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self.offsets.committed

    @committed.setter
    def committed(self, committed: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.offsets.committed = committed

    def commits(self) -> list[OffsetCommitRequest]:
        return [each.message for each in self.requests_of(OffsetCommitRequest)]

    def _topic_metadata(self, topic: str) -> MetadataResponse.MetadataResponseTopic:
        described = super()._topic_metadata(topic)
        if self.with_ids and not described.error_code:
            described.topic_id = topic_id(topic)
        return described

    def _on_request(self, connection_id: str, header: Any, message: Any) -> None:
        super()._on_request(connection_id, header, message)
        if not self.silent:
            self.answer_all()

    def answer_all(self) -> None:
        """Answer the requests in ``unanswered``."""
        waiting, self.unanswered = self.unanswered, deque()
        for request in waiting:
            errors = self.errors[type(request.message)]
            error = errors.popleft() if errors else 0
            if isinstance(request.message, OffsetCommitRequest):
                self.answer(request, self.offsets.commit(request.message, error))
            else:
                group_error = self.group_errors.popleft() if self.group_errors else 0
                self.answer(request, self.offsets.fetch(request.message, error, group_error))


class ScriptedMembership:
    """A :class:`~kafkacore.consumer.group.membership.GroupMembership` whose state is set by the test.

    The coordinator is ``node`` after a lookup. The first ``lost_lookups`` lookups find no coordinator. With
    ``held_lookups``, lookups wait until the test completes ``lookup``.
    """

    def __init__(self, client: ConsumerNetworkClient, node: Node) -> None:
        self._client = client
        self._node = node
        self._known: Node | None = node
        self.commits: GroupCommits | None = None
        self.wake_background: Callable[[], None] = lambda: None
        self.is_held = False
        self.current = MEMBER
        self.rebalancing = False
        self.failures: list[str] = []
        self.resets: list[tuple[type, Generation]] = []
        self.rejoins: list[str] = []
        self.lookups = 0
        self.lost_lookups = 0
        self.held_lookups = False
        self.lookup: RequestFuture[None] | None = None

    def coordinator(self) -> Node | None:
        return self._known

    def lookup_coordinator(self) -> RequestFuture[None]:
        if self._known is not None:
            return RequestFuture.success(None)
        if self.lookup is None:
            self.lookups += 1
            self.lookup = RequestFuture()
            if not self.held_lookups:
                return self.end_lookup()
        return self.lookup

    def end_lookup(self) -> RequestFuture[None]:
        """Complete the pending lookup."""
        lookup, self.lookup = self.lookup, None
        assert lookup is not None
        if self.lost_lookups:
            self.lost_lookups -= 1
            lookup.fail(CoordinatorNotAvailableError())
        else:
            self._known = self._node
            lookup.complete(None)
        return lookup

    def ensure_coordinator(self, timer: Timer) -> bool:
        while self._known is None:
            self.lookup_coordinator()
            if self._known is None:
                if timer.expired:
                    return False
                self._client.poll(timer)
        return True

    def coordinator_failed(self, cause: str, *, disconnected: bool = False) -> None:
        self.failures.append(cause)
        self._known = None

    def request_failed(self, node: Node, error: BaseException) -> None:
        if isinstance(error, KafkaConnectionError) and self._known == node:
            self.coordinator_failed(str(error), disconnected=True)

    def generation_for_fetch(self) -> Generation:
        return NO_GENERATION

    def generation(self) -> Generation:
        return self.current

    def is_rebalancing(self) -> bool:
        return self.rebalancing

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        if sent == self.current:
            self.resets.append((type(error), sent))
            self.current = NO_GENERATION

    def request_rejoin(self, reason: str) -> None:
        self.rejoins.append(reason)

    # Methods that commits do not call.
    def poll(self) -> bool:
        raise AssertionError

    def time_to_next_poll_ms(self, now_ms: float) -> float:
        raise AssertionError

    def polled(self, now_ms: float) -> None:
        raise AssertionError

    def background_turn(self, now_ms: float) -> float:
        raise AssertionError

    def subscription_changed(self) -> None:
        raise AssertionError

    def group_metadata(self) -> ConsumerGroupMetadata:
        raise AssertionError

    def leave(self, reason: str) -> None:
        raise AssertionError

    def close(self, timer: Timer) -> None:
        raise AssertionError


class Group:
    """All parts together. ``consumed`` has the positions of the application."""

    def __init__(self, versions: Mapping[ApiKey, int] | None = None, **config: Any) -> None:
        self.clock = VirtualClock()
        self.broker = OffsetsBroker(versions or {}, topics={"a": 3, "b": 1}, clock=self.clock)
        self.broker.connect()
        self.config = {
            "group_id": GROUP, "group_instance_id": None, "enable_auto_commit": True,
            "auto_commit_interval_ms": 5000, "default_offset_commit_callback": None, "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1000, "max_poll_interval_ms": 300_000, "bootstrap_servers": "node0:9092",
        } | config  # fmt: skip
        self.client = ConsumerNetworkClient(self.broker.client, self.broker.metadata, clock=self.clock)
        self.subscriptions = SubscriptionState(OffsetResetStrategy.EARLIEST)
        self.subscriptions.subscribe(["a"])
        self.membership = ScriptedMembership(self.client, self.broker.nodes[0])
        self.consumed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.parts = GroupParts(
            self.config, self.client, self.broker.metadata, self.subscriptions, self.membership, self.clock
        )
        self.interceptor = NotesCommits()
        self.commits = OffsetCommits(
            self.parts, lambda: dict(self.consumed), ConsumerInterceptors([self.interceptor])
        )
        self.offsets = CommittedOffsets(self.parts)
        self.validator = OffsetValidator(self.client, self.broker.metadata, self.subscriptions, self.clock)
        self._started_ms = self.clock.monotonic_ms()

    def elapsed_ms(self) -> float:
        return self.clock.monotonic_ms() - self._started_ms

    def timer(self, timeout_ms: float = 10_000) -> Timer:
        return Timer(self.clock, timeout_ms)

    def turn(self, timeout_ms: float = 0) -> None:
        """Do what a consumer's poll does in addition."""
        self.client.poll(self.timer(timeout_ms))
        self.commits.invoke_completed_callbacks()


class NotesCommits:
    def __init__(self) -> None:
        self.committed: list[Any] = []

    def on_commit(self, offsets: Any) -> None:
        self.committed.append(dict(offsets))
