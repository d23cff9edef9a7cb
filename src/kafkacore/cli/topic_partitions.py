"""Topics and partitions in arguments, such as ``orders`` or ``orders:0,2-4``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.cli.common import CommandError, no_topic
from kafkacore.errors import UnknownTopicOrPartitionError, for_code
from kafkacore.structs import INT32_MAX, TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient
    from kafkacore.admin.topics import TopicDescription

#: Placeholder for a topic argument in usage messages.
METAVAR = "TOPIC[:PARTITIONS]"
_NUMBERS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
#: Maximum number of partitions in one range, so that a mistyped range takes little memory.
_MOST_PARTITIONS = 100_000


class TopicArgument(NamedTuple):
    """A topic and some of its partition numbers; ``None`` stands for all partitions of the topic."""

    topic: str
    partitions: tuple[int, ...] | None = None

    def includes(self, partition: TopicPartition) -> bool:
        """Return whether the argument names ``partition``."""
        return self.topic == partition.topic and (
            self.partitions is None or partition.partition in self.partitions
        )


def topic_argument(text: str) -> TopicArgument:
    """Parse ``TOPIC`` or ``TOPIC:0,2-4`` for argparse."""
    topic, colon, numbers = text.partition(":")
    if not topic or (colon and not numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not {METAVAR}, such as orders or orders:0,2-4")
    return TopicArgument(topic, tuple(sorted(set(_parsed(text, numbers)))) if colon else None)


def _parsed(text: str, numbers: str) -> Iterator[int]:
    for part in numbers.split(","):
        match = _NUMBERS.fullmatch(part)
        first = int(match[1]) if match else -1
        last = int(match[2] or match[1]) if match else -1
        if not 0 <= first <= last <= INT32_MAX or last - first >= _MOST_PARTITIONS:
            raise argparse.ArgumentTypeError(
                f"{text!r}: {part!r} is not a partition number or a range such as 2-4"
            )
        yield from range(first, last + 1)


def described_topics(
    admin: KafkaAdminClient, arguments: argparse.Namespace, topics: Iterable[str] | None
) -> list[TopicDescription]:
    """Describe the named topics; for ``None``, describe all topics.

    Raises
    ------
    CommandError
        If a topic does not exist.
    BrokerResponseError
        If the broker does not describe a topic for another reason.
    """
    wanted = None if topics is None else list(dict.fromkeys(topics))
    if wanted == []:
        return []
    described = admin.describe_topics(wanted)
    unknown = [
        str(each["name"]) for each in described if each["error_code"] == UnknownTopicOrPartitionError.errno
    ]
    if unknown and wanted is not None:
        raise no_topic(arguments, *unknown)
    for each in described:
        if each["error_code"] and wanted is not None:
            raise for_code(each["error_code"])(f"topic {each['name']!r}")
    return [each for each in described if not each["error_code"]]


def partitions_of(
    admin: KafkaAdminClient, arguments: argparse.Namespace, wanted: Sequence[TopicArgument] | None
) -> list[TopicPartition]:
    """Return the partitions that arguments name, in order; for ``None``, all partitions of the cluster.

    Raises
    ------
    CommandError
        If a topic or a partition does not exist.
    """
    described = described_topics(
        admin, arguments, None if wanted is None else [each.topic for each in wanted]
    )
    existing = {
        str(topic["name"]): sorted(partition["partition_index"] for partition in topic["partitions"])
        for topic in described
    }
    if wanted is None:
        wanted = [TopicArgument(topic) for topic in existing]
    found: set[TopicPartition] = set()
    for each in wanted:
        numbers = existing.get(each.topic, [])
        for number in numbers if each.partitions is None else each.partitions:
            if number not in numbers:
                name = partition_name(TopicPartition(each.topic, number))
                raise CommandError(f"{name} does not exist: the topic has {len(numbers)} partitions")
            found.add(TopicPartition(each.topic, number))
    return sorted(found)
