"""Brokers on real sockets that serve fetch sessions from model logs. A test can change their responses."""

from __future__ import annotations

import itertools
import socket
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from eventually import BUDGET_S
from model.fetch_log import FetchLog, simple_batch

from kafkacore.network import FrameReader
from kafkacore.protocol import ApiKey, decode_request, encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsResponse
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kafkacore.structs import TopicPartition

OFFSET_OUT_OF_RANGE, NOT_LEADER, SESSION_NOT_FOUND, INVALID_SESSION_EPOCH = 1, 6, 70, 71
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID = 74, 75, 100
EARLIEST = -2
#: Function that changes a response, or returns ``None`` to close the connection instead.
Change = Callable[[Any], Any]


class _Session:
    """Partitions of a fetch session, by topic id and index, with their fetch offsets."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 1
        self.partitions: dict[tuple[uuid.UUID, int], Any] = {}


class FetchServers:
    """The brokers of one cluster, with node ids from 0.

    Parameters
    ----------
    logs:
        Partitions and their logs.
    nodes:
        Number of brokers. Partition ``n`` of each topic is led by node ``n % nodes``.
    fetch_version:
        Newest version of Fetch.

    Attributes
    ----------
    changed:
        Lock of everything here; notified after each change.
    checks_epochs:
        Whether a fetch with another leader epoch than the leader's fails.
    fetches:
        Decoded fetch requests by node.
    changes:
        Functions that change the next fetch responses, by node.
    raw_changes:
        Functions that return the bytes to send instead of the next fetch responses, by node. They take the
        payload without its size.
    """

    def __init__(self, logs: dict[TopicPartition, FetchLog], nodes: int = 1, fetch_version: int = 17) -> None:
        self.changed = threading.Condition()
        self.logs = dict(logs)
        self.leaders = {tp: tp.partition % nodes for tp in logs}
        self.epochs = dict.fromkeys(logs, 0)
        self.checks_epochs = True
        self.topic_ids = {tp.topic: uuid.uuid4() for tp in logs}
        self.fetches: dict[int, list[Any]] = defaultdict(list)
        self.changes: dict[int, deque[Change]] = defaultdict(deque)
        self.raw_changes: dict[int, deque[Callable[[bytes], bytes]]] = defaultdict(deque)
        self.sessions: dict[int, _Session] = {}
        self._session_ids = itertools.count(1)
        self._fetch_version = fetch_version
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(nodes)]
        self._ports = [each.getsockname()[1] for each in self._listeners]
        self._connections: list[tuple[int, socket.socket]] = []
        self._threads = [
            threading.Thread(target=self._accept, args=[node, listener])
            for node, listener in enumerate(self._listeners)
        ]
        for thread in list(self._threads):
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
        for node in range(len(self._listeners)):
            self.hang_up(node)
        for thread in self._threads:
            thread.join()
        for listener in self._listeners:
            listener.close()

    # ---- What a test does --------------------------------------------------------------------------------
    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    def append(self, tp: TopicPartition, count: int = 1, **options: Any) -> None:
        """Append one batch of ``count`` records with value ``v<offset>``."""
        self.append_batch(tp, lambda end: simple_batch(end, count, **options))

    def append_batch(self, tp: TopicPartition, *batches: Callable[[int], bytes]) -> None:
        """Append the batches that the functions return for the end offset."""
        with self.changed:
            for new_batch in batches:
                log = self.logs[tp]
                log.append(new_batch(log.end_offset))
            self.changed.notify_all()

    def change_next(self, *changes: Change, node: int = 0) -> None:
        """Pass each of the next fetch responses of a node to one of ``changes``."""
        with self.changed:
            self.changes[node].extend(changes)

    def change_cluster(self, change: Callable[[], object]) -> None:
        """Change leaders, epochs or topic ids; fetches that wait are answered if they are now wrong."""
        with self.changed:
            change()
            self.changed.notify_all()

    def hang_up(self, node: int) -> None:
        """Close all connections of a node, and forget its sessions."""
        with self.changed:
            mine = [each for at, each in self._connections if at == node]
            self._connections = [pair for pair in self._connections if pair[0] != node]
            self.changed.notify_all()
        for each in mine:
            with suppress(OSError):  # the client has closed it
                each.shutdown(socket.SHUT_RDWR)

    def await_fetch(self, number: int, node: int = 0) -> Any:
        """Return the request with this number, from 1, when it has arrived."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.fetches[node]) >= number, BUDGET_S)
            return self.fetches[node][number - 1]

    # ---- Connections -------------------------------------------------------------------------------------
    def _accept(self, node: int, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[node, connection])
            with self.changed:
                self._connections.append((node, connection))
                self._threads.append(thread)
            thread.start()

    def _serve(self, node: int, connection: socket.socket) -> None:
        reader = FrameReader("client")
        with connection, suppress(OSError):
            while data := connection.recv(65536):
                for frame in reader.feed(data):
                    answer = self._answer(node, connection, bytes(frame.payload))
                    if answer is None:
                        return
                    connection.sendall(answer)

    def _answer(self, node: int, connection: socket.socket, payload: bytes) -> bytes | None:
        header, message = decode_request(payload)
        key = header.request_api_key
        response: Any
        if key == ApiKey.FETCH:
            response = self._fetch(node, connection, message)
        else:
            with self.changed:
                response = _ANSWERS[ApiKey(key)](self, message)
        if response is None:
            return None
        frame = b"".join(encode_response(response, header.request_api_version, header.correlation_id))
        with self.changed:
            if key == ApiKey.FETCH and self.raw_changes[node]:
                return self.raw_changes[node].popleft()(frame)
        return len(frame).to_bytes(4) + frame

    # ---- Fetches -----------------------------------------------------------------------------------------
    def _fetch(self, node: int, connection: socket.socket, request: Any) -> Any:
        with self.changed:
            self.fetches[node].append(request)
            self.changed.notify_all()
            session, response = self._session_of(request)
            if response is None:

                def found() -> Any:
                    is_open = any(each is connection for _, each in self._connections)
                    return not is_open or self._parts(node, session, False)

                if request.session_epoch != 0:
                    self.changed.wait_for(found, request.max_wait_ms / 1000)
                response = FetchResponse(
                    session_id=session.number,
                    responses=self._parts(node, session, request.session_epoch == 0),
                )
            if self.changes[node]:
                response = self.changes[node].popleft()(response)
            return response

    def _session_of(self, request: Any) -> tuple[Any, Any]:
        """Return the updated session, or a response with an error."""
        if request.session_epoch == -1:
            return None, FetchResponse(responses=[])
        if request.session_epoch == 0:
            self.sessions.pop(request.session_id, None)
            session: Any = _Session(next(self._session_ids))
            self.sessions[session.number] = session
        else:
            session = self.sessions.get(request.session_id)
            if session is None:
                return None, FetchResponse(error_code=SESSION_NOT_FOUND, responses=[])
            if request.session_epoch != session.epoch:
                return None, FetchResponse(error_code=INVALID_SESSION_EPOCH, responses=[])
            session.epoch += 1
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic_id, index), None)
        for topic in request.topics:
            for part in topic.partitions:
                session.partitions[topic.topic_id, part.partition] = part
        return session, None

    def _parts(self, node: int, session: Any, is_full: bool) -> list[Any]:
        """Return the partitions of the session that have changed or have records."""
        topics: dict[uuid.UUID, list[Any]] = {}
        for (topic_id, index), wanted in session.partitions.items():
            data = self._read(node, topic_id, index, wanted)
            if is_full or data.error_code or data.records:
                topics.setdefault(topic_id, []).append(data)
        return [
            FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=parts)
            for topic_id, parts in topics.items()
        ]

    def _read(self, node: int, topic_id: uuid.UUID, index: int, wanted: Any) -> Any:
        names = {each: name for name, each in self.topic_ids.items()}
        data = FetchResponse.PartitionData(partition_index=index, aborted_transactions=None, records=b"")
        tp = TopicPartition(names.get(topic_id, ""), index)
        log, epoch = self.logs.get(tp), wanted.current_leader_epoch
        if log is None:
            data.error_code = UNKNOWN_TOPIC_ID
        elif self.leaders[tp] != node:
            data.error_code = NOT_LEADER
        elif self.checks_epochs and -1 < epoch < self.epochs[tp]:
            data.error_code = FENCED_LEADER_EPOCH
        elif self.checks_epochs and epoch > self.epochs[tp]:
            data.error_code = UNKNOWN_LEADER_EPOCH
        elif not log.start_offset <= wanted.fetch_offset <= log.end_offset:
            data.error_code = OFFSET_OUT_OF_RANGE
        else:
            data.records = log.read(wanted.fetch_offset, wanted.partition_max_bytes)
            data.high_watermark = data.last_stable_offset = log.end_offset
            data.log_start_offset = log.start_offset
            first = wanted.fetch_offset
            aborted = [each for each in log.aborted if each[2] >= first] if data.records else []
            if aborted:
                data.aborted_transactions = [
                    FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=offset)
                    for producer_id, offset, _ in aborted
                ]
        return data

    # ---- Other requests ----------------------------------------------------------------------------------
    def _api_versions(self, message: Any) -> Any:
        newest = {
            ApiKey.API_VERSIONS: 3, ApiKey.METADATA: 12, ApiKey.FETCH: self._fetch_version,
            ApiKey.LIST_OFFSETS: 7, ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
        }  # fmt: skip
        versions = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=version)
            for key, version in newest.items()
        ]
        return ApiVersionsResponse(api_keys=versions)

    def _metadata(self, message: Any) -> Any:
        topics: dict[str, list[Any]] = {}
        for tp, leader in self.leaders.items():
            topics.setdefault(tp.topic, []).append(
                MetadataResponse.MetadataResponsePartition(
                    partition_index=tp.partition,
                    leader_id=leader,
                    leader_epoch=self.epochs[tp],
                    replica_nodes=list(range(len(self._ports))),
                    isr_nodes=list(range(len(self._ports))),
                    offline_replicas=[],
                )
            )
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port)
                for node, port in enumerate(self._ports)
            ],
            cluster_id="c",
            controller_id=0,
            topics=[
                MetadataResponse.MetadataResponseTopic(
                    name=name, topic_id=self.topic_ids[name], partitions=partitions
                )
                for name, partitions in topics.items()
            ],
        )

    def _list_offsets(self, message: Any) -> Any:
        def offset_of(name: str, asked: Any) -> Any:
            log = self.logs[TopicPartition(name, asked.partition_index)]
            return ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=asked.partition_index,
                offset=log.start_offset if asked.timestamp == EARLIEST else log.end_offset,
                leader_epoch=0,
            )

        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name, partitions=[offset_of(topic.name, each) for each in topic.partitions]
                )
                for topic in message.topics
            ]
        )

    def _leader_epochs(self, message: Any) -> Any:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        OffsetForLeaderEpochResponse.EpochEndOffset(
                            partition=each.partition,
                            leader_epoch=each.leader_epoch,
                            end_offset=self.logs[TopicPartition(topic.topic, each.partition)].end_offset,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )


_ANSWERS: dict[ApiKey, Callable[[FetchServers, Any], Any]] = {
    ApiKey.API_VERSIONS: FetchServers._api_versions,
    ApiKey.METADATA: FetchServers._metadata,
    ApiKey.LIST_OFFSETS: FetchServers._list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: FetchServers._leader_epochs,
}
