"""What a worker process is asked to do, and what it answers, both as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

#: Of a client, by its own names. What a value is depends on the setting.
ClientSettings = dict[str, Any]


class Answer(TypedDict, total=False):
    """A line that a worker prints: what its run used and what came of it."""

    #: ``ready``, of a receiver, and then nothing else.
    event: str
    seconds: float
    cpu_s: float
    start_rss_mib: float
    peak_rss_mib: float
    records: int
    #: Records that were not acknowledged.
    failed: int
    #: When the first record of a paced run was due.
    start_ms: float
    #: By percentile.
    latency_ms: dict[str, float]
    #: Why the run does not count.
    void: str | None
    client_version: str
    java_version: str
    #: Added by the runner.
    broker_cpu_s: float


@dataclass(frozen=True)
class Task:
    """One run of one client."""

    #: ``produce``, ``consume``, ``paced`` (produce at a fixed rate) or ``receive`` (of what is paced).
    role: str
    peer: str
    topic: str
    partitions: int
    records: int
    #: Bytes of each value.
    size: int
    #: The client's own settings by its own names.
    settings: ClientSettings = field(default_factory=dict)
    #: Values of ``size`` bytes each, one behind the other; for the roles that send.
    values_file: str = ""
    #: Where ``receive`` writes when each record came.
    times_file: str = ""
    #: Known to the client before the clock starts, beside ``topic``; one record is sent to each.
    other_topics: tuple[str, ...] = ()
    #: Read as the only member of a group; else by assignment.
    as_member: bool = False
    #: Sent, or read and read again, before the clock starts.
    warm_up_records: int = 1_000
    #: Records a second, of ``paced``.
    rate: float = 0.0
    #: Records that one call may give, where that is an argument of the call.
    poll_records: int = 500
    #: By whole columns, where the client can.
    arrow: bool = False
    #: The records are sent in so many goes, each flushed.
    goes: int = 1
    #: Without a record for so long, a reader gives up, in seconds.
    patience_s: float = 30.0
    #: Whether what the environment says of a secure connection is meant.
    is_secure: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        fields = json.loads(text)
        fields["other_topics"] = tuple(fields["other_topics"])
        return cls(**fields)
