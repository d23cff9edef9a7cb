"""The assignors of Kafka's group coordinator, run by a Java program (``java/GroupAssignors.java``)."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from model.random_consumer_groups import ConsumerGroupCase
from peers.jars import SHORT_LIVED, JavaToolError, java_command

from kafkacore.broker.group.assignor import Assignment


class JavaGroupAssignors:
    """The running Java program."""

    def __init__(self, process: subprocess.Popen[bytes], error_file: Path) -> None:
        self._process = process
        self._error_file = error_file

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question; the program's comment describes both."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise JavaToolError(f"GroupAssignors ended: {self._error_file.read_text()}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def assign(self, question: dict[str, Any]) -> dict[str, Assignment]:
        """Return the assignments in the answer to a question."""
        answer = self.ask(question)
        if "error" in answer:
            raise JavaToolError(answer["error"])
        topic_ids = [UUID(topic_id) for topic_id, _ in question["topics"]]
        return {
            member_id: {topic_ids[number]: tuple(partitions) for number, *partitions in lists}
            for member_id, lists in answer["assignments"].items()
        }


def question(
    name: str, case: ConsumerGroupCase, *, repeat: int = 1, is_ordered: bool = True
) -> dict[str, Any]:
    """Return the question for the target assignment of a group by an assignor."""
    assigned_ids = {topic_id for member in case.members.values() for topic_id in member.assigned}
    subscriptions = {member.topic_ids: None for member in case.members.values()}
    topic_ids = sorted(assigned_ids.union(case.partition_counts, *subscriptions))
    numbers = {topic_id: number for number, topic_id in enumerate(topic_ids)}
    places = {topics: place for place, topics in enumerate(subscriptions)}
    return {
        "assignor": name,
        "homogeneous": case.is_homogeneous,
        "ordered": is_ordered,
        "repeat": repeat,
        "topics": [[str(topic_id), case.partition_counts.get(topic_id)] for topic_id in topic_ids],
        "subscriptions": [[numbers[topic_id] for topic_id in topics] for topics in subscriptions],
        "members": [
            [
                member_id,
                member.instance_id,
                places[member.topic_ids],
                [[numbers[topic_id], *partitions] for topic_id, partitions in member.assigned.items()],
            ]
            for member_id, member in case.members.items()
        ],
    }


@contextlib.contextmanager
def started_group_assignors(
    error_file: Path, jvm: Iterable[str] = SHORT_LIVED
) -> Iterator[JavaGroupAssignors]:
    """Yield the program, which is stopped at the end of the block. Its standard error goes to a file."""
    with (
        error_file.open("wb") as errors,
        subprocess.Popen(
            java_command("GroupAssignors", jvm=jvm),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        yield JavaGroupAssignors(process, error_file)
        assert process.stdin is not None
        process.stdin.close()
    if process.returncode:
        raise JavaToolError(f"GroupAssignors failed: {error_file.read_text()}")
