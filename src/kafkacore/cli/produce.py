"""``kafkacore produce``: write lines, or one record without a value, to a topic."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.cli.common import (
    CommandError,
    assignment,
    get_bytes,
    lost_brokers_reported,
    natural,
    time_limits,
)
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.cli.record_format import unescaped
from kafkacore.errors import KafkaConfigurationError, KafkaError, KafkaTimeoutError
from kafkacore.structs import CODEC_NAMES

if TYPE_CHECKING:
    from kafkacore import KafkaProducer
    from kafkacore.producer._batch_future import BatchFuture
    from kafkacore.producer.future import FutureRecordMetadata

#: Maximum number of bytes read at once.
BLOCK_BYTES = 128 * 1024
#: Size of a batch. With the default size, a fast input would need four times as many requests.
BATCH_BYTES = 64 * 1024
EXAMPLES = """  echo hello | kafkacore produce greetings
  echo hello | kafkacore produce greetings --key anna --header source=cli --header trace=42
  kafkacore produce orders --file orders.jsonl --compression lz4
  printf 'anna:1\\nbert:2\\ncarl:NULL\\n' | kafkacore produce votes --key-delimiter : --null NULL
  kafkacore produce votes --key anna --tombstone    # delete the key from a compacted topic
  kafkacore consume a --from-beginning --exit --json | kafkacore produce b --json
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``produce`` to the command line."""
    parser = add_command(commands, "produce", COMMANDS["produce"].summary, EXAMPLES, run)
    parser.add_argument("topic", help="topic to write to")
    # The file is not a positional argument, because argparse accepts an optional positional argument only
    # directly after the topic.
    parser.add_argument("--file", type=Path, help="read this file (default: standard input)")
    add_bootstrap(parser)
    key = parser.add_mutually_exclusive_group()
    key.add_argument("-k", "--key", metavar="TEXT", help="key of all records (default: none)")
    key.add_argument(
        "-K",
        "--key-delimiter",
        "--key-separator",
        dest="key_separator",
        metavar="TEXT",
        help="split each line into key and value at this text, which may have escapes such as \\t",
    )
    parser.add_argument(
        "-H",
        "--header",
        action="append",
        type=assignment,
        default=[],
        metavar="NAME=VALUE",
        help="add a header to all records; repeat the option for several headers",
    )
    null = parser.add_mutually_exclusive_group()
    null.add_argument(
        "--null", metavar="TEXT", help="send null instead of a key or value that equals this text"
    )
    null.add_argument(
        "-Z", dest="null", action="store_const", const="", help="send an empty key or value as null"
    )
    null.add_argument(
        "--tombstone", action="store_true", help="send one record without a value; it needs --key"
    )
    parser.add_argument(
        "-J", "--json", action="store_true", help="read lines in the format of `consume --json`"
    )
    parser.add_argument("-p", "--partition", type=natural, help="write only to this partition")
    parser.add_argument(
        "--acks", choices=("0", "1", "all"), default="all", help="required acknowledgements (default: all)"
    )
    parser.add_argument(
        "--compression", choices=CODEC_NAMES, help="compress batches with this codec (default: none)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write all lines, and return 1 if a record was not acknowledged."""
    from kafkacore import KafkaProducer

    _check(arguments)
    with (
        _blocks(arguments) as blocks,
        KafkaProducer(
            **client_settings(arguments, "bootstrap_timeout_ms"),
            acks="all" if arguments.acks == "all" else int(arguments.acks),
            compression_type=arguments.compression,
            linger_ms=5,
            batch_size=BATCH_BYTES,
            **time_limits(arguments, "max_block_ms"),
        ) as producer,
        lost_brokers_reported(),
    ):
        outcome = _Outcome()
        for rows in _rows(blocks, arguments):
            _send(producer, arguments.topic, rows, outcome)
        producer.flush()
        failures = outcome.failures()
    if failures:
        print(
            f"kafkacore: {len(failures)} of {outcome.sent} records failed; the first error: {failures[0]}",
            file=sys.stderr,
        )
        return 1
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse arguments that do not work together."""
    if arguments.tombstone and (arguments.key is None or arguments.file is not None or arguments.json):
        raise KafkaConfigurationError(
            "--tombstone needs --key, and works neither with --file nor with --json"
        )
    if arguments.json and (
        arguments.key is not None or arguments.key_separator is not None or arguments.null is not None
    ):
        raise KafkaConfigurationError(
            "--json cannot be used with --key, --key-delimiter or --null: each line contains the key and the "
            "value"
        )
    if arguments.key_separator == "":
        raise KafkaConfigurationError("--key-delimiter must not be empty")


@contextmanager
def _blocks(arguments: argparse.Namespace) -> Iterator[Iterable[list[bytes]]]:
    """Yield an iterable of the input's lines in blocks. It is empty if the command sends a tombstone."""
    if arguments.tombstone:
        yield ()
    elif arguments.file is None:
        yield _split(cast("BufferedReader", sys.stdin.buffer))
    else:
        with arguments.file.open("rb") as source:
            yield _split(source)


def _split(source: BufferedReader) -> Iterator[list[bytes]]:
    """Yield the complete lines of each read, which returns what is available, and then the last line."""
    started: list[bytes] = []
    while data := source.read1(BLOCK_BYTES):
        lines = data.split(b"\n")
        started.append(lines[0])
        if len(lines) > 1:
            lines[0] = b"".join(started)
            started = [lines.pop()]
            yield lines
    if last := b"".join(started):
        yield [last]


class _Rows(NamedTuple):
    """Arguments of ``KafkaProducer.send_batch`` without the topic: one item of each column per record."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[list[tuple[str, bytes | None]]] | None = None
    timestamps: Sequence[int | None] | None = None
    partition: int | None = None


class _Outcome:
    """The number of records sent, and the errors of those that were not acknowledged."""

    def __init__(self) -> None:
        self.sent = 0
        self._pending: deque[BatchFuture | FutureRecordMetadata] = deque()
        self._failures: list[BaseException] = []

    def add(self, future: BatchFuture | FutureRecordMetadata, count: int) -> None:
        """Add records. Forget those that are done, so that they do not occupy memory."""
        self.sent += count
        self._pending.append(future)
        while self._pending and self._pending[0].is_done:
            self._take(self._pending.popleft())

    def failures(self) -> list[BaseException]:
        """Return the errors in the order of the records, which must all be done."""
        while self._pending:
            self._take(self._pending.popleft())
        return self._failures

    def _take(self, future: BatchFuture | FutureRecordMetadata) -> None:
        if future.failed():
            self._failures += [error for one in _each(future) if (error := one.exception) is not None]


def _each(future: BatchFuture | FutureRecordMetadata) -> Iterator[FutureRecordMetadata]:
    """Yield the future of each record."""
    from kafkacore.producer.future import FutureRecordMetadata

    if isinstance(future, FutureRecordMetadata):
        yield future
    else:
        yield from (future[row] for row in range(len(future)))


def _send(producer: KafkaProducer, topic: str, rows: _Rows, outcome: _Outcome) -> None:
    """Send records.

    Raises
    ------
    CommandError
        A record cannot be sent. The records before it are written when the producer closes.
    """
    try:
        outcome.add(producer.send_batch(topic, *rows), len(rows.values))
    except KafkaTimeoutError as error:
        future = getattr(error, "future", None)
        left = () if future is None else (row for row, one in enumerate(_each(future)) if one.failed())
        raise CommandError(
            f"line {outcome.sent + next(iter(left), 0) + 1} cannot be sent: {error}"
        ) from error
    except (KafkaError, ValueError, TypeError):
        # No record was sent. Send them one by one, up to the one that cannot be sent.
        _send_each(producer, topic, rows, outcome)


def _send_each(producer: KafkaProducer, topic: str, rows: _Rows, outcome: _Outcome) -> None:
    nothing = [None] * len(rows.values)
    columns = [nothing if column is None else column for column in rows[:-1]]
    for value, key, headers, timestamp_ms in zip(*columns, strict=True):
        try:
            outcome.add(producer.send(topic, value, key, headers, rows.partition, timestamp_ms), 1)
        except (KafkaError, ValueError, TypeError) as error:
            raise CommandError(f"line {outcome.sent + 1} cannot be sent: {error}") from error


def _rows(blocks: Iterable[list[bytes]], arguments: argparse.Namespace) -> Iterator[_Rows]:
    """Yield the records of each block of lines, or the tombstone."""
    headers = [(name, os.fsencode(value)) for name, value in arguments.header]
    blocks_of_rows = (
        iter([_Rows([None], [os.fsencode(arguments.key)])])
        if arguments.tombstone
        else _from_json(blocks)
        if arguments.json
        else _from_lines(blocks, arguments)
    )
    for rows in blocks_of_rows:
        if headers:
            own = [[]] * len(rows.values) if rows.headers is None else rows.headers
            rows = rows._replace(headers=[[*of_row, *headers] for of_row in own])
        yield rows._replace(partition=arguments.partition)


def _from_lines(blocks: Iterable[list[bytes]], arguments: argparse.Namespace) -> Iterator[_Rows]:
    separator = None if arguments.key_separator is None else unescaped(arguments.key_separator)
    null = None if arguments.null is None else os.fsencode(arguments.null)
    fixed_key = None if arguments.key is None else os.fsencode(arguments.key)
    number = 0
    for lines in blocks:
        if separator is None:
            keys = None if fixed_key is None else [fixed_key] * len(lines)
            yield _Rows(_with_nulls(lines, null), keys)
            continue
        split = [line.partition(separator) for line in lines]
        is_split = [found for _, found, _ in split]
        count = is_split.index(b"") if b"" in is_split else len(split)
        if count:
            yield _Rows(
                _with_nulls([value for _, _, value in split[:count]], null),
                _with_nulls([key for key, _, _ in split[:count]], null),
            )
        number += count
        if count < len(split):
            raise CommandError(f"line {number + 1} has no key separator {arguments.key_separator!r}")


def _with_nulls(texts: Sequence[bytes], null: bytes | None) -> Sequence[bytes | None]:
    return texts if null is None else [None if text == null else text for text in texts]


#: Value, key, headers and timestamp of a line of JSON, in the order of the columns of :class:`_Rows`.
_Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None]


def _from_json(blocks: Iterable[list[bytes]]) -> Iterator[_Rows]:
    from kafkacore.cli._json_lines import usual_record

    number = 0
    for lines in blocks:
        records: list[_Record] = []
        failure: CommandError | None = None
        for line in lines:
            number += 1
            try:
                records.append(usual_record(line) or _record(line, number))
            except CommandError as error:
                failure = error
                break
        if records:
            values, keys, headers, timestamps = map(list, zip(*records, strict=True))
            yield _Rows(values, keys, headers, timestamps)
        if failure is not None:
            raise failure


def _record(line: bytes, number: int) -> _Record:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise CommandError(f"line {number} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise CommandError(f'line {number} must be an object such as {{"value": "hello"}}')
    try:
        return (
            get_bytes(fields, "value"),
            get_bytes(fields, "key"),
            [(str(h["key"]), get_bytes(h, "value")) for h in fields.get("headers") or ()],
            fields.get("timestamp"),
        )
    except KafkaConfigurationError as error:
        raise CommandError(f"line {number}: {error}") from None
    except (TypeError, KeyError, AttributeError):
        raise CommandError(
            f'line {number}: headers must be a list such as [{{"key": "a", "value": "b"}}]'
        ) from None
