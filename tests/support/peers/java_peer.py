"""Kafka's Java clients as a peer in tests, which send and read records with any broker.

One JVM (``java/Peer.java``) serves a whole test run, because starting one takes a second.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from eventually import BUDGET_S
from peers.jars import SHORT_LIVED, JavaToolError, java_command


@dataclass(frozen=True)
class Sample:
    """A record to produce and its expected content. The client chooses fields that are ``None``."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Received(NamedTuple):
    """A record as a consumer returned it."""

    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Offsets(NamedTuple):
    """For each partition: start offset, end offset, and (offset, timestamp) or None for each timestamp."""

    beginning: dict[int, int]
    end: dict[int, int]
    for_times: list[dict[int, tuple[int, int] | None]]


class JavaPeer:
    """The running Java program. Every method is a command and raises JavaToolError with Java's message.

    ``error_file`` is created and receives its standard error.
    """

    def __init__(self, error_file: Path) -> None:
        self._error_file = error_file
        self._number = 0
        with open(error_file, "ab") as errors:
            self._process = subprocess.Popen(
                java_command("Peer", jvm=[*SHORT_LIVED, "-Xmx512m"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def close(self) -> None:
        """Stop the program by closing its input."""
        self._process.communicate(timeout=BUDGET_S)

    def create_topic(
        self, servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic through Kafka's Admin client."""
        self._ask("create_topic", servers, topic=topic, partitions=partitions, config=dict(config or {}))

    def delete_topic(self, servers: str, topic: str) -> None:
        """Delete a topic and wait until the broker no longer lists it."""
        self._ask("delete_topic", servers, topic=topic)

    def produce(
        self,
        servers: str,
        topic: str,
        samples: Sequence[Sample],
        config: Mapping[str, str] | None = None,
        transaction: str | None = None,
    ) -> list[tuple[int, int]]:
        """Send all samples, flush, and return (partition, offset) of each.

        ``transaction`` is "commit" or "abort".
        """
        records = [
            {
                "topic": topic,
                "partition": sample.partition,
                "timestamp": sample.timestamp,
                "key": _to_text(sample.key),
                "value": _to_text(sample.value),
                "headers": [[name, _to_text(content)] for name, content in sample.headers],
            }
            for sample in samples
        ]
        end = {"transaction": transaction} if transaction else {}
        answer = self._ask("produce", servers, records=records, client_config=dict(config or {}), **end)
        return [(one["partition"], one["offset"]) for one in answer["metadata"]]

    def transact(
        self,
        servers: str,
        topic: str,
        transactions: Sequence[Mapping[str, Any]],
        group: str,
        config: Mapping[str, str],
    ) -> list[tuple[str, str]]:
        """Run transactions with one producer until one fails, and return outcome and error of each.

        The fields of a transaction are those of ``peers.transactional_clients``; so are the outcomes.
        """
        wanted = [
            dict(each)
            | {
                "records": [
                    {"topic": topic, "partition": partition, "value": _to_text(value)}
                    for partition, value in each["records"]
                ]
            }
            for each in transactions
        ]
        answer = self._ask(
            "transact", servers, topic=topic, transactions=wanted, group=group, client_config=dict(config)
        )
        return [(one["outcome"], one["error"]) for one in answer["outcomes"]]

    def consume(
        self,
        servers: str,
        topic: str,
        count: int | None,
        config: Mapping[str, str] | None = None,
        timeout_ms: int = 30_000,
        at_least: Mapping[int, int] | None = None,
    ) -> list[Received]:
        """Read all partitions from the start without a group, until ``count`` records or the time limit.

        ``None`` reads to the end offsets at the time of the call; with ``isolation.level`` read_committed
        these are before the first open transaction. The call fails if they are not reached within the time
        limit, because the remaining records would seem lost. ``at_least``: partition → a known end offset. A
        broker that has lost the leadership and does not know it yet reports an end offset that is too low.
        """
        config = {"enable.auto.commit": "false", "allow.auto.create.topics": "false", **(config or {})}
        answer = self._ask(
            "consume", servers, topic=topic, count=count, client_config=config, timeout_ms=timeout_ms,
            at_least={str(partition): end for partition, end in (at_least or {}).items()},
        )  # fmt: skip
        if answer["behind"]:
            places = [f"{number} to {at} of {end}" for number, (at, end) in answer["behind"].items()]
            raise JavaToolError(f"{topic} was read in {timeout_ms} ms in partition " + ", ".join(places))
        return [
            Received(
                one["partition"],
                one["offset"],
                one["timestamp"],
                one["timestamp_type"],
                _to_bytes(one["key"]),
                _to_bytes(one["value"]),
                tuple((name, _to_bytes(content)) for name, content in one["headers"]),
            )
            for one in answer["records"]
        ]

    def commit(
        self, servers: str, group: str, topic: str, offsets: Mapping[int, tuple[int, str, int]]
    ) -> None:
        """Commit for ``group``: partition → offset, metadata, leader epoch (-1 for none)."""
        config = {"group.id": group, "enable.auto.commit": "false"}
        self._ask("commit", servers, topic=topic, offsets=_named(offsets), client_config=config)

    def committed(self, servers: str, group: str, topic: str) -> dict[int, tuple[int, str, int]]:
        """Return the offsets that ``group`` has committed for the topic, in the form of :meth:`commit`."""
        config = {"group.id": group, "enable.auto.commit": "false"}
        return _offsets(self._ask("committed", servers, topic=topic, client_config=config))

    def group_offsets(self, servers: str, group: str, topic: str) -> dict[int, tuple[int, str, int]]:
        """Return the same as :meth:`committed`, by the Admin client."""
        return _offsets(self._ask("group_offsets", servers, topic=topic, group=group))

    def alter_group_offsets(
        self, servers: str, group: str, topic: str, offsets: Mapping[int, tuple[int, str, int]]
    ) -> None:
        """Do the same as :meth:`commit`, by the Admin client."""
        self._ask("alter_group_offsets", servers, topic=topic, group=group, offsets=_named(offsets))

    def delete_group_offsets(self, servers: str, group: str, topic: str, partitions: Sequence[int]) -> None:
        """Delete the committed offsets of ``group``, by the Admin client."""
        named = _named(dict.fromkeys(partitions, (0, "", -1)))
        self._ask("delete_group_offsets", servers, topic=topic, group=group, offsets=named)

    def offsets(self, servers: str, topic: str, timestamps: Sequence[int] = ()) -> Offsets:
        """Return each partition's start and end offset, and the first offset at or after each time (ms)."""
        answer = self._ask("offsets", servers, topic=topic, timestamps=list(timestamps))
        return Offsets(
            {int(partition): offset for partition, offset in answer["beginning"].items()},
            {int(partition): offset for partition, offset in answer["end"].items()},
            [
                {int(partition): tuple(hit) if hit else None for partition, hit in found.items()}
                for found in answer["for_times"]
            ],
        )

    def partitions_for_keys(self, keys: Sequence[bytes], partition_count: int) -> list[int]:
        """Return the partition that Kafka's producer chooses for each key."""
        command = {"keys": [_to_text(key) for key in keys], "partition_count": partition_count}
        chosen = self._ask("partitions_for_keys", "", **command)["partitions"]
        assert isinstance(chosen, list)
        return chosen

    def _ask(self, command: str, servers: str, **arguments: object) -> dict[str, Any]:
        # Numbered, because an interrupted test leaves a response that must not be read as the next one.
        self._number += 1
        numbered = {"command": command, "number": self._number, "bootstrap_servers": servers, **arguments}
        line = json.dumps(numbered)
        said_before = self._error_file.stat().st_size
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the missing response reports it, with the reason
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        parsed: dict[str, Any] = {}
        while parsed.get("number") != self._number:
            answer = self._process.stdout.readline()
            parsed = json.loads(answer) if answer else {"error": "it has ended", "number": self._number}
        if "error" in parsed:
            said = self._error_file.read_bytes()[said_before:][-8000:].decode(errors="replace")
            raise JavaToolError(f"{command} against {servers}: {parsed['error']}\n{said}")
        return parsed


def _named(offsets: Mapping[int, tuple[int, str, int]]) -> list[dict[str, object]]:
    return [
        {"partition": partition, "offset": offset, "metadata": metadata, "leader_epoch": leader_epoch}
        for partition, (offset, metadata, leader_epoch) in offsets.items()
    ]


def _offsets(answer: Mapping[str, Any]) -> dict[int, tuple[int, str, int]]:
    return {
        one["partition"]: (one["offset"], one["metadata"], one["leader_epoch"]) for one in answer["offsets"]
    }


def _to_text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _to_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


@contextlib.contextmanager
def started_java_peer() -> Iterator[JavaPeer]:
    """Yield a Java peer that is stopped at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="java-peer-") as folder,
        contextlib.closing(JavaPeer(Path(folder) / "stderr")) as peer,
    ):
        yield peer
