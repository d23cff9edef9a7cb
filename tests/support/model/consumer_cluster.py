"""A model of a cluster that answers a consumer from model logs, in one thread and on a virtual clock.

It replaces the ``NetworkClient`` and has its methods and protocol messages, but no sockets and no bytes: a
:class:`~model.fetch_log.FetchLog` answers a request. A test can request failures: errors per partition,
unavailable nodes, delayed responses.
"""

from collections import defaultdict, deque
from types import SimpleNamespace
from uuid import UUID

from kafkacore.client.connection_errors import ConnectionErrors
from kafkacore.consumer.fetch_session import FIRST_VERSION_BY_ID
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkacore.structs import Node, TopicPartition

FETCH_VERSION = 17
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, FENCED_LEADER_EPOCH = 1, 3, 74
#: Step in milliseconds by which a wait advances the clock.
STEP_MS = 10


class ModelCluster:
    """Logs and leaders by partition, and the failures to simulate."""

    def __init__(self, clock, logs, node_count=1):
        self.clock = clock
        self.logs = dict(logs)
        self.nodes = [Node(number, f"host{number}", 9092) for number in range(node_count)]
        self.leaders = {tp: tp.partition % node_count for tp in self.logs}
        self.leader_epochs = defaultdict(int)
        self.replicas = defaultdict(lambda: [node.node_id for node in self.nodes])
        self.epoch_ends = {}
        self.fetch_version = FETCH_VERSION
        self.down = set()
        self.held = set()
        self.held_metadata = False
        self.errors = defaultdict(deque)
        self.preferred = {}
        self.offline = defaultdict(set)
        self.hints = {}
        self.sessions = {}
        self.requests = []
        #: Coordinator of a group; see model.group_coordinator.
        self.coordinator = None

    def topic_id(self, topic):
        return UUID(int=sum(topic.encode()) + 1)

    def topic_of(self, topic, topic_id):
        names = {self.topic_id(tp.topic): tp.topic for tp in self.logs}
        return names.get(topic_id, topic) if self.fetch_version >= FIRST_VERSION_BY_ID else topic

    def requests_of(self, kind):
        return [request for _, request in self.requests if isinstance(request, kind)]

    # ---- Responses: a message, or None for "not yet" ----------------------------------------------------
    def answer(self, node_id, request, age_ms):
        if isinstance(request, tuple(self.held)):
            return None
        handlers = {
            FetchRequest: self._fetch,
            ListOffsetsRequest: self._list_offsets,
            MetadataRequest: self._metadata,
            OffsetForLeaderEpochRequest: self._epochs,
        }
        if type(request) not in handlers:
            return self.coordinator.answer(node_id, request)
        return handlers[type(request)](node_id, request, age_ms)

    def _fetch(self, node_id, request, age_ms):
        wanted = self._session(node_id, request)
        answers = {tp: self._fetch_one(node_id, tp, asked) for tp, asked in wanted.items()}
        news = {
            tp: data
            for tp, data in answers.items()
            if data.records or data.error_code or data.preferred_read_replica >= 0
        }
        if not news and age_ms < request.max_wait_ms and wanted:
            return None
        full = request.session_epoch <= 0
        topics = defaultdict(list)
        for tp, data in (answers if full else news).items():
            topics[tp.topic].append(data)
        return FetchResponse(
            session_id=0 if request.session_epoch < 0 else node_id + 100,
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic=topic, topic_id=self.topic_id(topic), partitions=partitions
                )
                for topic, partitions in topics.items()
            ],
        )

    def _session(self, node_id, request):
        known = {} if request.session_epoch <= 0 else dict(self.sessions[node_id])
        for topic in request.forgotten_topics_data:
            name = self.topic_of(topic.topic, topic.topic_id)
            for partition in topic.partitions:
                known.pop(TopicPartition(name, partition), None)
        for topic in request.topics:
            name = self.topic_of(topic.topic, topic.topic_id)
            for asked in topic.partitions:
                known[TopicPartition(name, asked.partition)] = asked
        self.sessions[node_id] = known
        return known

    def _fetch_one(self, node_id, tp, asked):
        log = self.logs.get(tp)
        data = FetchResponse.PartitionData(partition_index=tp.partition, records=None)
        if self.errors["fetch", tp]:
            data.error_code = self.errors["fetch", tp].popleft()
            if tp in self.hints:
                leader_id, leader_epoch = self.hints[tp]
                data.current_leader = FetchResponse.LeaderIdAndEpoch(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
        elif log is None:
            data.error_code = UNKNOWN_TOPIC
        elif asked.current_leader_epoch < self.leader_epochs[tp]:
            data.error_code = FENCED_LEADER_EPOCH
        elif not log.start_offset <= asked.fetch_offset <= log.end_offset:
            data.error_code = OFFSET_OUT_OF_RANGE
        elif tp in self.preferred and self.preferred[tp] != node_id:
            data.preferred_read_replica = self.preferred[tp]
            data.records = memoryview(b"")
        else:
            data.records = memoryview(log.read(asked.fetch_offset, asked.partition_max_bytes))
            data.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=producer, first_offset=first)
                for producer, first in log.aborted
            ]
        if log is not None:
            data.high_watermark = data.last_stable_offset = log.end_offset
            data.log_start_offset = log.start_offset
        return data

    def _list_offsets(self, node_id, request, age_ms):
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._list_one(TopicPartition(topic.name, asked.partition_index), asked.timestamp)
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _list_one(self, tp, timestamp):
        answer = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=tp.partition)
        answer.leader_epoch = self.leader_epochs[tp]
        if self.errors["list", tp]:
            answer.error_code = self.errors["list", tp].popleft()
        elif timestamp == -1:
            answer.offset = self.logs[tp].end_offset
        elif timestamp == -2:
            answer.offset = self.logs[tp].start_offset
        elif timestamp <= 1000 and self.logs[tp].batches:
            answer.offset, answer.timestamp = self.logs[tp].start_offset, 1000
        return answer

    def _metadata(self, node_id, request, age_ms):
        existing = {tp.topic for tp in self.logs}
        names = existing if request.topics is None else {topic.name for topic in request.topics}
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port)
                for node in self.nodes
            ],
            cluster_id="model",
            controller_id=0,
            topics=[
                MetadataResponse.MetadataResponseTopic(
                    name=name,
                    error_code=0 if name in existing else UNKNOWN_TOPIC,
                    topic_id=self.topic_id(name),
                    is_internal=name.startswith("__"),
                    partitions=[
                        MetadataResponse.MetadataResponsePartition(
                            partition_index=tp.partition,
                            leader_id=self.leaders[tp],
                            leader_epoch=self.leader_epochs[tp],
                            replica_nodes=[node.node_id for node in self.nodes],
                            isr_nodes=[node.node_id for node in self.nodes],
                        )
                        for tp in sorted(self.logs)
                        if tp.topic == name
                    ],
                )
                for name in sorted(names)
            ],
        )

    def _epochs(self, node_id, request, age_ms):
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        self._epoch_one(TopicPartition(topic.topic, asked.partition), asked.leader_epoch)
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _epoch_one(self, tp, epoch):
        end = self.epoch_ends.get(tp, self.logs[tp].end_offset)
        return OffsetForLeaderEpochResponse.EpochEndOffset(
            partition=tp.partition, leader_epoch=epoch, end_offset=end
        )


class ModelNetwork:
    """The ``NetworkClient`` of a :class:`ModelCluster`."""

    def __init__(self, cluster, metadata):
        self.cluster = cluster
        self.metadata = metadata
        self.clock = cluster.clock
        #: A consumer reads this attribute, but there are no sockets and no authentication.
        self.selector = SimpleNamespace(on_authenticated=None)
        self.connection_errors = ConnectionErrors()
        self.connected = set()
        self.failed = set()
        self.closed = False
        self.woken = 0
        self.polls = []
        self._in_flight = deque()

    def new_client_request(
        self,
        node_id,
        request,
        now_ms,
        expect_response=True,
        request_timeout_ms=None,
        callback=None,
        max_version=None,
    ):
        if isinstance(request, RequestBuilder):
            newest = request.request_class.MAX_VERSION
            request = request.build(newest if max_version is None else max_version)
        return SimpleNamespace(
            node_id=node_id,
            request=request,
            created_ms=now_ms,
            timeout_ms=request_timeout_ms,
            callback=callback,
            max_version=max_version,
        )

    def ready(self, node, now_ms):
        if node.node_id in self.cluster.down:
            self.failed.add(node.node_id)
            return False
        self.failed.discard(node.node_id)
        self.connected.add(node.node_id)
        return True

    def is_ready(self, node, now_ms):
        return node.node_id in self.connected

    def connection_failed(self, node):
        return node.node_id in self.failed

    def connection_delay(self, node, now_ms):
        return 50.0 if node.node_id in self.cluster.down else 0.0

    poll_delay_ms = connection_delay

    def authentication_error(self, node):
        return None

    def least_loaded_node(self, now_ms):
        return next((node for node in self.cluster.nodes if node.node_id not in self.cluster.down), None)

    def send(self, request, now_ms):
        assert request.node_id in self.connected
        self.cluster.requests.append((request.node_id, request.request))
        self._in_flight.append(request)

    def connection_count(self):
        return len(self.connected)

    def in_flight_request_count(self, node_id=None):
        return sum(node_id is None or request.node_id == node_id for request in self._in_flight)

    def disconnect(self, node_id):
        self.connected.discard(node_id)
        mine = [request for request in self._in_flight if request.node_id == node_id]
        self._in_flight = deque(request for request in self._in_flight if request.node_id != node_id)
        return [self._deliver(request, None, disconnected=True) for request in mine]

    def wakeup(self):
        self.woken += 1

    def flush(self, now_ms):
        pass

    def poll(self, timeout_ms, now_ms, *, has_unsent=True):
        self.polls.append(timeout_ms)
        if self.metadata.is_update_due():
            before = self.metadata.update_version
            self.metadata.update()
            if self.metadata.update_version > before:
                return self._answers()
        found, left_ms = self._answers(), timeout_ms
        while not found and left_ms > 0:
            self.clock.advance(min(left_ms, STEP_MS))
            left_ms -= STEP_MS
            found = self._answers()
        return found

    def _answers(self):
        now_ms, waiting, found = self.clock.monotonic_ms(), deque(), []
        for request in self._in_flight:
            age_ms = now_ms - request.created_ms
            if request.node_id in self.cluster.down or age_ms >= (request.timeout_ms or 30_000):
                found.append((request, None))
                continue
            message = self.cluster.answer(request.node_id, request.request, age_ms)
            if message is None:
                waiting.append(request)
            else:
                found.append((request, message))
        self._in_flight = waiting
        return [self._deliver(request, message, message is None) for request, message in found]

    def _deliver(self, request, message, disconnected):
        version = self.cluster.fetch_version
        if request.max_version is not None:
            version = min(version, request.max_version)
        response = SimpleNamespace(
            request=request,
            message=message,
            disconnected=disconnected,
            timed_out=False,
            version_mismatch=None,
            authentication_error=None,
            latency_ms=1.0,
            version=version,
        )
        if request.callback is not None:
            request.callback(response)
        return response

    def close(self):
        self.closed = True


class ModelMetadata:
    """The ``Metadata`` and the ``Cluster`` of a :class:`ModelCluster`.

    A requested update is complete after one poll.
    """

    def __init__(self, cluster):
        self.cluster = cluster
        self.update_version = 0
        self.update_requests = 0
        self.wanted_topics = set()
        self.all_topics = False
        self.error = None
        self._known = {}
        self._leaders = {}
        self._epochs = {}

    # Metadata
    def request_update(self, *, reset_equivalent_backoff=False):
        self.update_requests += 1
        return self.update_version

    @property
    def update_requested(self):
        return self.is_update_due()

    def add_topic(self, topic):
        self.wanted_topics.add(topic)

    def set_topics(self, topics):
        self.wanted_topics = set(topics)
        self.all_topics = False

    def set_need_all_topics(self, needed):
        self.all_topics = needed
        self.update_requests += needed

    def maybe_raise_any_error(self):
        error, self.error = self.error, None
        if error is not None:
            raise error

    def fetch(self):
        return self

    def update_partition_leadership(self, leaders, nodes):
        for tp, (leader_id, leader_epoch) in leaders.items():
            self._leaders[tp], self._epochs[tp] = leader_id, leader_epoch
        return set(leaders)

    def update(self):
        """Complete a requested update, as the network does."""
        if self.cluster.held_metadata or self.cluster.down.issuperset(
            node.node_id for node in self.cluster.nodes
        ):
            return
        self.update_version += 1
        self.update_requests = 0
        known = [tp for tp in self.cluster.logs if self.all_topics or tp.topic in self.wanted_topics]
        self._known = dict.fromkeys(sorted(known), True)
        self._leaders = dict(self.cluster.leaders)
        self._epochs = dict(self.cluster.leader_epochs)

    def is_update_due(self):
        missing = self.wanted_topics - {tp.topic for tp in self._known}
        return bool(self.update_requests or missing)

    def time_to_allow_update(self, now_ms):
        return 0.0

    def update_last_seen_epoch_if_newer(self, tp, leader_epoch):
        if leader_epoch <= self._epochs.get(tp, -1):
            return False
        self._epochs[tp] = leader_epoch
        self.request_update()
        return True

    # Cluster
    @property
    def is_bootstrap(self):
        return not self.update_version

    @property
    def nodes(self):
        return self.cluster.nodes if self.update_version else []

    @property
    def topics(self):
        return {tp.topic for tp in self._known}

    @property
    def internal_topics(self):
        return frozenset(topic for topic in self.topics if topic.startswith("__"))

    def node_by_id(self, node_id):
        return next((node for node in self.nodes if node.node_id == node_id), None)

    def online_node(self, tp, node_id):
        return None if node_id in self.cluster.offline[tp] else self.node_by_id(node_id)

    def leader_for(self, tp):
        return (
            self.node_by_id(self._leaders[tp])
            if tp in self._known and self._leaders.get(tp) is not None
            else None
        )

    def partition(self, tp):
        return SimpleNamespace(replica_ids=self.cluster.replicas[tp]) if tp in self._known else None

    def leader_epoch(self, tp):
        return self._epochs.get(tp, 0) if tp in self._known else None

    def topic_id(self, topic):
        return self.cluster.topic_id(topic) if self.cluster.fetch_version >= FIRST_VERSION_BY_ID else None

    def topic_name(self, topic_id):
        return next((topic for topic in self.topics if self.topic_id(topic) == topic_id), None)

    def partitions_for_topic(self, topic):
        found = tuple(tp.partition for tp in self._known if tp.topic == topic)
        return found or None


def read(consumer, timeout_ms=1000, **limits):
    """Return the offsets of one poll, by partition."""
    return {
        tp: [record.offset for record in records]
        for tp, records in consumer.poll(timeout_ms, **limits).items()
    }
