"""``kafkacore dump-log``: print the log files of this broker or of Apache Kafka."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafkacore.cli.command_parser import CommandParser, Commands, add_command
from kafkacore.cli.commands import COMMANDS
from kafkacore.errors import IllegalArgumentError, KafkaConfigurationError, KafkaError

EXAMPLES = """  kafkacore dump-log ./kafka/flights-0/00000000000000000000.log
  kafkacore dump-log ./kafka/flights-0/*.log --records --json | jq .offset
  kafkacore dump-log ./kafka/flights-0/00000000000000000000.index
  kafkacore dump-log ./kafka/__consumer_offsets-12/00000000000000000000.log --offsets-decoder
"""


def add_parser(commands: Commands[CommandParser]) -> None:
    """Add ``dump-log`` to the command line."""
    parser = add_command(commands, "dump-log", COMMANDS["dump-log"].summary, EXAMPLES, run)
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=".log, .index, .timeindex, .txnindex or .snapshot file",
    )
    parser.add_argument("--records", action="store_true", help="print each record, not only each batch")
    parser.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="decode the records of __consumer_offsets; implies --records",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(arguments: argparse.Namespace) -> int:
    """Print every file, and return 1 if one of them is corrupt."""
    from kafkacore.broker.group.record_json import decoded_record
    from kafkacore.broker.log.dump import dump_log_segments

    decoder = decoded_record if arguments.offsets_decoder else None
    with_records = arguments.records or arguments.offsets_decoder
    status = 0
    for path in arguments.files:
        if len(arguments.files) > 1 and not arguments.json:
            print(f"{path}:")
        try:
            for line in dump_log_segments(path, with_records, arguments.json, decoder=decoder):
                print(line)
        except IllegalArgumentError as error:
            raise KafkaConfigurationError(str(error)) from None
        except KafkaError as error:
            # Continue with the other files, which may be intact. The part before the corrupt bytes has been
            # printed.
            sys.stdout.flush()
            print(f"kafkacore: {path}: {error}", file=sys.stderr)
            status = 1
    return status
