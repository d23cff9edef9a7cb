"""``kafkacore consume``: print the records of topics."""

from __future__ import annotations

import argparse
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import CommandError, lost_brokers_reported, natural, no_topic
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.cli.record_format import FIELDS, RecordFormat
from kafkacore.cli.record_position import FORMS, RecordPosition, record_position
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore import ConsumerRecord, KafkaConsumer
    from kafkacore.cli.offset_committer import OffsetCommitter

POLL_MS = 500
#: Maximum number of records that are formatted at once.
POLL_RECORDS = 5000
COMMIT_MS = 1000
#: The output for a record without a value (a tombstone), as in Kafka's console consumer.
NULL = "null"
#: The output of ``-Z``, as in kcat.
KCAT_NULL = "NULL"
EXAMPLES = r"""  kafkacore consume greetings                       # new records, until Ctrl-C
  kafkacore consume greetings --from-beginning --exit
  kafkacore consume greetings --last 10 --exit --print-key --print-headers
  kafkacore consume orders payments --format '%T %t-%p@%o %k: %s\n'
  kafkacore consume --regex 'orders\..*' --from 15m --until end --json
  kafkacore consume orders --from 2026-01-31T12:00 --until 2026-01-31T13:00
  kafkacore consume greetings --group readers       # share partitions, continue at committed offsets
  kafkacore consume flights --partition 3 --offset 1000 --max-records 10 --json | jq .value
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``consume`` to the command line."""
    parser = add_command(
        commands,
        "consume",
        COMMANDS["consume"].summary,
        EXAMPLES,
        run,
        description="Print the value of each record on a line, or with --json or --format other parts of "
        "it. A record without a value (a tombstone) is printed as null, and an empty value as an empty line. "
        "To tell a tombstone from the text null, use --json, another --null, or %S, whose size is then -1.",
    )
    parser.add_argument("topic", nargs="+", help="one or more topics")
    add_bootstrap(parser)
    parser.add_argument(
        "--regex",
        action="store_true",
        help="treat each TOPIC as a regular expression for whole names; a name that begins with __ is "
        "matched only by an expression that begins with __",
    )
    _add_positions(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-p",
        "--partition",
        type=natural,
        action="append",
        metavar="N",
        help="read only this partition of each topic; repeat the option for several partitions",
    )
    which.add_argument(
        "--group",
        metavar="NAME",
        help="read as a member of this consumer group, and commit the offsets of printed records",
    )
    parser.add_argument(
        "--group-protocol",
        choices=("classic", "consumer"),
        help="protocol of the members of --group: classic (the default), or consumer, in which the broker "
        "assigns the partitions (Apache Kafka 4.0 or newer)",
    )
    _add_output(parser)
    parser.add_argument(
        "--read-committed", action="store_true", help="skip the records of aborted transactions"
    )


def _add_positions(parser: argparse.ArgumentParser) -> None:
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="start at the first record (default: read only new records)",
    )
    start.add_argument(
        "-o",
        "--offset",
        type=_offset,
        metavar="N",
        help="start at this offset, which needs --partition; -N starts N offsets before the end of each "
        "partition",
    )
    start.add_argument(
        "--last",
        type=natural,
        metavar="N",
        help="start with the last N records of all partitions together, in the order of their timestamps",
    )
    start.add_argument(
        "--from", dest="start", type=record_position, metavar="WHERE", help=f"start at: {FORMS}"
    )
    parser.add_argument(
        "--until",
        type=record_position,
        metavar="WHERE",
        help="exit before this offset or time, in the same format as for --from",
    )
    parser.add_argument("-c", "--max-records", type=natural, metavar="N", help="exit after N records")
    parser.add_argument(
        "-e",
        "--exit-at-end",
        "--exit",
        action="store_true",
        help="exit at the end offsets that the topics have when the command starts",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    fields = ", ".join(f"%%{letter} {meaning}" for letter, meaning in FIELDS.items())
    parser.add_argument(
        "-J",
        "--json",
        action="store_true",
        help="print one JSON object per line: topic, partition, offset, ...",
    )
    parser.add_argument(
        "-f",
        "--format",
        metavar="TEXT",
        help=f"print each record in this format, without adding a line break: {fields}, %%%% a percent "
        f"sign, and the escapes \\n, \\t, \\r, \\0 and \\xNN",
    )
    parser.add_argument("--print-key", action="store_true", help="print the key and a tab before the value")
    parser.add_argument(
        "--print-headers", action="store_true", help="print the headers and a tab before the key and value"
    )
    parser.add_argument(
        "-K",
        "--key-delimiter",
        metavar="TEXT",
        help="print the key and this text before the value, as `produce --key-delimiter` reads it",
    )
    null = parser.add_mutually_exclusive_group()
    null.add_argument(
        "--null", default=NULL, metavar="TEXT", help=f"print this text for a null (default: {NULL})"
    )
    null.add_argument(
        "-Z", dest="null", action="store_const", const=KCAT_NULL, help=f"the same as --null {KCAT_NULL}"
    )


def _offset(text: str) -> int:
    """Parse an offset, or a negative distance from the end, for argparse."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an offset: give a whole number, or a time to --from"
        ) from None


def run(arguments: argparse.Namespace) -> int:
    """Print records until the end that the arguments define."""
    from kafkacore import KafkaConsumer

    _check(arguments)
    output = _Output(_text(arguments))
    if arguments.group is not None:
        return _run_as_member(arguments, output)
    with KafkaConsumer(
        **client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"),
        isolation_level="read_committed" if arguments.read_committed else "read_uncommitted",
        max_poll_records=POLL_RECORDS,
    ) as consumer:
        partitions = _partitions(consumer, arguments)
        consumer.assign(partitions)
        if arguments.last is None:
            stops = _seek(consumer, partitions, arguments)
            with lost_brokers_reported():
                _print_records(consumer, output, stops, arguments.max_records)
        else:
            with lost_brokers_reported():
                _print_last(consumer, output, partitions, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse arguments that do not work together."""
    by_options = arguments.print_key or arguments.print_headers or arguments.key_delimiter is not None
    if sum((arguments.json, arguments.format is not None, by_options)) > 1:
        raise KafkaConfigurationError(
            "choose one output format: --json, --format, or the options --print-key, --print-headers and "
            "--key-delimiter"
        )
    if arguments.offset is not None and arguments.offset >= 0 and arguments.partition is None:
        raise KafkaConfigurationError(
            "--offset needs --partition, because each partition has its own offsets"
        )
    if arguments.last is not None:
        if not arguments.last:
            raise KafkaConfigurationError("--last must be at least 1")
        if arguments.max_records is not None or arguments.until is not None:
            raise KafkaConfigurationError("--last works neither with --max-records nor with --until")
    if arguments.until is not None and (arguments.until.time(now := SYSTEM_CLOCK.wall_ms()) or 0) > now:
        raise KafkaConfigurationError(
            f"--until {arguments.until.text} is in the future: give a time that has passed, or --max-records"
        )
    has_start = arguments.from_beginning or arguments.start is not None or arguments.offset is not None
    if arguments.until is not None and not has_start:
        raise KafkaConfigurationError(
            "--until needs a start, because the default is the end: add --from-beginning or --from"
        )
    _check_group(arguments)


def _check_group(arguments: argparse.Namespace) -> None:
    if arguments.group is None:
        if arguments.group_protocol is not None:
            raise KafkaConfigurationError("--group-protocol needs --group")
        return
    if arguments.exit_at_end:
        raise KafkaConfigurationError(
            "--exit-at-end does not work with --group, because other members may have some partitions"
        )
    for name, value in (
        ("--offset", arguments.offset),
        ("--last", arguments.last),
        ("--from", arguments.start),
        ("--until", arguments.until),
    ):
        if value is not None:
            raise KafkaConfigurationError(
                f"{name} does not work with --group, which continues at the committed offsets"
            )


def _text(arguments: argparse.Namespace) -> Callable[[Iterable[ConsumerRecord]], bytes]:
    """Return the function that formats records for the output."""
    if arguments.json:
        from kafkacore.cli._record_lines import records_as_json

        return records_as_json
    null = os.fsencode(arguments.null)
    if arguments.format is not None:
        return RecordFormat(arguments.format, null)
    delimiter = arguments.key_delimiter
    text = "%h\t" if arguments.print_headers else ""
    if delimiter is not None:
        text += "%k" + delimiter.replace("%", "%%")
    elif arguments.print_key:
        text += "%k\t"
    return RecordFormat(text + "%s\n", null)


def _run_as_member(arguments: argparse.Namespace, output: _Output) -> int:
    from kafkacore import KafkaConsumer
    from kafkacore.cli.offset_committer import OffsetCommitter

    with KafkaConsumer(
        **client_settings(arguments, "request_timeout_ms", "bootstrap_timeout_ms"),
        group_id=arguments.group,
        group_protocol=arguments.group_protocol or "classic",
        enable_auto_commit=False,
        auto_offset_reset="earliest" if arguments.from_beginning else "latest",
        isolation_level="read_committed" if arguments.read_committed else "read_uncommitted",
        # The regular expression decides whether internal topics are included.
        exclude_internal_topics=False,
    ) as consumer:
        committer = OffsetCommitter(consumer)
        if arguments.regex:
            consumer.subscribe(pattern=_pattern(arguments.topic), listener=committer)
        else:
            _partitions(consumer, arguments)
            consumer.subscribe(arguments.topic, listener=committer)
        with lost_brokers_reported():
            _print_as_member(consumer, committer, output, arguments.max_records)
    return 0


def _print_as_member(
    consumer: KafkaConsumer, committer: OffsetCommitter, output: _Output, left: int | None
) -> None:
    """Print records, and commit the offsets of printed records regularly and at the end."""
    committed_ms = SYSTEM_CLOCK.monotonic_ms()
    try:
        for found in _print_polls(consumer, output, left, {}):
            committer.add(found)
            now_ms = SYSTEM_CLOCK.monotonic_ms()
            if committer.offsets and now_ms - committed_ms >= COMMIT_MS:
                committed_ms = now_ms
                consumer.commit_async(dict(committer.offsets))
    finally:
        committer.commit(set(committer.offsets))


def _pattern(expressions: Sequence[str]) -> re.Pattern[str]:
    """Combine the expressions into one expression that matches only whole topic names."""
    parts = []
    for expression in expressions:
        try:
            re.compile(expression)
        except re.error as error:
            raise KafkaConfigurationError(
                f"{expression!r} is not a valid regular expression: {error}"
            ) from None
        parts.append(f"{'' if expression.startswith('__') else '(?!__)'}(?:{expression})")
    return re.compile(rf"(?:{'|'.join(parts)})\Z")


def _partitions(consumer: KafkaConsumer, arguments: argparse.Namespace) -> list[TopicPartition]:
    """Return the partitions to read, after checking that they exist."""
    if arguments.regex:
        pattern = _pattern(arguments.topic)
        known = consumer.partitions_by_topic()
        topics = {topic: numbers for topic, numbers in known.items() if pattern.match(topic)}
        if not topics:
            raise CommandError(
                f"no topic on {arguments.bootstrap} matches {pattern.pattern!r}: see `kafkacore topics list`"
            )
    else:
        topics = consumer.partitions_by_topic(arguments.topic)
        if missing := [topic for topic in arguments.topic if not topics.get(topic)]:
            raise no_topic(arguments, *missing, known=consumer.topics())
    return [
        TopicPartition(topic, number)
        for topic, numbers in sorted(topics.items())
        for number in _chosen(topic, numbers, arguments.partition)
    ]


def _chosen(topic: str, numbers: set[int], chosen: list[int] | None) -> list[int]:
    """Return the partition numbers of a topic to read."""
    if chosen is None:
        return sorted(numbers)
    if missing := sorted(set(chosen) - numbers):
        raise CommandError(
            f"topic {topic!r} has {len(numbers)} partitions, 0 to {len(numbers) - 1}; "
            f"partition {missing[0]} does not exist"
        )
    return sorted(set(chosen))


def _seek(
    consumer: KafkaConsumer, partitions: list[TopicPartition], arguments: argparse.Namespace
) -> dict[TopicPartition, int]:
    """Seek to the start in each partition, and return the offsets to stop at."""
    start = arguments.start
    if arguments.offset is not None:
        start = RecordPosition(str(arguments.offset), offset=arguments.offset)
    if arguments.from_beginning:
        consumer.seek_to_beginning(*partitions)
    elif start is None:
        consumer.seek_to_end(*partitions)
    if start is None and arguments.until is None:
        return consumer.end_offsets(partitions) if arguments.exit_at_end else {}
    first, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    now_ms = SYSTEM_CLOCK.wall_ms()
    if arguments.offset is not None and arguments.offset >= 0:
        _require_offset(first, ends, arguments.offset)
    if start is not None:
        for tp, offset in start.offsets(consumer, partitions, ends, now_ms).items():
            consumer.seek(tp, min(max(offset, first[tp]), ends[tp]))
    if arguments.until is None:
        return ends if arguments.exit_at_end else {}
    stops: dict[TopicPartition, int] = arguments.until.offsets(consumer, partitions, ends, now_ms)
    return {tp: min(stop, ends[tp]) for tp, stop in stops.items()} if arguments.exit_at_end else stops


def _print_last(
    consumer: KafkaConsumer,
    output: _Output,
    partitions: list[TopicPartition],
    arguments: argparse.Namespace,
) -> None:
    """Print the last records, and then new records unless the command exits at the end."""
    from kafkacore.cli.last_records import last_records

    output.write(last_records(consumer, partitions, arguments.last, POLL_MS))
    output.flush()
    if not arguments.exit_at_end:
        _print_records(consumer, output, {}, None)


def _require_offset(
    first: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], offset: int
) -> None:
    """Refuse an offset that is out of range, because the consumer would silently start at the end."""
    for tp in first:
        if not first[tp] <= offset <= ends[tp]:
            raise CommandError(
                f"offset {offset} is out of range: {partition_name(tp)} has offsets from {first[tp]} "
                f"to its end, {ends[tp]}"
            )


def _print_records(
    consumer: KafkaConsumer, output: _Output, stops: dict[TopicPartition, int], left: int | None
) -> None:
    """Print records until each partition has reached its offset in ``stops``.

    If ``stops`` is empty, print records until the command is interrupted.
    """
    reading = dict(stops)

    def is_at_end() -> bool:
        # A paused partition is no longer fetched, so that fetches contain more records of the other
        # partitions.
        for tp in [tp for tp, stop in reading.items() if consumer.position(tp) >= stop]:
            consumer.pause(tp)
            del reading[tp]
        return bool(stops) and not reading

    if not is_at_end():
        for _ in _print_polls(consumer, output, left, stops):
            if is_at_end():
                return


def _print_polls(
    consumer: KafkaConsumer, output: _Output, left: int | None, stops: Mapping[TopicPartition, int]
) -> Iterator[dict[TopicPartition, list[ConsumerRecord]]]:
    """Print records, and yield the records of each poll after they are printed.

    ``left`` is the maximum number of records to print; ``None`` sets no limit.
    """
    while left is None or left > 0:
        found = consumer.poll(timeout_ms=POLL_MS, max_records=left)
        for tp, records in found.items():
            if (stop := stops.get(tp)) is not None and records[-1].offset >= stop:
                records = [record for record in records if record.offset < stop]
            output.write(records)
            left = None if left is None else left - len(records)
        output.flush()
        yield found


class _Output:
    """Standard output. It notices when the reader of a pipe exits, even if there is nothing to write."""

    def __init__(self, text: Callable[[Iterable[ConsumerRecord]], bytes]) -> None:
        self._text = text
        self._out = sys.stdout.buffer
        self._reader = select.poll()
        self._reader.register(self._out, 0)

    def write(self, records: Iterable[ConsumerRecord]) -> None:
        self._out.write(self._text(records))

    def flush(self) -> None:
        self._out.flush()
        if self._reader.poll(0):
            raise BrokenPipeError
