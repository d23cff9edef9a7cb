"""The options of ``format("kafkacore")``.

Names, defaults and meaning are those of Spark's built-in ``kafka`` source ("Structured Streaming + Kafka
Integration Guide"), so that a job migrates by changing the name of the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.consumer.config import DEFAULTS as CONSUMER_ARGUMENTS
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.settings import SettingType, table
from kafkacore.spark.options.java_configs import client_configs
from kafkacore.spark.options.java_regex import compile_java_pattern
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import (
    boolean,
    duration_ms,
    integer,
    json_of,
    known_options,
    listed,
    not_json,
    positive,
    refuse_unknown,
    whole_number,
)
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES
from kafkacore.structs import INT32_MAX, INT64_MAX, TopicPartition, partition_name

logger = logger_of(__name__)

#: Values that stand for the latest and the earliest offset in JSON offsets.
LATEST_OFFSET, EARLIEST_OFFSET = -1, -2

#: Kafka settings that the source sets itself, each with what the user can do instead.
OWNED_BY_THE_SOURCE = {
    "kafka.auto.offset.reset": "set startingOffsets instead",
    "kafka.key.deserializer": "keys are always bytes; decode them with DataFrame functions",
    "kafka.value.deserializer": "values are always bytes; decode them with DataFrame functions",
    "kafka.enable.auto.commit": "Spark's checkpoint holds the offsets",
    "kafka.interceptor.classes": "the source has no interceptors",
}

SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
#: Options that raise an error in a stream. The option ``endingTimestamp`` is ignored, as in Spark's own
#: source.
REFUSED_IN_STREAMS = ("endingOffsetsByTimestamp", "endingOffsets")
_B, _S, _I, _L = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT, SettingType.LONG
# fmt: off
OPTIONS: Final = table(
    spark_option("assign", _S,
                 documentation='Partitions to read, in JSON such as `{"orders":[0,1]}`. Partitions that do '
                               "not exist are ignored."),
    spark_option("subscribe", _S,
                 documentation="Comma-separated topics to read, such as `orders,returns`."),
    spark_option("subscribePattern", _S,
                 documentation="Java regular expression. The source reads every topic whose name contains "
                               "a match."),
    spark_option("startingTimestamp", _L,
                 documentation="Timestamp at which all partitions start, in ms since 1970. Takes precedence "
                               "over `startingOffsetsByTimestamp` and `startingOffsets`."),
    spark_option("startingOffsetsByTimestamp", _S,
                 documentation="Timestamp at which each partition starts, in ms since 1970, in JSON such as "
                               '`{"orders":{"0":1700000000000}}`. Takes precedence over `startingOffsets`.'),
    spark_option("startingOffsets", _S, shown_default="stream `latest`, batch `earliest`",
                 documentation="Offsets at which a new query starts: `earliest`, `latest` (only streams), "
                               'or one offset per partition in JSON such as `{"orders":{"0":23,"1":-2}}`. '
                               "In JSON, -2 is earliest and -1 is latest."),
    spark_option("startingOffsetsByTimestampStrategy", _S, "error", choices=("error", "latest"),
                 documentation="Action if a partition has no record at or after the starting timestamp: "
                               "`error` fails the query, `latest` starts at the end of the partition."),
    spark_option("endingTimestamp", _L, scope="batch",
                 documentation="Timestamp at which all partitions end, in ms since 1970. Takes precedence "
                               "over `endingOffsetsByTimestamp` and `endingOffsets`."),
    spark_option("endingOffsetsByTimestamp", _S, scope="batch",
                 documentation="Timestamp at which each partition ends, in ms since 1970, in the form of "
                               "`startingOffsetsByTimestamp`. Takes precedence over `endingOffsets`."),
    spark_option("endingOffsets", _S, scope="batch", shown_default="`latest`",
                 documentation="Offsets at which the read ends, exclusive: `latest`, or one offset per "
                               "partition in JSON, where -1 is latest."),
    spark_option("failOnDataLoss", _B, True,
                 documentation="Whether the query fails if records were deleted before it read them. With "
                               "`false` it logs a warning and continues with the remaining records."),
    spark_option("kafkaConsumer.pollTimeoutMs", _L, 120_000,
                 documentation="Maximum time that a task waits for records before it fails, in ms."),
    spark_option("fetchOffset.numRetries", _I, 3, low=0,
                 documentation="Maximum number of attempts to get offsets from the brokers, including the "
                               "first."),
    spark_option("fetchOffset.retryIntervalMs", _L, 1_000, low=0,
                 documentation="Pause between two attempts to get offsets, in ms."),
    spark_option("maxOffsetsPerTrigger", _L, scope="stream",
                 documentation="Maximum number of offsets in a micro-batch. Partitions share this "
                               "number in proportion to their backlog."),
    spark_option("minOffsetsPerTrigger", _L, low=0, scope="stream",
                 documentation="Minimum number of offsets in a micro-batch. If fewer are available, the "
                               "micro-batch waits for more, but at most for `maxTriggerDelay`."),
    spark_option("maxTriggerDelay", _S, "15m", scope="stream",
                 documentation="Maximum time that a micro-batch waits for `minOffsetsPerTrigger`, such as "
                               "`30s` or `15m`."),
    spark_option("minPartitions", _I,
                 documentation="Approximate minimum number of tasks. Large offset ranges are split to reach "
                               "this number."),
    spark_option("maxRecordsPerPartition", _L,
                 documentation="Maximum number of records per task. Larger offset ranges are split."),
    spark_option("groupIdPrefix", _S,
                 documentation="Client id that the brokers see, unless `kafka.group.id` is set. The source "
                               "never joins a consumer group and never commits offsets."),
    spark_option("includeHeaders", _B, False,
                 documentation="Whether the default schema has the column `headers`."),
)
# fmt: on
BATCH_ONLY: Final = tuple(name for name, row in OPTIONS.items() if row.scope == "batch")
STREAM_ONLY: Final = tuple(name for name, row in OPTIONS.items() if row.scope == "stream")
OPTION_NAMES: Final = tuple(OPTIONS)


@dataclass(frozen=True)
class Bound:
    """Start or end of a read as the options give it, before it is resolved to offsets.

    Exactly one attribute is set: ``name`` ("earliest" or "latest"), ``offsets`` (-1 is latest, -2 is
    earliest), ``timestamp`` for all partitions, or ``timestamps`` per partition. Timestamps are in ms since
    the epoch.
    """

    name: str | None = None
    offsets: dict[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: dict[TopicPartition, int] | None = None


@dataclass(frozen=True)
class SourceOptions:
    """Checked options of one read. Picklable, because the driver sends it to the workers."""

    client_configs: dict[str, str]
    assign: tuple[TopicPartition, ...] = ()
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    starting: Bound = field(default_factory=Bound)
    ending: Bound = field(default_factory=Bound)
    timestamp_strategy_latest: bool = False
    fail_on_data_loss: bool = boolean({}, OPTIONS["failOnDataLoss"])
    poll_timeout_ms: int = integer({}, OPTIONS["kafkaConsumer.pollTimeoutMs"])
    fetch_retries: int = integer({}, OPTIONS["fetchOffset.numRetries"])
    fetch_retry_interval_ms: int = integer({}, OPTIONS["fetchOffset.retryIntervalMs"])
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = duration_ms({}, OPTIONS["maxTriggerDelay"])
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    include_headers: bool = boolean({}, OPTIONS["includeHeaders"])
    #: Whether the user has set ``kafka.group.id``. If so, Spark reports deleted partitions with a
    #: different error.
    group_id_is_given: bool = False

    def __repr__(self) -> str:
        """Return a representation without the client settings, which may contain a password."""
        shown = {**vars(self), "client_configs": sorted(self.client_configs)}
        return f"SourceOptions({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def parse_options(options: Mapping[str, str], streaming: bool) -> SourceOptions:
    """Check the options of a read and return them as :class:`SourceOptions`.

    Parameters
    ----------
    options:
        Options as given to ``DataFrameReader.option``. Names are not case-sensitive.
    streaming:
        Whether this is ``readStream``. A stream starts at the latest offsets by default and cannot have an
        end.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing, malformed or not for this kind of read. The message says what to
        change.
    """
    given = {name.lower(): value for name, value in options.items() if name.lower() != "path"}
    configs = client_configs(given, OWNED_BY_THE_SOURCE, "source", CONSUMER_ARGUMENTS)
    refuse_unknown(given, (*OPTION_NAMES, *FORMAT_OPTION_NAMES))
    known = known_options(given, OPTION_NAMES)
    _refuse_end_of_stream(known, streaming)
    assign, subscribe, pattern = _subscription(known)
    starting, ending = _bounds(known, streaming)
    most, least = _per_trigger(known, streaming)
    by_timestamp = OPTIONS["startingOffsetsByTimestampStrategy"]
    strategy = known.get(by_timestamp.name, str(by_timestamp.default)).lower()
    if strategy not in by_timestamp.choices:
        raise KafkaConfigurationError(
            f'startingOffsetsByTimestampStrategy must be "error" or "latest", not {strategy!r}'
        )
    return SourceOptions(
        client_configs=_named_client(configs, known.get("groupIdPrefix")),
        assign=assign,
        subscribe=subscribe,
        subscribe_pattern=pattern,
        starting=starting,
        ending=ending,
        timestamp_strategy_latest=strategy == "latest",
        fail_on_data_loss=boolean(known, OPTIONS["failOnDataLoss"]),
        poll_timeout_ms=_poll_timeout_ms(known),
        fetch_retries=integer(known, OPTIONS["fetchOffset.numRetries"]),
        fetch_retry_interval_ms=integer(known, OPTIONS["fetchOffset.retryIntervalMs"]),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=duration_ms(known if streaming else {}, OPTIONS["maxTriggerDelay"]),
        min_partitions=positive(known, OPTIONS["minPartitions"]),
        max_records_per_partition=positive(known, OPTIONS["maxRecordsPerPartition"]),
        include_headers=boolean(known, OPTIONS["includeHeaders"]),
        group_id_is_given="group_id" in configs,
    )


def _poll_timeout_ms(known: Mapping[str, str]) -> int:
    option = OPTIONS["kafkaConsumer.pollTimeoutMs"]
    return positive(known, option) or integer({}, option)


def _per_trigger(known: Mapping[str, str], streaming: bool) -> tuple[int | None, int | None]:
    """Return the maximum and the minimum number of offsets of a micro-batch; ``None`` in a batch read."""
    ignored = [name for name in STREAM_ONLY if name in known]
    if ignored and not streaming:
        logger.warning("ignoring options that have no effect in spark.read: %s", ", ".join(ignored))
    if not streaming and not {"maxOffsetsPerTrigger", "minOffsetsPerTrigger"} <= known.keys():
        return None, None
    most = positive(known, OPTIONS["maxOffsetsPerTrigger"])
    least = integer(known, OPTIONS["minOffsetsPerTrigger"]) if "minOffsetsPerTrigger" in known else None
    if most is not None and least is not None and least > most:
        raise KafkaConfigurationError(
            f"minOffsetsPerTrigger ({least}) must not exceed maxOffsetsPerTrigger ({most})"
        )
    return (most, least) if streaming else (None, None)


def _named_client(configs: Mapping[str, str], prefix: str | None) -> dict[str, str]:
    """Use the group id or ``groupIdPrefix`` as the client id, because the source does not join a group."""
    named = {name: text for name, text in configs.items() if name != "group_id"}
    group = configs.get("group_id")
    if group is not None:
        logger.warning(
            "kafka.group.id is used only as the client id: the source does not join the group or commit "
            "offsets to it%s",
            ", and it ignores groupIdPrefix" if prefix is not None else "",
        )
    if (name := group or prefix) is not None:
        named.setdefault("client_id", name)
    return named


def _subscription(known: Mapping[str, str]) -> tuple[tuple[TopicPartition, ...], tuple[str, ...], str | None]:
    chosen = [name for name in SUBSCRIPTIONS if name in known]
    if len(chosen) != 1:
        problem = f"{' and '.join(chosen)} are set" if chosen else "none is set"
        raise KafkaConfigurationError(f"set exactly one of assign, subscribe and subscribePattern; {problem}")
    text = known[chosen[0]].strip()
    if chosen[0] == "subscribe":
        topics = tuple(dict.fromkeys(listed(text)))
        if not topics:
            raise KafkaConfigurationError(
                "subscribe is empty: set it to a comma-separated list of topics such as 'a,b'"
            )
        return (), topics, None
    if chosen[0] == "subscribePattern":
        if not text:
            raise KafkaConfigurationError("subscribePattern is empty: set it to a Java regular expression")
        compile_java_pattern(text, "subscribePattern")
        return (), (), text
    return _assigned(text), (), None


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    example = '{"topicA":[0,1],"topicB":[2]}'
    parsed = json_of(text, "assign", example)
    found = set()
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n <= INT32_MAX for n in numbers):
            raise not_json(text, "assign", example)
        found |= {TopicPartition(topic, number) for number in numbers}
    return tuple(sorted(found))


def _refuse_end_of_stream(known: Mapping[str, str], streaming: bool) -> None:
    if not streaming:
        return
    for name in REFUSED_IN_STREAMS:
        if name in known:
            raise KafkaConfigurationError(f"{name} is only for spark.read: a stream has no end; remove it")
    if "endingTimestamp" in known:
        logger.warning("endingTimestamp has no effect in spark.readStream, because a stream has no end")


def _bounds(known: Mapping[str, str], streaming: bool) -> tuple[Bound, Bound]:
    """Return the start and the end of the read."""
    starting = _bound(known, "starting", "latest" if streaming else "earliest")
    if streaming:
        return starting, Bound(name="latest")
    ending = _bound(known, "ending", "latest")
    if starting.name == "latest" or LATEST_OFFSET in (starting.offsets or {}).values():
        raise KafkaConfigurationError(
            'startingOffsets of spark.read cannot be "latest" (-1): nothing would be read'
        )
    if ending.name == "earliest" or EARLIEST_OFFSET in (ending.offsets or {}).values():
        raise KafkaConfigurationError('endingOffsets cannot be "earliest" (-2): nothing would be read')
    _check_order(starting.offsets, ending.offsets, "Offsets")
    _check_order(starting.timestamps, ending.timestamps, "OffsetsByTimestamp")
    return starting, ending


def _check_order(
    start: Mapping[TopicPartition, int] | None, end: Mapping[TopicPartition, int] | None, option: str
) -> None:
    """Check start and end for contradictions, as far as that is possible without a broker."""
    if start is None or end is None:
        return
    if different := sorted(start.keys() ^ end.keys()):
        raise KafkaConfigurationError(
            f"[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] starting{option} and "
            f"ending{option} must name the same partitions; only one of them names {names_of(different)}"
        )
    for tp in sorted(start):
        if start[tp] > end[tp] >= 0:
            raise KafkaConfigurationError(
                f"[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] {names_of([tp])}: starting{option} "
                f"{start[tp]} is greater than ending{option} {end[tp]}"
            )


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Return the names of partitions, such as ``orders-0, orders-1``."""
    return ", ".join(map(partition_name, partitions))


def _bound(known: Mapping[str, str], which: str, default: str) -> Bound:
    """Return the start or the end from the option that takes precedence.

    ``startingTimestamp`` takes precedence over ``startingOffsetsByTimestamp``, which takes precedence over
    ``startingOffsets``. The same holds for the ending options.
    """
    if (one := known.get(f"{which}Timestamp")) is not None:
        number = whole_number(one.strip())
        if number is None or number < EARLIEST_OFFSET:
            raise KafkaConfigurationError(f"{which}Timestamp must be milliseconds since 1970, not {one!r}")
        return Bound(timestamp=number)
    if (each := known.get(f"{which}OffsetsByTimestamp")) is not None:
        return Bound(timestamps=parse_offsets(each, f"{which}OffsetsByTimestamp"))
    text = known.get(f"{which}Offsets", default).strip()
    if text.lower() in ("earliest", "latest"):
        return Bound(name=text.lower())
    return Bound(offsets=parse_offsets(text, f"{which}Offsets"))


def parse_offsets(text: str, option: str) -> dict[TopicPartition, int]:
    """Parse JSON such as ``{"topicA":{"0":23,"1":-1}}``, and return the number for each partition."""
    example = '{"topicA":{"0":23,"1":-1}}'
    parsed = json_of(text, option, example)
    found: dict[TopicPartition, int] = {}
    for topic, numbers in parsed.items():
        for partition, number in numbers.items() if isinstance(numbers, dict) else [("", None)]:
            index, value = whole_number(partition), _whole_json(number)
            if index is None or not 0 <= index <= INT32_MAX or value is None or value < EARLIEST_OFFSET:
                raise not_json(text, option, example)
            found[TopicPartition(topic, index)] = value
    return found


def _whole_json(number: object) -> int | None:
    """Return a JSON number as an integer. Like Spark's JSON reader, truncate a fraction."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < INT64_MAX + 1:
        return None
    return int(number)
