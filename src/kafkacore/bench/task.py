"""The task of a worker process and its answer, both in JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

#: Settings of a client under its own names. The type of a value depends on the setting.
ClientSettings = dict[str, Any]
#: Path (``acknowledged`` or ``received``) → stage → figure → microseconds. The figures are p50, p99,
#: ``typical``, the mean of the tenth of the records in the middle, and ``slowest``, the mean of the slowest
#: hundredth. Records are ordered by the time of the whole path, so that the means of all stages add up.
StageFigures = dict[str, dict[str, dict[str, float]]]


class Answer(TypedDict, total=False):
    """Line that a worker prints: the resources that a run used, and its outcome."""

    #: ``ready`` in the first line that a receiver prints. That line has no other fields.
    event: str
    seconds: float
    cpu_s: float
    start_rss_mib: float
    peak_rss_mib: float
    records: int
    #: Number of records that were not acknowledged.
    failed: int
    #: Time at which the first record of a paced run was due.
    start_ms: float
    #: Latency by percentile.
    latency_ms: dict[str, float]
    #: For a round trip, the parts of ``cpu_s`` that the two processes used, and the latency until the
    #: acknowledgement. ``latency_ms`` is that until the reception.
    producer_cpu_s: float
    consumer_cpu_s: float
    acknowledged_ms: dict[str, float]
    #: Time in each stage, which the runner adds.
    stages_us: StageFigures
    #: Reason why the run does not count.
    void: str | None
    client_version: str
    java_version: str
    #: CPU seconds of the broker, which the runner adds.
    broker_cpu_s: float


@dataclass(frozen=True)
class Task:
    """Task for one run of one client."""

    #: ``produce``, ``consume``, ``paced`` (produce at a fixed rate) or ``receive`` (consume from ``paced``).
    role: str
    peer: str
    topic: str
    partitions: int
    records: int
    #: Bytes of each value.
    size: int
    #: Settings of the client under its own names.
    settings: ClientSettings = field(default_factory=dict)
    #: File with the values to send, of ``size`` bytes each, without separators. The roles ``consume`` and
    #: ``receive`` use only the number of values.
    values_file: str = ""
    #: File to which ``receive`` writes the arrival time of each record.
    times_file: str = ""
    #: Further topics for which the client gets metadata before the measurement. One record is sent to each.
    other_topics: tuple[str, ...] = ()
    #: Whether to read as the only member of a group instead of by assignment.
    as_member: bool = False
    #: Number of records that are sent or read before the measurement.
    warm_up_records: int = 1_000
    #: Records per second for ``paced``.
    rate: float = 0.0
    #: Whether another thread of the process computes in Python while ``paced`` sends.
    has_busy_thread: bool = False
    #: Maximum records per call, for clients that take it as an argument.
    poll_records: int = 500
    #: Whether to send or read Arrow columns, if the client supports it.
    arrow: bool = False
    #: Number of parts in which the records are sent. The producer is flushed after each part.
    flushes: int = 1
    #: Seconds without a record after which a reader fails.
    patience_s: float = 30.0
    #: File to which the worker writes the stamps of a trace; empty for no trace. Only for kafkacore.
    stages_file: str = ""
    #: Whether to use the security settings from the environment.
    is_secure: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        fields = json.loads(text)
        fields["other_topics"] = tuple(fields["other_topics"])
        return cls(**fields)
