"""Types of a snapshot, from which the status page, its JSON and the metrics are made.

Numbers are for the whole broker unless stated otherwise. Times are in milliseconds.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from kafkacore.broker.server.metrics import ApiFigures

#: Increase of each count per second, by the name of the count.
Rates = dict[str, float]


class AboutBroker(TypedDict):
    """The part of :class:`BrokerFigures` that does not change while the broker runs."""

    cluster_id: str
    node_id: int
    bootstrap_servers: str
    security_protocol: str
    ssl_cafile: str | None


class BrokerFigures(TypedDict):
    cluster_id: str
    node_id: int
    bootstrap_servers: str
    security_protocol: str
    ssl_cafile: str | None
    version: str
    python: str
    pid: int
    flush: str
    data_dir: str
    time_ms: int
    uptime_ms: int
    resident_bytes: int
    #: Number of open files; -1 if the system does not report it.
    open_files: int


class FlushFigures(TypedDict):
    count: int
    total_ms: float
    average_ms: float
    largest_ms: float


class PartitionFigures(TypedDict):
    """A partition.

    If the partition could not be loaded, only its number and ``offline`` are set. ``offline`` is the reason.
    """

    partition: int
    offline: str | None
    start: NotRequired[int]
    end: NotRequired[int]
    high_watermark: NotRequired[int]
    size: NotRequired[int]
    segments: NotRequired[int]
    epoch: NotRequired[int]


class TopicFigures(TypedDict):
    """A topic, with a limited number of its partitions."""

    name: str
    is_internal: bool
    partition_count: int
    offline_count: int
    records: int
    size: int
    segments: int
    partitions: list[PartitionFigures]
    bytes_in: int
    messages_in: int
    bytes_out: int
    rates: Rates


class Totals(TypedDict):
    topics: int
    partitions: int
    offline_partitions: int
    size: int
    segments: int
    bytes_in: int
    messages_in: int
    bytes_out: int
    requests: int
    errors: int
    connections: int


class ClientFigures(TypedDict):
    address: str
    client_id: str
    principal: str
    listener: str
    software: str
    node: int


class AuthenticationFigures(TypedDict):
    succeeded: int
    succeeded_again: int
    failed_again: int
    latency_ms: float


class MemberFigures(TypedDict):
    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    assignment: str


class CommittedFigures(TypedDict):
    topic: str
    partition: int
    offset: int
    lag: int | None


class GroupFigures(TypedDict):
    """A group, with a limited number of its members and offsets."""

    group_id: str
    #: ``classic`` or ``consumer``.
    type: str
    state: str
    protocol: str
    member_count: int
    members: list[MemberFigures]
    offsets: list[CommittedFigures]
    topics: list[str]
    lag: int | None


class GroupCountFigures(TypedDict):
    """Number of groups of one type in one state."""

    type: str
    state: str
    count: int


class RebalanceFigures(TypedDict):
    """Numbers of rebalances since the start."""

    #: Rebalances of classic groups that ended with an assignment.
    classic_completed: int
    #: Rebalances of consumer groups, counted when they start.
    consumer: int


class TransactionsFigures(TypedDict):
    id_count: int
    open_count: int
    #: Time since the oldest open transaction began; 0 if none is open.
    oldest_open_ms: int


class Snapshot(TypedDict):
    rates: Rates
    history: dict[str, list[float]]
    at_ms: float
    broker: BrokerFigures
    totals: Totals
    apis: list[ApiFigures]
    flush: FlushFigures
    topics: list[TopicFigures]
    #: A limited number of the connections. ``connection_count`` counts all connections.
    clients: list[ClientFigures]
    connection_count: int
    accepted_count: int
    refused_count: int
    failed_authentication_count: int
    authentications: AuthenticationFigures
    expired_count: int
    throttled_count: int
    throttled_ms: float
    #: Number of delayed requests by API.
    waiting: dict[str, int]
    groups: list[GroupFigures]
    group_count: int
    group_counts: list[GroupCountFigures]
    rebalances: RebalanceFigures
    fetch_session_count: int
    transactions: TransactionsFigures
