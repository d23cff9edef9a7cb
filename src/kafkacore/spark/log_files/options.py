"""The options of ``format("kafkacore-log")``.

An option with the same meaning as in ``format("kafkacore")`` has the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.decode.formats import CORRUPT_RECORD, MODES
from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import SettingType, table
from kafkacore.spark.log_files.files import StorageValue
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import integer, known_options, listed, one_of, positive, refuse_unknown
from kafkacore.spark.reader.options import Bound, parse_offsets
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES
from kafkacore.structs import INT32_MAX, TopicPartition, partition_name

ISOLATIONS = ("read_uncommitted", "read_committed")
STORAGE_PREFIX = "storage."

_S, _I, _L = SettingType.STRING, SettingType.INT, SettingType.LONG
# fmt: off
OPTIONS: Final = table(
    spark_option("path", _S,
                 documentation="A file, a directory or a glob. `load` sets this option."),
    spark_option("paths", _S,
                 documentation='Several paths in JSON such as `["a", "b"]`. `load` sets this option if it '
                               "gets a list."),
    spark_option("topic", _S, shown_default="from the directory name",
                 documentation="Topic of all files. This option overrides the topic in the directory names. "
                               "The column `topic` is null if the topic is unknown."),
    spark_option("partition", _I, shown_default="from the directory name",
                 documentation="Partition of all files. This option overrides the partition in the "
                               "directory names. The column `partition` is null if the partition is "
                               "unknown."),
    spark_option("subscribe", _S, shown_default="all",
                 documentation="Comma-separated topics. Files of other topics are ignored."),
    spark_option("subscribePattern", _S, shown_default="all",
                 documentation="Regular expression that must match the whole name of a topic. Files of "
                               "other topics are ignored."),
    spark_option("startingOffsets", _S, shown_default="`earliest`",
                 documentation='Offset at which each partition starts, in JSON such as '
                               '`{"orders":{"0":23}}`. Other partitions are read from their beginning.'),
    spark_option("endingOffsets", _S, shown_default="`latest`",
                 documentation="Offset at which each partition ends, exclusive, in JSON. Other partitions "
                               "are read to their end."),
    spark_option("startingTimestamp", _L,
                 documentation="Start at the first record at or after this time, in ms since 1970. A "
                               "partition without such a record is skipped."),
    spark_option("endingTimestamp", _L,
                 documentation="End before the first record at or after this time, in ms since 1970. A "
                               "partition without such a record is read to its end."),
    spark_option("isolation", _S, ISOLATIONS[0], choices=ISOLATIONS,
                 documentation="`read_committed` skips aborted transactions and ends at the first open "
                               "transaction. If damage hides whether a transaction was committed, `mode` "
                               "determines whether the read fails or skips the records of the transaction."),
    spark_option("mode", _S, "FAILFAST", choices=MODES,
                 documentation="Treatment of a corrupt batch. `FAILFAST` fails the query with an error that "
                               "names the file, position and reason. `DROPMALFORMED` skips the batch. "
                               "`PERMISSIVE` also skips the batch. If the schema has the column "
                               "`_corrupt_record`, a row with the reason in this column takes its place."),
    spark_option("columnNameOfCorruptRecord", _S, CORRUPT_RECORD,
                 documentation="Name of the STRING column for the description of a corrupt batch."),
    spark_option("minPartitions", _I,
                 documentation="Approximate minimum number of tasks."),
    spark_option("maxBytesPerPartition", _L, shown_default="16 to 128 MiB, for about 64 tasks",
                 documentation="Approximate maximum number of bytes that one task reads."),
)
# fmt: on
OPTION_NAMES: Final = tuple(OPTIONS)


@dataclass(frozen=True)
class LogOptions:
    """Checked options of one read. ``storage`` may contain secrets, so the representation omits it."""

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
        Options as Spark passes them. Names are not case-sensitive.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing or malformed. The message says what to change.
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
    """Return the mode for corrupt batches. The default is FAILFAST.

    For values that cannot be decoded, the default is PERMISSIVE. The default for batches is stricter, because
    skipping a corrupt batch may lose a thousand records.
    """
    return one_of(known, OPTIONS["mode"])


def _refuse_brokers(given: Mapping[str, str]) -> None:
    if "kafka.isolation.level" in given:
        raise KafkaConfigurationError(
            "kafka.isolation.level applies only to brokers: use the option isolation"
        )
    for name in given:
        if name.startswith("kafka."):
            raise KafkaConfigurationError(
                f"{name} applies only to brokers, but kafkacore-log reads files: remove it"
            )


def _paths(known: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in known:
        try:
            paths = json.loads(known["paths"])
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise KafkaConfigurationError('paths must be JSON such as ["a.log", "b.log"], or use load([...])')
        return tuple(paths)
    if not known.get("path"):
        raise KafkaConfigurationError("no path is set: use load('/backup/flights-0') or .option('path', ...)")
    return (known["path"],)


def _storage(given: Mapping[str, str]) -> dict[str, StorageValue]:
    """Return the options ``storage.NAME`` as fsspec's option ``NAME``.

    A value is parsed as JSON if it is an object, a list or a boolean.
    """
    storage: dict[str, StorageValue] = {}
    for name, text in given.items():
        if not name.startswith(STORAGE_PREFIX):
            continue
        value: StorageValue = text
        if text in ("true", "false") or text.startswith(("{", "[")):
            try:
                value = json.loads(text)
            except ValueError:
                # The message does not contain the value, which may be a secret.
                raise KafkaConfigurationError(f"{name} starts like JSON but is not valid JSON") from None
        storage[name.removeprefix(STORAGE_PREFIX)] = value
    return storage


def _partition(known: Mapping[str, str]) -> int | None:
    if "partition" not in known:
        return None
    number = integer(known, OPTIONS["partition"])
    if not 0 <= number <= INT32_MAX:
        raise KafkaConfigurationError(f"partition must be from 0 to {INT32_MAX}, not {number}")
    return number


def _pattern(known: Mapping[str, str]) -> str | None:
    text = known.get("subscribePattern")
    if text is None:
        return None
    if "subscribe" in known:
        raise KafkaConfigurationError("set subscribe or subscribePattern, not both")
    try:
        re.compile(text)
    except re.error as error:
        raise KafkaConfigurationError(
            f"subscribePattern {text!r} is not a valid regular expression: {error}"
        ) from None
    return text


def _bound(known: Mapping[str, str], which: str, name: str, named: int) -> Bound:
    """Return the start or the end of the read. As in ``kafkacore``, a timestamp takes precedence."""
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
            raise KafkaConfigurationError(
                f"{option} of {partition_name(tp)} must be at least 0, or -2 (earliest) in startingOffsets, "
                f"or -1 (latest) in endingOffsets, not {offset}"
            )
    return Bound(offsets={TopicPartition(*tp): offset for tp, offset in offsets.items() if offset >= 0})
