"""The options of ``format("kafkacore-log")``: strings in, one checked, picklable object out.

Where an option means what it means to ``kafkacore``, it has the same name. Does not know: files, columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import SettingType, table
from kafkacore.spark.log_files.files import StorageValue
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import integer, known_options, listed, one_of, positive, refuse_unknown
from kafkacore.spark.reader.options import Bound, parse_offsets
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES
from kafkacore.spark.typed.options import CORRUPT_RECORD, MODES
from kafkacore.structs import INT32_MAX, TopicPartition, partition_name

ISOLATIONS = ("read_uncommitted", "read_committed")
STORAGE_PREFIX = "storage."

_S, _I, _L = SettingType.STRING, SettingType.INT, SettingType.LONG
# fmt: off
OPTIONS: Final = table(
    spark_option("path", _S,
                 documentation="A file, a folder or a glob, as given to `load`."),
    spark_option("paths", _S,
                 documentation='Several of them, as given to `load`, in JSON: `["a", "b"]`.'),
    spark_option("topic", _S, shown_default="of the folder's name",
                 documentation="Topic of all files, whatever their folders are called; the column is null "
                               "if neither gives it."),
    spark_option("partition", _I, shown_default="of the folder's name",
                 documentation="Partition of all files; the column is null if neither gives it."),
    spark_option("subscribe", _S, shown_default="all",
                 documentation="Read only these topics of the files found: a list with commas."),
    spark_option("subscribePattern", _S, shown_default="all",
                 documentation="Read only these topics of the files found: a regular expression of the "
                               "whole name."),
    spark_option("startingOffsets", _S, shown_default="`earliest`",
                 documentation='Start at these offsets, `{"orders":{"0":23}}`. Partitions that are not '
                               "named are read whole."),
    spark_option("endingOffsets", _S, shown_default="`latest`",
                 documentation="End at these offsets. Partitions that are not named are read whole."),
    spark_option("startingTimestamp", _L,
                 documentation="Start at the first record with this time or a later one, in ms since "
                               "1970. A log without one is left out."),
    spark_option("endingTimestamp", _L,
                 documentation="End before the first record with this time or a later one, in ms since "
                               "1970. A log without one is read whole."),
    spark_option("isolation", _S, ISOLATIONS[0], choices=ISOLATIONS,
                 documentation="`read_committed` leaves out aborted transactions and ends at the first "
                               "one that is open. Damage that may hide how a transaction ended fails the "
                               "read unless `mode` is set otherwise."),
    spark_option("mode", _S, "FAILFAST", choices=MODES,
                 documentation="Treatment of a corrupt batch. `FAILFAST` ends the query with file, "
                               "position and reason; `DROPMALFORMED` leaves the batch out; `PERMISSIVE` "
                               "leaves it out and gives a row, all null, with that sentence in "
                               "`_corrupt_record` if the schema names it."),
    spark_option("columnNameOfCorruptRecord", _S, CORRUPT_RECORD,
                 documentation="Name of that column, a STRING."),
    spark_option("minPartitions", _I,
                 documentation="Least number of tasks, a hint as in `kafkacore`."),
    spark_option("maxBytesPerPartition", _L, shown_default="16 to 128 MiB, for about 64 tasks",
                 documentation="Bytes of a file that one task reads."),
)
# fmt: on
OPTION_NAMES: Final = tuple(OPTIONS)


@dataclass(frozen=True)
class LogOptions:
    """Checked options of one read. ``storage`` holds secrets and is in no text of it."""

    paths: tuple[str, ...]
    storage: dict[str, StorageValue] = field(default_factory=dict, repr=False)
    topic: str | None = None
    partition: int | None = None
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    starting: Bound = field(default_factory=Bound)
    ending: Bound = field(default_factory=Bound)
    read_committed: bool = False
    mode: str = "FAILFAST"
    corrupt_column: str = CORRUPT_RECORD
    min_partitions: int | None = None
    max_bytes_per_partition: int | None = None


def parse_log_options(options: Mapping[str, str]) -> LogOptions:
    """Check the options of a read.

    Parameters
    ----------
    options:
        As Spark gives them; names in any case.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing or malformed; the message says what to change.
    """
    given = {name.lower(): value for name, value in options.items()}
    _refuse_brokers(given)
    refuse_unknown(
        {name: value for name, value in given.items() if not name.startswith(STORAGE_PREFIX)},
        (*OPTION_NAMES, *FORMAT_OPTION_NAMES),
    )
    known = known_options(given, OPTION_NAMES)
    return LogOptions(
        paths=_paths(known),
        storage=_storage(given),
        topic=known.get("topic"),
        partition=_partition(known),
        subscribe=listed(known.get("subscribe", "")),
        subscribe_pattern=_pattern(known),
        starting=_bound(known, "starting", "earliest", -2),
        ending=_bound(known, "ending", "latest", -1),
        read_committed=one_of(known, OPTIONS["isolation"]) == "read_committed",
        mode=corrupt_mode(known),
        corrupt_column=known.get("columnNameOfCorruptRecord", CORRUPT_RECORD),
        min_partitions=positive(known, OPTIONS["minPartitions"]),
        max_bytes_per_partition=positive(known, OPTIONS["maxBytesPerPartition"]),
    )


def corrupt_mode(known: Mapping[str, str]) -> str:
    """What happens to a corrupt batch: FAILFAST unless ``mode`` says another.

    Values that cannot be decoded are PERMISSIVE unless it does; but a batch may be a thousand records.
    """
    return one_of(known, OPTIONS["mode"])


def _refuse_brokers(given: Mapping[str, str]) -> None:
    if "kafka.isolation.level" in given:
        raise KafkaConfigurationError("kafka.isolation.level is for brokers: use the option isolation")
    for name in given:
        if name.startswith("kafka."):
            raise KafkaConfigurationError(
                f"{name} is for brokers, and kafkacore-log reads files: remove the option"
            )


def _paths(known: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in known:
        try:
            paths = json.loads(known["paths"])
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise KafkaConfigurationError('paths must be JSON such as ["a.log", "b.log"]: or use load([...])')
        return tuple(paths)
    if not known.get("path"):
        raise KafkaConfigurationError("no path is given: load('/backup/flights-0') or .option('path', ...)")
    return (known["path"],)


def _storage(given: Mapping[str, str]) -> dict[str, StorageValue]:
    """``storage.key`` → fsspec's ``key``. JSON of an object, a list or a truth value is read as such."""
    storage: dict[str, StorageValue] = {}
    for name, text in given.items():
        if not name.startswith(STORAGE_PREFIX):
            continue
        value: StorageValue = text
        if text in ("true", "false") or text.startswith(("{", "[")):
            try:
                value = json.loads(text)
            except ValueError:
                # Its value may be a secret, so that it is not shown.
                raise KafkaConfigurationError(f"{name} begins like JSON and is none") from None
        storage[name.removeprefix(STORAGE_PREFIX)] = value
    return storage


def _partition(known: Mapping[str, str]) -> int | None:
    if "partition" not in known:
        return None
    number = integer(known, OPTIONS["partition"])
    if not 0 <= number <= INT32_MAX:
        raise KafkaConfigurationError(f"partition must be a partition's number, not {number}")
    return number


def _pattern(known: Mapping[str, str]) -> str | None:
    text = known.get("subscribePattern")
    if text is None:
        return None
    if "subscribe" in known:
        raise KafkaConfigurationError("give subscribe or subscribePattern, not both")
    try:
        re.compile(text)
    except re.error as error:
        raise KafkaConfigurationError(
            f"subscribePattern {text!r} is no regular expression: {error}"
        ) from None
    return text


def _bound(known: Mapping[str, str], which: str, name: str, named: int) -> Bound:
    """Where reading starts or ends; a timestamp beats offsets, as in ``kafkacore``."""
    option = f"{which}Timestamp"
    if option in known:
        return Bound(timestamp=integer(known, OPTIONS[option]))
    option = f"{which}Offsets"
    text = known.get(option, name).strip()
    if text.lower() == name:
        return Bound(name=name)
    if not text.startswith("{"):
        raise KafkaConfigurationError(
            f'{option} must be "{name}" or JSON such as {{"topicA":{{"0":23}}}}, not {text!r}'
        )
    offsets = parse_offsets(text, option)
    for tp, offset in offsets.items():
        if offset < 0 and offset != named:
            raise KafkaConfigurationError(f"{option} of {partition_name(tp)} cannot be {offset}")
    return Bound(offsets={TopicPartition(*tp): offset for tp, offset in offsets.items() if offset >= 0})
