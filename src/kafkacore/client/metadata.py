"""The cluster metadata that a client has received, and the times at which the client must refresh it.

The behaviour is that of Kafka's ``Metadata``, ``ProducerMetadata`` and ``ConsumerMetadata``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from threading import Condition
from typing import NamedTuple

from kafkacore.client.cluster import Cluster, PartitionMetadata, is_address
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.client.metadata_merge import MetadataMerge
from kafkacore.clock import Clock
from kafkacore.errors import (
    BrokerResponseError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.structs import Node, TopicPartition

logger = logger_of(__name__)


class MetadataRequestAndVersion(NamedTuple):
    """A Metadata request, and the arguments of :meth:`Metadata.update` that belong to it."""

    request: MetadataRequest
    request_version: int
    is_partial: bool


class Metadata:
    """The newest metadata of the cluster, and the topics that the client needs.

    Any thread may call the methods unless their documentation forbids it.

    Parameters
    ----------
    clock:
        Clock for waits and for the jitter of the back-off.
    refresh_backoff_ms, refresh_backoff_max_ms:
        First and longest pause between two requests, in milliseconds. The pause grows while requests fail or
        their responses contain nothing new.
    metadata_max_age_ms:
        Age, in milliseconds, at which the metadata is refreshed without any other reason.
    topic_expiry_ms:
        Time, in milliseconds, after which a topic is dropped if :meth:`add_topic` has not been called for the
        topic again. ``None`` keeps all topics; only producers set a time.
    allow_auto_topic_creation:
        Whether a Metadata request may create missing topics.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        refresh_backoff_ms: float = 100.0,
        refresh_backoff_max_ms: float = 1000.0,
        metadata_max_age_ms: float = 300_000.0,
        topic_expiry_ms: float | None = None,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        self._clock = clock
        self._backoff = ExponentialBackoff(clock, refresh_backoff_ms, refresh_backoff_max_ms)
        self._max_age_ms = metadata_max_age_ms
        self._topic_expiry_ms = topic_expiry_ms
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._condition = Condition()
        self._cluster = Cluster()
        self._bootstrap = self._cluster
        self._seen_epochs: dict[TopicPartition, int] = {}
        #: Topic → time of the last call of :meth:`add_topic` for the topic.
        self._topics: dict[str, float] = {}
        self._new_topics: set[str] = set()
        self._need_all_topics = False
        self._need_full_update = False
        self._need_partial_update = False
        self._request_version = 0
        self._full_request_version = 0
        self._update_version = 0
        self._last_refresh_ms = -math.inf
        self._last_full_update_ms = -math.inf
        self._attempts = 0
        self._equivalent_responses = 0
        self._backoff_ms = 0.0
        self._fatal_error: KafkaError | None = None
        self._topic_problem: KafkaError | None = None
        self._is_closed = False

    # ---- Topics --------------------------------------------------------------------------------------------

    def add_topic(self, topic: str) -> None:
        """Include ``topic`` in the metadata. A new topic is requested without a back-off."""
        with self._condition:
            known = topic in self._topics
            self._topics[topic] = self._clock.monotonic_ms()
            if not known:
                self._new_topics.add(topic)
                self._want_partial_update()

    def set_topics(self, topics: Iterable[str]) -> None:
        """Include exactly these topics in the metadata."""
        with self._condition:
            wanted = set(topics)
            new = wanted - self._topics.keys()
            now_ms = self._clock.monotonic_ms()
            self._topics = {topic: self._topics.get(topic, now_ms) for topic in wanted}
            self._new_topics = (self._new_topics & wanted) | new
            self._need_all_topics = False
            if new:
                self._want_partial_update()

    def set_need_all_topics(self, needed: bool) -> None:
        """Set whether to include every topic that the client may describe, or only the named topics."""
        with self._condition:
            if needed and not self._need_all_topics:
                self._need_all_topics = True
                self._last_refresh_ms = -math.inf
                self._want_full_update()
            self._need_all_topics = needed

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose metadata is requested by name."""
        with self._condition:
            return frozenset(self._topics)

    # ---- Requests ------------------------------------------------------------------------------------------

    def request_update(self, *, reset_equivalent_backoff: bool = False) -> int:
        """Request a full update as soon as the back-off allows.

        Parameters
        ----------
        reset_equivalent_backoff:
            Whether to reset a back-off that grew because earlier responses contained nothing new. Set this
            argument if there is a new reason for the update.

        Returns
        -------
        int
            The current version, for :meth:`wait_for_update`.
        """
        with self._condition:
            if reset_equivalent_backoff:
                self._equivalent_responses = 0
                self._next_backoff()
            self._want_full_update()
            return self._update_version

    @property
    def update_requested(self) -> bool:
        with self._condition:
            return self._need_full_update or self._need_partial_update

    def time_to_next_update(self, now_ms: float) -> float:
        """Return the milliseconds until the next request is due; 0 if it is due now."""
        # This method is called several times per request, so it does not acquire the lock. Only the polling
        # thread calls it and changes the times. Other threads set the flags and then wake up the polling
        # thread.
        wanted = self._need_full_update or self._need_partial_update
        expires_ms = 0.0 if wanted else self._last_full_update_ms + self._max_age_ms - now_ms
        return max(expires_ms, self.time_to_allow_update(now_ms))

    def time_to_allow_update(self, now_ms: float) -> float:
        """Return the milliseconds until the back-off allows a request; 0 if a request is allowed now."""
        return max(self._last_refresh_ms + self._backoff_ms - now_ms, 0.0)

    def new_metadata_request(self, now_ms: float) -> MetadataRequestAndVersion:
        """Return the request to send now. It contains only the new topics if that is sufficient."""
        with self._condition:
            is_fresh = self._last_full_update_ms + self._max_age_ms > now_ms
            if not is_fresh:
                # A response to a regular refresh usually contains nothing new. Such a response must not cause
                # a back-off.
                self._equivalent_responses = 0
            is_partial = self._need_partial_update and not self._need_full_update and is_fresh
            if is_partial:
                topics = sorted(self._new_topics)
            elif self._need_all_topics:
                topics = None
            else:
                self._drop_expired_topics(now_ms)
                topics = sorted(self._topics)
            request = MetadataRequest(
                topics=None
                if topics is None
                else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
                allow_auto_topic_creation=self._allow_auto_topic_creation,
            )
            return MetadataRequestAndVersion(request, self._request_version, is_partial)

    # ---- Responses -----------------------------------------------------------------------------------------

    def bootstrap(self, nodes: Iterable[Node]) -> None:
        """Use the bootstrap servers of the user as the nodes of the cluster until the first response."""
        with self._condition:
            self._bootstrap = Cluster.bootstrap(nodes)
            self._cluster = self._bootstrap
            self._want_full_update()
            self._update_version += 1

    def rebootstrap(self) -> None:
        """Replace unreachable nodes by the bootstrap servers (KIP-899)."""
        with self._condition:
            self._cluster = self._bootstrap
            self._seen_epochs.clear()
            self._last_refresh_ms = -math.inf
            self._want_full_update()

    def update(
        self,
        request_version: int,
        response: MetadataResponse,
        is_partial: bool,
        now_ms: float,
        response_version: int = MetadataResponse.MAX_VERSION,
    ) -> None:
        """Merge a response into the metadata, and wake up the waiting threads.

        Parameters
        ----------
        request_version, is_partial:
            Values that :meth:`new_metadata_request` returned with the request.
        response:
            The Metadata response.
        now_ms:
            Current time, in milliseconds.
        response_version:
            Version of the Metadata API in which the response was sent.

        Raises
        ------
        IllegalStateError
            The metadata is closed.
        """
        with self._condition:
            if self._is_closed:
                raise IllegalStateError("cannot update the metadata: the client is closed")
            # An update that was requested after this request was sent is still needed: the response does not
            # cover it.
            self._need_partial_update = request_version < self._request_version
            if not is_partial:
                self._need_full_update = request_version < self._full_request_version
                self._last_full_update_ms = now_ms
            self._last_refresh_ms = now_ms
            self._attempts = 0
            self._update_version += 1
            self._new_topics -= {topic.name for topic in response.topics if topic.name is not None}
            merge = MetadataMerge(self._cluster, self._seen_epochs, self._retains_topic)
            cluster = merge.merge(response, response_version, is_partial)
            self._equivalent_responses = (
                self._equivalent_responses + 1 if cluster.same_as(self._cluster) else 0
            )
            if merge.is_incomplete:
                self._want_full_update()
            self._cluster = cluster
            self._forget_epochs()
            self._next_backoff()
            self._fatal_error = None
            self._topic_problem = _topic_problem(cluster.topic_errors)
            self._condition.notify_all()
        logger.debug("metadata version %d: %r", self._update_version, cluster)

    def failed_update(self, now_ms: float) -> None:
        """Record a request without a usable response. The back-off grows."""
        with self._condition:
            self._last_refresh_ms = now_ms
            self._attempts += 1
            self._next_backoff()
            self._fatal_error = None

    def fatal_error(self, error: KafkaError) -> None:
        """Record an error that a retry cannot solve.

        The error is raised once, in :meth:`wait_for_update` or :meth:`maybe_raise_any_error`.
        """
        with self._condition:
            self._fatal_error = error
            self._condition.notify_all()

    def maybe_raise_any_error(self) -> None:
        """Raise the last error, once: a fatal error, or the error of an invalid or unauthorized topic.

        Raises
        ------
        KafkaError
            The fatal error, ``TopicAuthorizationFailedError`` or ``InvalidTopicError``.
        """
        with self._condition:
            error = self._fatal_error or self._topic_problem
            self._fatal_error = self._topic_problem = None
        if error is not None:
            raise error

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Apply the new leaders that a broker returned together with an error (KIP-951).

        Parameters
        ----------
        leaders:
            Leader id and leader epoch by partition.
        nodes:
            Nodes of these leaders.

        Returns
        -------
        set of TopicPartition
            Partitions whose leader has changed. A leader epoch that is not newer is ignored.
        """
        with self._condition:
            last = self._cluster
            named = (node for node in nodes if is_address(node.node_id, node.host, node.port))
            merged = {node.node_id: node for node in (*last.nodes, *named)}
            changed: dict[TopicPartition, PartitionMetadata] = {}
            for tp, (leader_id, leader_epoch) in leaders.items():
                known = last.partition(tp)
                if known is None or leader_id not in merged or leader_epoch <= self._seen_epochs.get(tp, -1):
                    continue
                changed[tp] = known._replace(leader_id=leader_id, leader_epoch=leader_epoch, error_code=0)
                self._seen_epochs[tp] = leader_epoch
            if changed:
                self._cluster = _with_leaders(last, merged.values(), changed)
                self._update_version += 1
                self._condition.notify_all()
            return set(changed)

    def update_last_seen_epoch_if_newer(self, tp: TopicPartition, leader_epoch: int) -> bool:
        """Record a leader epoch from a response, and request an update if it is newer than the known epoch.

        Returns
        -------
        bool
            Whether ``leader_epoch`` is newer; false for a partition without a known epoch.
        """
        with self._condition:
            seen = self._seen_epochs.get(tp)
            if seen is None or leader_epoch <= seen:
                return False
            self._seen_epochs[tp] = leader_epoch
            self.request_update()
            return True

    # ---- Reading and waiting -------------------------------------------------------------------------------

    def fetch(self) -> Cluster:
        """Return the newest snapshot."""
        # Reading one reference is atomic, so the lock is not needed.
        return self._cluster

    @property
    def bootstrap_nodes(self) -> tuple[Node, ...]:
        """The configured bootstrap servers, with node ids below 0."""
        return self._bootstrap.nodes

    def age_ms(self, now_ms: float) -> float:
        """Return the milliseconds since the last full update; infinity if there was none."""
        return now_ms - self._last_full_update_ms

    @property
    def update_version(self) -> int:
        """Version of the metadata. It grows with every update."""
        return self._update_version

    def wait_for_update(self, version: int, timeout_ms: float) -> bool:
        """Wait for an update newer than ``version``. The thread that polls the network must not call this.

        Parameters
        ----------
        version:
            Value that :meth:`request_update` returned.
        timeout_ms:
            Maximum wait, in milliseconds.

        Returns
        -------
        bool
            ``False`` if no update came within ``timeout_ms``.

        Raises
        ------
        IllegalStateError
            The client was closed during the wait.
        KafkaError
            A fatal error occurred.
        """
        with self._condition:
            done = self._clock.wait_for(
                self._condition,
                lambda: self._update_version > version or self._fatal_error is not None or self._is_closed,
                timeout_ms,
            )
            if self._is_closed:
                raise IllegalStateError("the client was closed while waiting for metadata")
            if self._fatal_error is not None:
                error, self._fatal_error = self._fatal_error, None
                raise error
            return done

    def close(self) -> None:
        """Close the metadata, and wake up the waiting threads."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    # ---- Internals -----------------------------------------------------------------------------------------

    def _want_full_update(self) -> None:
        self._need_full_update = True
        self._request_version += 1
        self._full_request_version = self._request_version

    def _want_partial_update(self) -> None:
        # The back-off limits repeated requests. A request for a new topic is not a repetition.
        self._last_refresh_ms = -math.inf
        self._need_partial_update = True
        self._equivalent_responses = 0
        self._request_version += 1

    def _next_backoff(self) -> None:
        """Compute and store the pause before the next request. Each computation adds a random jitter."""
        tries = max(self._attempts, self._equivalent_responses)
        self._backoff_ms = self._backoff.backoff_ms(max(tries - 1, 0))

    def _retains_topic(self, topic: str) -> bool:
        return self._need_all_topics or topic in self._topics

    def _drop_expired_topics(self, now_ms: float) -> None:
        if self._topic_expiry_ms is not None:
            oldest_ms = now_ms - self._topic_expiry_ms
            self._topics = {topic: at_ms for topic, at_ms in self._topics.items() if at_ms >= oldest_ms}

    def _forget_epochs(self) -> None:
        """Remove the leader epochs of topics that the metadata no longer includes."""
        gone = [tp for tp in self._seen_epochs if not self._retains_topic(tp.topic)]
        for tp in gone:
            del self._seen_epochs[tp]


def _topic_problem(errors: Mapping[str, BrokerResponseError]) -> KafkaError | None:
    for kind, what in [
        (TopicAuthorizationFailedError, "not authorized to access topics:"),
        (InvalidTopicError, "invalid topic names:"),
    ]:
        topics = sorted(topic for topic, error in errors.items() if isinstance(error, kind))
        if topics:
            return kind(f"{what} {', '.join(map(repr, topics))}")
    return None


def _with_leaders(
    last: Cluster, nodes: Iterable[Node], changed: Mapping[TopicPartition, PartitionMetadata]
) -> Cluster:
    partitions: dict[str, list[PartitionMetadata]] = {}
    for topic in last.topics:
        for number in last.partitions_for_topic(topic) or ():
            tp = TopicPartition(topic, number)
            known = changed.get(tp) or last.partition(tp)
            assert known is not None
            partitions.setdefault(topic, []).append(known)
    return Cluster(
        last.cluster_id,
        nodes,
        partitions,
        topic_ids=last.topic_ids,
        topic_errors=last.topic_errors,
        internal_topics=last.internal_topics,
        controller_id=last.controller_id,
    )
