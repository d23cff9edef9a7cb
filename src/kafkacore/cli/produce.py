"""``kafkacore produce``: write the lines of a file or of standard input as records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TypedDict

from kafkacore.cli.common import (
    CommandError,
    CommandParser,
    Commands,
    add_command,
    get_bytes,
    lost_brokers_reported,
    natural,
    time_limits,
)
from kafkacore.cli.connection import add_bootstrap, client_settings
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.structs import CODEC_NAMES

EXAMPLES = """  echo hello | kafkacore produce greetings
  kafkacore produce orders --file orders.jsonl --compression lz4
  printf 'anna:1\\nbert:2\\n' | kafkacore produce votes --key-separator :
  kafkacore consume a --from-beginning --exit-at-end --json | kafkacore produce b --json
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``produce`` to the command line."""
    parser = add_command(commands, "produce", "write lines as records to a topic", EXAMPLES, run)
    parser.add_argument("topic", help="topic to write to")
    # Not a positional argument, because argparse accepts an optional one only directly after the topic.
    parser.add_argument("--file", type=Path, help="read this file (default: standard input)")
    add_bootstrap(parser)
    parser.add_argument("--key-separator", metavar="TEXT", help="text that separates key and value in a line")
    parser.add_argument("--json", action="store_true", help="read lines in the format of `consume --json`")
    parser.add_argument("--partition", type=natural, help="write only to this partition")
    parser.add_argument(
        "--acks", choices=("0", "1", "all"), default="all", help="required acknowledgements (default: all)"
    )
    parser.add_argument(
        "--compression", choices=CODEC_NAMES, help="compress batches with this codec (default: none)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write all lines, and return 1 if a record was not acknowledged."""
    from kafkacore import KafkaProducer

    failures: list[BaseException] = []
    count = 0
    with (
        nullcontext(sys.stdin.buffer) if arguments.file is None else arguments.file.open("rb") as lines,
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
            count += 1
            try:
                producer.send(arguments.topic, **record).add_errback(failures.append)
            except (KafkaError, ValueError, TypeError) as error:
                # The records before it are written when the producer closes.
                raise CommandError(f"line {count} cannot be sent: {error}") from error
        producer.flush()
    if failures:
        print(
            f"kafkacore: {len(failures)} of {count} records failed; the first error: {failures[0]}",
            file=sys.stderr,
        )
        return 1
    return 0


class _Record(TypedDict, total=False):
    """Arguments of ``KafkaProducer.send`` without the topic."""

    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int


def _records(lines: Iterable[bytes], arguments: argparse.Namespace) -> Iterable[_Record]:
    """Yield the arguments of ``KafkaProducer.send`` for each line."""
    separator = arguments.key_separator.encode() if arguments.key_separator else None
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\n")
        record: _Record
        if arguments.json:
            record = _from_json(line, number)
        elif separator is not None:
            key, found, value = line.partition(separator)
            if not found:
                raise CommandError(f"line {number} has no key separator {arguments.key_separator!r}")
            record = {"key": key, "value": value}
        else:
            record = {"value": line}
        if arguments.partition is not None:
            record["partition"] = arguments.partition
        yield record


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
