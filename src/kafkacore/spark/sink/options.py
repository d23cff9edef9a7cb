"""Options of a write: strings in, one checked picklable object out.

Names and meaning are those of Spark's built-in ``kafka`` sink. Does not know: connections, columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.client.config import all_settings
from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.config import PRODUCER_SETTINGS, resolve_producer
from kafkacore.record.compression import CODECS
from kafkacore.settings import Config, SettingType, table
from kafkacore.spark.options.client_arguments import typed_arguments
from kafkacore.spark.options.java_configs import client_configs
from kafkacore.spark.options.option import spark_option
from kafkacore.spark.options.values import boolean, known_options, refuse_unknown
from kafkacore.spark.reader.options import OPTION_NAMES as SOURCE_OPTION_NAMES
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES

#: Kafka settings that the sink must own to keep its promises, and what to use instead.
OWNED_BY_THE_SINK = {
    "kafka.key.serializer": "keys are written as they are: cast them to string or binary",
    "kafka.value.serializer": "values are written as they are: cast them to string or binary",
    "kafka.interceptor.classes": "the sink has no interceptors",
    "kafka.transactional.id": "set exactly.once to true, which names the transactions itself",
}
#: Where the names of transactions and of the group that holds the progress begin.
DEFAULT_PREFIX = "kafkacore-spark-"
# fmt: off
SINK_OPTIONS: Final = table(
    spark_option("topic", SettingType.STRING,
                 documentation="Topic of all rows; wins over the column."),
    spark_option("includeHeaders", SettingType.BOOLEAN, False,
                 documentation="No effect, as in the built-in sink: a column `headers` is written."),
    spark_option("exactly.once", SettingType.BOOLEAN, False,
                 documentation="Streaming only: write in transactions, to write each row exactly once."),
    spark_option("exactly.once.prefix", SettingType.STRING, DEFAULT_PREFIX,
                 documentation="Prefix of the names of transactions and of the group that holds the "
                               "progress."),
    spark_option("exactly.once.topic", SettingType.STRING, shown_default="the option `topic`",
                 documentation="Topic under whose name the progress is kept; it must exist."),
)
# fmt: on
SINK_OPTION_NAMES: Final = tuple(SINK_OPTIONS)
#: What Spark itself hands over with a writer's options.
SET_BY_SPARK = ("checkpointLocation", "queryName", "path")

#: For a task that writes many rows and waits for the last of them: few, large requests. The user's own
#: settings win.
LOADING: Config = {
    "linger_ms": 50,
    "batch_size": 512 * 1024,
    "buffer_memory": 64 * 1024 * 1024,
    "metrics_enabled": False,
}
#: The longest that Apache Kafka allows by default (``transaction.max.timeout.ms``): the transactions of a
#: micro-batch stay open until all of its tasks have written.
TRANSACTION_TIMEOUT_MS = 900_000
#: Codecs of which ``kafka.compression.<codec>.level`` says the level, and how that says "its own".
CODECS_WITH_LEVELS = tuple(codec.name for codec in CODECS.values() if codec.levels is not None)
OWN_LEVEL = "-1"
#: Java's partitioners that choose as ours does by default.
DEFAULT_PARTITIONERS = (
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
    "org.apache.kafka.clients.producer.internals.BuiltInPartitioner",
    "org.apache.kafka.clients.producer.UniformStickyPartitioner",
)


@dataclass(frozen=True)
class SinkOptions:
    """Checked options of one write. It travels from the driver to the workers.

    Attributes
    ----------
    client_configs:
        Arguments of the producer, as texts; secrets among them, so they are never shown.
    topic:
        Where all rows go; ``None``: the column ``topic`` says it.
    exactly_once:
        Whether the tasks write in transactions, which end with the micro-batch.
    prefix:
        Of the names of transactions and of the group that holds the progress.
    marker_topic:
        With exactly once: the topic under whose name the progress is kept.
    """

    client_configs: dict[str, str] = field(repr=False)
    topic: str | None = None
    exactly_once: bool = False
    prefix: str = DEFAULT_PREFIX
    marker_topic: str = ""

    @property
    def producer_configs(self) -> Config:
        """Arguments for :class:`~kafkacore.KafkaProducer`; looks secrets up.

        Raises
        ------
        KafkaConfigurationError
            As :func:`~kafkacore.spark.options.client_arguments.typed_arguments` does. The producer refuses
            unknown names.
        """
        configs = LOADING | typed_arguments(self.client_configs, all_settings(PRODUCER_SETTINGS))
        if self.exactly_once:
            configs.setdefault("transaction_timeout_ms", TRANSACTION_TIMEOUT_MS)
        return configs


def parse_sink_options(options: Mapping[str, str], streaming: bool) -> SinkOptions:
    """Check the options of a write.

    Parameters
    ----------
    options:
        As given to ``DataFrameWriter.option``; names in any case.
    streaming:
        Whether this is ``writeStream``.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing or malformed; the message says what to change.
    """
    given = {name.lower(): value for name, value in options.items()}
    _refuse_partitioner(given.pop("kafka.partitioner.class", None))
    given = _with_compression_level(given)
    configs = client_configs(given, OWNED_BY_THE_SINK, "sink", all_settings(PRODUCER_SETTINGS))
    # Spark's own sink takes a source's options too, without effect: jobs share them.
    refuse_unknown(given, (*SINK_OPTION_NAMES, *SET_BY_SPARK, *SOURCE_OPTION_NAMES, *FORMAT_OPTION_NAMES))
    known = known_options(given, SINK_OPTION_NAMES)
    boolean(known, SINK_OPTIONS["includeHeaders"])
    topic = known["topic"].strip() if "topic" in known else None
    if topic == "":
        raise KafkaConfigurationError(
            "topic is empty: name the topic, or leave the option out for a column topic"
        )
    exactly_once = boolean(known, SINK_OPTIONS["exactly.once"])
    if exactly_once:
        _check_exactly_once(known, configs, streaming)
    parsed = SinkOptions(
        configs,
        topic,
        exactly_once,
        known.get("exactly.once.prefix", DEFAULT_PREFIX),
        known.get("exactly.once.topic", topic or "").strip(),
    )
    if exactly_once and not parsed.marker_topic:
        raise KafkaConfigurationError(
            "exactly.once keeps its progress under the name of a topic: set the option topic, or "
            "exactly.once.topic to a topic that exists"
        )
    resolve_producer(parsed.producer_configs)
    return parsed


def _with_compression_level(given: Mapping[str, str]) -> dict[str, str]:
    """Kafka has a level for each codec, and heeds that of the chosen one (KIP-390); the producer has one."""
    levels = {f"kafka.compression.{codec}.level": codec for codec in CODECS_WITH_LEVELS}
    chosen = given.get("kafka.compression.type", "").strip().lower()
    rest = {name: text for name, text in given.items() if name not in levels}
    for name, codec in levels.items():
        if codec == chosen and given.get(name, OWN_LEVEL).strip() != OWN_LEVEL:
            rest["kafka.compression.level"] = given[name]
    return rest


def _refuse_partitioner(partitioner: str | None) -> None:
    if partitioner is not None and partitioner not in DEFAULT_PARTITIONERS:
        raise KafkaConfigurationError(
            f"kafka.partitioner.class={partitioner} is Java code: leave it out for the hash of the key, or "
            "give each row a column partition"
        )


def _check_exactly_once(known: Mapping[str, str], configs: Mapping[str, str], streaming: bool) -> None:
    if not streaming:
        raise KafkaConfigurationError(
            "exactly.once needs the batch ids of a stream: leave it out of df.write, or use df.writeStream"
        )
    if configs.get("enable_idempotence", "true").lower() != "true":
        raise KafkaConfigurationError("exactly.once needs kafka.enable.idempotence: leave that option out")
    if known.get("exactly.once.prefix") == "":
        raise KafkaConfigurationError(
            "exactly.once.prefix is empty: leave it out, or give the transactions a name"
        )
