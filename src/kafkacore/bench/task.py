"""What a worker process is asked to do: made by the runner, sent as JSON on the command line.

Does not know: how a client is told; each peer reads what concerns it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


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
    settings: dict[str, Any] = field(default_factory=dict)
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
