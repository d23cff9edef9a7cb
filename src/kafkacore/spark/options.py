"""The options of ``format("kafkacore")``: strings in, one checked, picklable object out.

Names, defaults and meaning are those of Spark's built-in ``kafka`` source ("Structured Streaming + Kafka
Integration Guide"), so that changing the format's name is the whole migration. Does not know: connections,
offsets of any broker.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition

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
BATCH_ONLY = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
OPTION_NAMES = (
    *SUBSCRIPTIONS,
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    *BATCH_ONLY,
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    *STREAM_ONLY,
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
)
_DURATION = re.compile(r"\s*(\d+)\s*(ms|milliseconds?|s|seconds?|m|min|minutes?|h|hours?)?\s*")
_DURATION_MS = {"m": 60_000, "s": 1_000, "h": 3_600_000}


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
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120_000
    fetch_retries: int = 3
    fetch_retry_interval_ms: int = 1_000
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    include_headers: bool = False


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
    client_configs = _client_configs(given)
    _refuse_unknown(given)
    known = {name: given[name.lower()] for name in OPTION_NAMES if name.lower() in given}
    _refuse_end_of_stream(known, streaming)
    assign, subscribe, pattern = _subscription(known)
    starting, ending = _bounds(known, streaming)
    strategy = known.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise KafkaConfigurationError(
            f'startingOffsetsByTimestampStrategy must be "error" or "latest", not {strategy!r}'
        )
    most, least = _positive(known, "maxOffsetsPerTrigger"), _positive(known, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise KafkaConfigurationError(
            f"minOffsetsPerTrigger ({least}) must not exceed maxOffsetsPerTrigger ({most})"
        )
    return SourceOptions(
        client_configs=client_configs,
        assign=assign,
        subscribe=subscribe,
        subscribe_pattern=pattern,
        starting=starting,
        ending=ending,
        timestamp_strategy_latest=strategy == "latest",
        fail_on_data_loss=_boolean(known, "failOnDataLoss", True),
        poll_timeout_ms=_positive(known, "kafkaConsumer.pollTimeoutMs") or 120_000,
        fetch_retries=_integer(known, "fetchOffset.numRetries", 3),
        fetch_retry_interval_ms=_integer(known, "fetchOffset.retryIntervalMs", 1_000),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=_duration_ms(known.get("maxTriggerDelay", "15m")),
        min_partitions=_positive(known, "minPartitions"),
        max_records_per_partition=_positive(known, "maxRecordsPerPartition"),
        include_headers=_boolean(known, "includeHeaders", False),
    )


def _client_configs(given: Mapping[str, str]) -> dict[str, str]:
    """``kafka.fetch.max.bytes`` → ``fetch_max_bytes``: the consumer's own argument names, values still
    text.
    """
    configs = {}
    for name, value in given.items():
        if not name.startswith("kafka."):
            continue
        if name in OWNED_BY_THE_SOURCE:
            raise KafkaConfigurationError(f"{name} is set by the source: {OWNED_BY_THE_SOURCE[name]}")
        configs[name.removeprefix("kafka.").replace(".", "_")] = value
    if not configs.get("bootstrap_servers"):
        raise KafkaConfigurationError(
            "kafka.bootstrap.servers is missing: .option('kafka.bootstrap.servers', 'host:9092')"
        )
    return configs


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in OPTION_NAMES}
    for name in given:
        if name in known or name.startswith("kafka."):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"did you mean {known[near[0]]}?" if near else "see the option table of kafkacore.spark"
        raise KafkaConfigurationError(f"unknown option {name!r}: {hint}")


def _subscription(known: Mapping[str, str]) -> tuple[tuple[TopicPartition, ...], tuple[str, ...], str | None]:
    chosen = [name for name in SUBSCRIPTIONS if name in known]
    if len(chosen) != 1:
        problem = f"{' and '.join(chosen)} are given" if chosen else "none is given"
        raise KafkaConfigurationError(
            f"give exactly one of assign, subscribe and subscribePattern; {problem}"
        )
    text = known[chosen[0]].strip()
    if chosen[0] == "subscribe":
        topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not topics:
            raise KafkaConfigurationError(
                "subscribe names no topic: use a comma-separated list such as 'a,b'"
            )
        return (), topics, None
    if chosen[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise KafkaConfigurationError(
                f"subscribePattern {text!r} is no regular expression: {error}"
            ) from None
        return (), (), text
    parsed = _json_of(text, "assign", '{"topicA":[0,1],"topicB":[2]}')
    try:
        partitions = tuple(
            sorted(TopicPartition(topic, int(p)) for topic, numbers in parsed.items() for p in numbers)
        )
    except (TypeError, ValueError):
        partitions = ()
    if not partitions:
        raise KafkaConfigurationError(
            'assign must be JSON such as {"topicA":[0,1],"topicB":[2]} with a partition in it'
        )
    return partitions, (), None


def _refuse_end_of_stream(known: Mapping[str, str], streaming: bool) -> None:
    for name in BATCH_ONLY:
        if streaming and name in known:
            raise KafkaConfigurationError(f"{name} is for spark.read; a stream has no end: remove the option")


def _bounds(known: Mapping[str, str], streaming: bool) -> tuple[Bound, Bound]:
    """Start and end of the read."""
    starting = _bound(known, "starting", "latest" if streaming else "earliest")
    ending = _bound(known, "ending", "latest")
    if not streaming:
        if starting.name == "latest" or LATEST_OFFSET in (starting.offsets or {}).values():
            raise KafkaConfigurationError(
                'startingOffsets of spark.read cannot be "latest" (-1): nothing would be read'
            )
        if ending.name == "earliest" or EARLIEST_OFFSET in (ending.offsets or {}).values():
            raise KafkaConfigurationError('endingOffsets cannot be "earliest" (-2): nothing would be read')
    return starting, ending


def _bound(known: Mapping[str, str], which: str, default: str) -> Bound:
    """``startingTimestamp`` beats ``startingOffsetsByTimestamp``, which beats ``startingOffsets``; so for
    ending.
    """
    if (one := known.get(f"{which}Timestamp")) is not None:
        try:
            return Bound(timestamp=int(one))
        except ValueError:
            raise KafkaConfigurationError(
                f"{which}Timestamp must be milliseconds since 1970, not {one!r}"
            ) from None
    if (each := known.get(f"{which}OffsetsByTimestamp")) is not None:
        return Bound(timestamps=parse_offsets(each, f"{which}OffsetsByTimestamp"))
    text = known.get(f"{which}Offsets", default).strip()
    if text.lower() in ("earliest", "latest"):
        return Bound(name=text.lower())
    return Bound(offsets=parse_offsets(text, f"{which}Offsets"))


def parse_offsets(text: str, option: str) -> dict[TopicPartition, int]:
    """``{"topicA":{"0":23,"1":-1}}`` → partition → number."""
    example = '{"topicA":{"0":23,"1":-1}}'
    parsed = _json_of(text, option, example)
    try:
        return {
            TopicPartition(topic, int(partition)): int(number)
            for topic, numbers in parsed.items()
            for partition, number in numbers.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise KafkaConfigurationError(f"{option} must be JSON such as {example}, not {text!r}") from None


def _json_of(text: str, option: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise KafkaConfigurationError(f"{option} must be JSON such as {example}, not {text!r}")
    return parsed


def _integer(known: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(known.get(name, default))
    except ValueError:
        raise KafkaConfigurationError(f"{name} must be a whole number, not {known[name]!r}") from None


def _positive(known: Mapping[str, str], name: str) -> int | None:
    if name not in known:
        return None
    number = _integer(known, name, 0)
    if number <= 0:
        raise KafkaConfigurationError(f"{name} must be above 0, not {number}")
    return number


def _boolean(known: Mapping[str, str], name: str, default: bool) -> bool:
    text = str(known.get(name, default)).lower()
    if text not in ("true", "false"):
        raise KafkaConfigurationError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        raise KafkaConfigurationError(
            f"maxTriggerDelay must be a duration such as '15m' or '30s', not {text!r}"
        )
    unit = match.group(2) or "ms"
    return int(match.group(1)) * (1 if unit.startswith(("ms", "milli")) else _DURATION_MS[unit[0]])
