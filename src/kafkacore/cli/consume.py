"""``kafkacore consume``: print the records of a topic."""

from __future__ import annotations

import argparse
import json
import select
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacore.cli.common import (
    CommandError,
    CommandParser,
    Commands,
    add_command,
    lost_brokers_reported,
    natural,
    no_topic,
    put_bytes,
)
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore import ConsumerRecord, KafkaConsumer
    from kafkacore.cli.offset_committer import OffsetCommitter

POLL_MS = 500
COMMIT_MS = 1000
#: The output for a record without a value (a tombstone), as in Kafka's console consumer.
NULL = b"null"
EXAMPLES = """  kafkacore consume greetings                       # new records, until Ctrl-C
  kafkacore consume greetings --from-beginning --exit-at-end
  kafkacore consume greetings --group readers       # share partitions, continue at committed offsets
  kafkacore consume flights --partition 3 --offset 1000 --max-records 10 --json | jq .value
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``consume`` to the command line."""
    parser = add_command(
        commands,
        "consume",
        "print the records of a topic",
        EXAMPLES,
        run,
        description="Print the value of each record on a line, or with --json the whole record. A record "
        "without a value (a tombstone) is printed as null, and an empty value as an empty line. Only --json "
        "distinguishes a tombstone from the text null.",
    )
    parser.add_argument("topic", help="topic to read")
    add_bootstrap(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="start at the first record (default: read only new records)",
    )
    start.add_argument("--offset", type=natural, help="start at this offset; needs --partition")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--partition", type=natural, help="read only this partition")
    which.add_argument(
        "--group",
        metavar="NAME",
        help="read as a member of this consumer group, and commit the offsets of printed records",
    )
    parser.add_argument("--max-records", type=natural, metavar="N", help="exit after N records")
    parser.add_argument(
        "--exit-at-end",
        action="store_true",
        help="exit at the end offsets that the topic has when the command starts",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per line: topic, partition, offset, ..."
    )
    parser.add_argument(
        "--read-committed", action="store_true", help="skip the records of aborted transactions"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print records until the end that the arguments define."""
    from kafkacore import KafkaConsumer

    if arguments.offset is not None and arguments.partition is None:
        raise KafkaConfigurationError(
            "--offset needs --partition, because each partition has its own offsets"
        )
    if arguments.group is not None:
        if arguments.exit_at_end:
            raise KafkaConfigurationError(
                "--exit-at-end does not work with --group, because other members may have some partitions"
            )
        return _run_as_member(arguments)
    with KafkaConsumer(
        **client_settings(arguments, "request_timeout_ms"),
        isolation_level="read_committed" if arguments.read_committed else "read_uncommitted",
    ) as consumer:
        partitions = _partitions(consumer, arguments)
        consumer.assign(partitions)
        if arguments.from_beginning:
            consumer.seek_to_beginning(*partitions)
        elif arguments.offset is not None:
            _require_offset(consumer, partitions[0], arguments.offset)
            consumer.seek(partitions[0], arguments.offset)
        else:
            consumer.seek_to_end(*partitions)
        with lost_brokers_reported():
            _print_records(consumer, partitions, arguments)
    return 0


def _run_as_member(arguments: argparse.Namespace) -> int:
    from kafkacore import KafkaConsumer
    from kafkacore.cli.offset_committer import OffsetCommitter

    with KafkaConsumer(
        **client_settings(arguments, "request_timeout_ms"),
        group_id=arguments.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest" if arguments.from_beginning else "latest",
        isolation_level="read_committed" if arguments.read_committed else "read_uncommitted",
    ) as consumer:
        _partitions(consumer, arguments)
        committer = OffsetCommitter(consumer)
        consumer.subscribe([arguments.topic], listener=committer)
        with lost_brokers_reported():
            _print_as_member(consumer, committer, arguments)
    return 0


def _print_as_member(
    consumer: KafkaConsumer, committer: OffsetCommitter, arguments: argparse.Namespace
) -> None:
    """Print records, and commit the offsets of printed records regularly and at the end."""
    committed_ms = SYSTEM_CLOCK.monotonic_ms()
    try:
        for found in _print_polls(consumer, arguments.max_records, arguments.json):
            committer.add(found)
            now_ms = SYSTEM_CLOCK.monotonic_ms()
            if committer.offsets and now_ms - committed_ms >= COMMIT_MS:
                committed_ms = now_ms
                consumer.commit_async(dict(committer.offsets))
    finally:
        committer.commit(set(committer.offsets))


def _partitions(consumer: KafkaConsumer, arguments: argparse.Namespace) -> list[TopicPartition]:
    numbers = consumer.partitions_for_topic(arguments.topic)
    if not numbers:
        raise no_topic(arguments, arguments.topic)
    if arguments.partition is None:
        return [TopicPartition(arguments.topic, number) for number in sorted(numbers)]
    if arguments.partition not in numbers:
        raise CommandError(
            f"topic {arguments.topic!r} has {len(numbers)} partitions, 0 to {len(numbers) - 1}; "
            f"partition {arguments.partition} does not exist"
        )
    return [TopicPartition(arguments.topic, arguments.partition)]


def _require_offset(consumer: KafkaConsumer, partition: TopicPartition, offset: int) -> None:
    """Check an offset. For an invalid one, the consumer would silently start at the end."""
    first, end = (
        offsets[partition]
        for offsets in (consumer.beginning_offsets([partition]), consumer.end_offsets([partition]))
    )
    if not first <= offset <= end:
        raise CommandError(
            f"offset {offset} is out of range: {partition_name(partition)} has offsets from {first} "
            f"to its end, {end}"
        )


def _print_records(
    consumer: KafkaConsumer, partitions: list[TopicPartition], arguments: argparse.Namespace
) -> None:
    ends = consumer.end_offsets(partitions) if arguments.exit_at_end else {}

    def is_at_end() -> bool:
        return bool(ends) and all(consumer.position(tp) >= end for tp, end in ends.items())

    if not is_at_end():
        for _ in _print_polls(consumer, arguments.max_records, arguments.json):
            if is_at_end():
                return


def _print_polls(
    consumer: KafkaConsumer, left: int | None, as_json: bool
) -> Iterator[dict[TopicPartition, list[ConsumerRecord]]]:
    """Print ``left`` records, or all, and yield the records of each poll after they are printed."""
    out = sys.stdout.buffer
    reader = select.poll()
    reader.register(out, 0)
    while left is None or left > 0:
        found = consumer.poll(timeout_ms=POLL_MS, max_records=left)
        for records in found.values():
            for record in records:
                out.write(
                    (_as_json(record) if as_json else NULL if record.value is None else record.value) + b"\n"
                )
            left = None if left is None else left - len(records)
        out.flush()
        if reader.poll(0):
            # The reader of the output has exited. Without another record, no write would fail.
            raise BrokenPipeError
        yield found


def _as_json(record: ConsumerRecord) -> bytes:
    fields: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    put_bytes(fields, "key", record.key)
    put_bytes(fields, "value", record.value)
    if record.headers:
        fields["headers"] = headers = []
        for name, value in record.headers:
            header: dict[str, object] = {"key": name}
            put_bytes(header, "value", value)
            headers.append(header)
    return json.dumps(fields, ensure_ascii=False).encode()
