"""``kafkacore produce``: write lines, or one record without a value, to a topic."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypedDict

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
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.structs import CODEC_NAMES

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
    failures: list[BaseException] = []
    sent = 0
    with (
        _lines(arguments) as lines,
        KafkaProducer(
            **client_settings(arguments, "bootstrap_timeout_ms"),
            acks="all" if arguments.acks == "all" else int(arguments.acks),
            compression_type=arguments.compression,
            linger_ms=5,
            **time_limits(arguments, "max_block_ms"),
        ) as producer,
        lost_brokers_reported(),
    ):
        for record in _records(lines, arguments):
            sent += 1
            try:
                producer.send(arguments.topic, **record).add_errback(failures.append)
            except (KafkaError, ValueError, TypeError) as error:
                # The records before this line are written when the producer closes.
                raise CommandError(f"line {sent} cannot be sent: {error}") from error
        producer.flush()
    if failures:
        print(
            f"kafkacore: {len(failures)} of {sent} records failed; the first error: {failures[0]}",
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
def _lines(arguments: argparse.Namespace) -> Iterator[Iterable[bytes]]:
    """Yield an iterable of the input's lines. It is empty if the command sends a tombstone."""
    if arguments.tombstone:
        yield ()
    elif arguments.file is None:
        yield sys.stdin.buffer
    else:
        with arguments.file.open("rb") as lines:
            yield lines


class _Record(TypedDict, total=False):
    """Arguments of ``KafkaProducer.send`` without the topic."""

    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int


def _records(lines: Iterable[bytes], arguments: argparse.Namespace) -> Iterator[_Record]:
    """Yield the arguments of ``KafkaProducer.send`` for each line, or for the tombstone."""
    headers = [(name, os.fsencode(value)) for name, value in arguments.header]
    records = (
        iter([_Record(key=os.fsencode(arguments.key), value=None)])
        if arguments.tombstone
        else map(_from_json, lines, count(1))
        if arguments.json
        else _from_lines(lines, arguments)
    )
    for record in records:
        if headers:
            record["headers"] = [*record.get("headers", ()), *headers]
        if arguments.partition is not None:
            record["partition"] = arguments.partition
        yield record


def _from_lines(lines: Iterable[bytes], arguments: argparse.Namespace) -> Iterator[_Record]:
    separator = None if arguments.key_separator is None else unescaped(arguments.key_separator)
    null = None if arguments.null is None else os.fsencode(arguments.null)
    fixed_key = None if arguments.key is None else os.fsencode(arguments.key)
    for number, line in enumerate(lines, 1):
        key: bytes | None = fixed_key
        value: bytes = line.removesuffix(b"\n")
        if separator is not None:
            key, found, value = value.partition(separator)
            if not found:
                raise CommandError(f"line {number} has no key separator {arguments.key_separator!r}")
            key = None if key == null else key
        yield {"key": key, "value": None if value == null else value}


def _from_json(line: bytes, number: int) -> _Record:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise CommandError(f"line {number} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise CommandError(f'line {number} must be an object such as {{"value": "hello"}}')
    try:
        return {
            "key": get_bytes(fields, "key"),
            "value": get_bytes(fields, "value"),
            "headers": [(str(h["key"]), get_bytes(h, "value")) for h in fields.get("headers") or ()],
            "timestamp_ms": fields.get("timestamp"),
        }
    except KafkaConfigurationError as error:
        raise CommandError(f"line {number}: {error}") from None
    except (TypeError, KeyError, AttributeError):
        raise CommandError(
            f'line {number}: headers must be a list such as [{{"key": "a", "value": "b"}}]'
        ) from None
