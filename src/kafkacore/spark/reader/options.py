"""The options of ``format("kafkacore")``: strings in, one checked, picklable object out.

Names, defaults and meaning are those of Spark's built-in ``kafka`` source ("Structured Streaming + Kafka
Integration Guide"), so that changing the format's name is the whole migration. Does not know: connections,
offsets of any broker.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.consumer.config import DEFAULTS as CONSUMER_ARGUMENTS
from kafkacore.errors import KafkaConfigurationError
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

logger = logging.getLogger(__name__)

#: Offsets that have a name, as they are written inside a JSON of offsets.
LATEST_OFFSET, EARLIEST_OFFSET = -1, -2

#: Kafka settings that the source must own to keep its promises, and what to use instead.
OWNED_BY_THE_SOURCE = {
    "kafka.auto.offset.reset": "set startingOffsets instead",
    "kafka.key.deserializer": "keys are always bytes; decode them with DataFrame functions",
    "kafka.value.deserializer": "values are always bytes; decode them with DataFrame functions",
    "kafka.enable.auto.commit": "Spark's checkpoint holds the offsets",
    "kafka.interceptor.classes": "the source has no interceptors",
}

SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
#: A stream of Spark's own source refuses these, and ignores ``endingTimestamp``.
REFUSED_IN_STREAMS = ("endingOffsetsByTimestamp", "endingOffsets")
_B, _S, _I, _L = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT, SettingType.LONG
# fmt: off
OPTIONS: Final = table(
    spark_option("assign", _S,
                 documentation='The partitions to read, `{"orders":[0,1]}`. Partitions that do not exist '
                               "are left out."),
    spark_option("subscribe", _S,
                 documentation="The topics to read, `orders,returns`."),
    spark_option("subscribePattern", _S,
                 documentation="The topics to read: a regular expression of Java's, found anywhere in a "
                               "topic's name."),
    spark_option("startingTimestamp", _L,
                 documentation="Start at this time, in ms since 1970. Wins over "
                               "`startingOffsetsByTimestamp` and `startingOffsets`."),
    spark_option("startingOffsetsByTimestamp", _S,
                 documentation='Start at these times, `{"orders":{"0":1700000000000}}`. Wins over '
                               "`startingOffsets`."),
    spark_option("startingOffsets", _S, shown_default="stream `latest`, batch `earliest`",
                 documentation='Start at `earliest`, `latest` (streams), or `{"orders":{"0":23,"1":-2}}`, '
                               "where -2 is earliest and -1 latest."),
    spark_option("startingOffsetsByTimestampStrategy", _S, "error", choices=("error", "latest"),
                 documentation="If no record has the starting time or a later one: `error` fails the "
                               "query, `latest` starts at the end."),
    spark_option("endingTimestamp", _L, scope="batch",
                 documentation="End at this time, in ms since 1970. Wins over `endingOffsetsByTimestamp` "
                               "and `endingOffsets`."),
    spark_option("endingOffsetsByTimestamp", _S, scope="batch",
                 documentation="End at these times. Wins over `endingOffsets`."),
    spark_option("endingOffsets", _S, scope="batch", shown_default="`latest`",
                 documentation="End at `latest` or at these offsets."),
    spark_option("failOnDataLoss", _B, True,
                 documentation="Whether the query fails if records were lost; `false` logs a warning and "
                               "continues with the remaining records."),
    spark_option("kafkaConsumer.pollTimeoutMs", _L, 120_000,
                 documentation="How long a task waits for records, in ms."),
    spark_option("fetchOffset.numRetries", _I, 3, low=0,
                 documentation="How often, in all, brokers are asked for offsets."),
    spark_option("fetchOffset.retryIntervalMs", _L, 1_000, low=0,
                 documentation="Pause before brokers are asked for offsets again, in ms."),
    spark_option("maxOffsetsPerTrigger", _L, scope="stream",
                 documentation="Most offsets of a micro-batch, shared over the partitions by their "
                               "backlog."),
    spark_option("minOffsetsPerTrigger", _L, low=0, scope="stream",
                 documentation="A micro-batch waits for that many offsets, at most for `maxTriggerDelay`."),
    spark_option("maxTriggerDelay", _S, "15m", scope="stream",
                 documentation="How long a micro-batch waits for `minOffsetsPerTrigger`."),
    spark_option("minPartitions", _I,
                 documentation="Least number of tasks; large ranges are cut into several."),
    spark_option("maxRecordsPerPartition", _L,
                 documentation="Most records of a task; large ranges are cut into several."),
    spark_option("groupIdPrefix", _S,
                 documentation="Name of the client, as is `kafka.group.id`. The source joins no group and "
                               "commits nothing."),
    spark_option("includeHeaders", _B, False,
                 documentation="Whether there is a column `headers`."),
)
# fmt: on
BATCH_ONLY: Final = tuple(name for name, row in OPTIONS.items() if row.scope == "batch")
STREAM_ONLY: Final = tuple(name for name, row in OPTIONS.items() if row.scope == "stream")
OPTION_NAMES: Final = tuple(OPTIONS)


@dataclass(frozen=True)
class Bound:
    """Where reading starts or ends, before a broker has been asked.

    Exactly one of the three says it: a ``name`` ("earliest" or "latest"), ``offsets`` (-1 latest, -2
    earliest), or timestamps in ms since the epoch, ``timestamp`` for all partitions or ``timestamps`` for
    each.
    """

    name: str | None = None
    offsets: dict[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: dict[TopicPartition, int] | None = None


@dataclass(frozen=True)
class SourceOptions:
    """Checked options of one read. Picklable: it travels from the driver to the workers."""

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
    #: Whether the user has named a group: Spark's source then says more when partitions are gone.
    group_id_is_given: bool = False

    def __repr__(self) -> str:
        """Without what the client is given: there may be a password among it."""
        shown = {**vars(self), "client_configs": sorted(self.client_configs)}
        return f"SourceOptions({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def parse_options(options: Mapping[str, str], streaming: bool) -> SourceOptions:
    """Check the options of a read and give them as :class:`SourceOptions`.

    Parameters
    ----------
    options:
        As given to ``DataFrameReader.option``; names in any case.
    streaming:
        Whether this is ``readStream``: ``startingOffsets`` then defaults to latest, and nothing may end.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing, malformed or not for this kind of read; the message says what to
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
    """How many offsets a micro-batch has at most and at least. Without effect in a batch read."""
    ignored = [name for name in STREAM_ONLY if name in known]
    if ignored and not streaming:
        logger.warning("options without effect in spark.read: %s", ", ".join(ignored))
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
    """No reader here is a member of a group; the group's name is the client's, which brokers see."""
    named = {name: text for name, text in configs.items() if name != "group_id"}
    group = configs.get("group_id")
    if group is not None:
        logger.warning(
            "kafka.group.id is set: the source neither joins the group nor commits to it%s",
            ", and ignores groupIdPrefix" if prefix is not None else "",
        )
    if (name := group or prefix) is not None:
        named.setdefault("client_id", name)
    return named


def _subscription(known: Mapping[str, str]) -> tuple[tuple[TopicPartition, ...], tuple[str, ...], str | None]:
    chosen = [name for name in SUBSCRIPTIONS if name in known]
    if len(chosen) != 1:
        problem = f"{' and '.join(chosen)} are given" if chosen else "none is given"
        raise KafkaConfigurationError(
            f"give exactly one of assign, subscribe and subscribePattern; {problem}"
        )
    text = known[chosen[0]].strip()
    if chosen[0] == "subscribe":
        topics = tuple(dict.fromkeys(listed(text)))
        if not topics:
            raise KafkaConfigurationError(
                "subscribe names no topic: use a comma-separated list such as 'a,b'"
            )
        return (), topics, None
    if chosen[0] == "subscribePattern":
        if not text:
            raise KafkaConfigurationError("subscribePattern is empty: give a Java regular expression")
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
            raise KafkaConfigurationError(f"{name} is for spark.read; a stream has no end: remove the option")
    if "endingTimestamp" in known:
        logger.warning("endingTimestamp is without effect in spark.readStream: a stream has no end")


def _bounds(known: Mapping[str, str], streaming: bool) -> tuple[Bound, Bound]:
    """Start and end of the read."""
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
    """What can be said of two maps before a broker has been asked."""
    if start is None or end is None:
        return
    if different := sorted(start.keys() ^ end.keys()):
        raise KafkaConfigurationError(
            f"[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET] starting{option} and "
            f"ending{option} must name the same partitions; only one names {names_of(different)}"
        )
    for tp in sorted(start):
        if start[tp] > end[tp] >= 0:
            raise KafkaConfigurationError(
                f"[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] {names_of([tp])}: starting{option} "
                f"{start[tp]} lies after ending{option} {end[tp]}"
            )


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """As Kafka writes them."""
    return ", ".join(map(partition_name, partitions))


def _bound(known: Mapping[str, str], which: str, default: str) -> Bound:
    """``startingTimestamp`` beats ``startingOffsetsByTimestamp``, which beats ``startingOffsets``; so for
    ending.
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
    """``{"topicA":{"0":23,"1":-1}}`` → partition → number."""
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
    """A number; its fraction is cut off, as Spark's reader of JSON cuts it off."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < INT64_MAX + 1:
        return None
    return int(number)
