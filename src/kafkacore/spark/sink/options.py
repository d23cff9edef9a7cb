"""The options of a write. Names and meaning are those of Spark's built-in ``kafka`` sink."""

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

#: Kafka settings that the sink sets itself, each with what the user can do instead.
OWNED_BY_THE_SINK = {
    "kafka.key.serializer": "keys are written unchanged; cast them to string or binary",
    "kafka.value.serializer": "values are written unchanged; cast them to string or binary",
    "kafka.interceptor.classes": "the sink has no interceptors",
    "kafka.transactional.id": "set exactly.once to true; the sink then chooses the transactional ids",
}
#: Default prefix of the transactional ids and of the consumer group that stores the query's progress.
DEFAULT_PREFIX = "kafkacore-spark-"
# fmt: off
SINK_OPTIONS: Final = table(
    spark_option("topic", SettingType.STRING,
                 documentation="Topic of all rows. It takes precedence over the column `topic`."),
    spark_option("includeHeaders", SettingType.BOOLEAN, False,
                 documentation="Has no effect, as in the built-in sink. A column `headers` is always "
                               "written."),
    spark_option("exactly.once", SettingType.BOOLEAN, False,
                 documentation="Whether a stream writes each row exactly once, in transactions. "
                               "Batch writes (`df.write`) do not allow it."),
    spark_option("exactly.once.prefix", SettingType.STRING, DEFAULT_PREFIX,
                 documentation="Prefix of the transactional ids and of the consumer group that stores the "
                               "progress."),
    spark_option("exactly.once.topic", SettingType.STRING, shown_default="the option `topic`",
                 documentation="Topic for which the progress is stored: the progress is the committed "
                               "offset of partition 0 of this topic. The topic must exist."),
)
# fmt: on
SINK_OPTION_NAMES: Final = tuple(SINK_OPTIONS)
#: Options that Spark itself adds to those of the user.
SET_BY_SPARK = ("checkpointLocation", "queryName", "path")

#: Producer settings for a task that writes many rows: few, large requests. Settings of the user override
#: them.
LOADING: Config = {
    "linger_ms": 50,
    "batch_size": 512 * 1024,
    "buffer_memory": 64 * 1024 * 1024,
    "metrics_enabled": False,
}
#: Default transaction timeout: the maximum that Apache Kafka allows by default
#: (``transaction.max.timeout.ms``), because transactions stay open until all tasks of a batch have written.
TRANSACTION_TIMEOUT_MS = 900_000
#: Codecs that have an option ``kafka.compression.<codec>.level``, and the value of the option that stands for
#: the codec's default level.
CODECS_WITH_LEVELS = tuple(codec.name for codec in CODECS.values() if codec.levels is not None)
OWN_LEVEL = "-1"
#: Java's partitioners that choose the same partitions as kafkacore's default partitioner.
DEFAULT_PARTITIONERS = (
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
    "org.apache.kafka.clients.producer.internals.BuiltInPartitioner",
    "org.apache.kafka.clients.producer.UniformStickyPartitioner",
)


@dataclass(frozen=True)
class SinkOptions:
    """Checked options of one write. Picklable, because the driver sends it to the workers.

    Attributes
    ----------
    client_configs:
        Arguments of the producer as text. They may contain secrets, so ``repr()`` omits them.
    topic:
        Topic of all rows; ``None`` to use the column ``topic``.
    exactly_once:
        Whether the tasks write in transactions that are committed with the micro-batch.
    prefix:
        Prefix of the transactional ids, and of the consumer group that stores the query's progress.
    marker_topic:
        Topic for which the progress is committed, with ``exactly_once``.
    """

    client_configs: dict[str, str] = field(repr=False)
    topic: str | None = None
    exactly_once: bool = False
    prefix: str = DEFAULT_PREFIX
    marker_topic: str = ""

    @property
    def producer_configs(self) -> Config:
        """Arguments for :class:`~kafkacore.KafkaProducer`, with secrets resolved.

        Raises
        ------
        KafkaConfigurationError
            See :func:`~kafkacore.spark.options.client_arguments.typed_arguments`. The producer rejects
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
        Options as given to ``DataFrameWriter.option``. Names are not case-sensitive.
    streaming:
        Whether this is ``writeStream``.

    Raises
    ------
    KafkaConfigurationError
        An option is unknown, missing or malformed. The message says what to change.
    """
    given = {name.lower(): value for name, value in options.items()}
    _refuse_partitioner(given.pop("kafka.partitioner.class", None))
    given = _with_compression_level(given)
    configs = client_configs(given, OWNED_BY_THE_SINK, "sink", all_settings(PRODUCER_SETTINGS))
    # Like Spark's own sink, ignore the options of the source, because jobs use the same options for both.
    refuse_unknown(given, (*SINK_OPTION_NAMES, *SET_BY_SPARK, *SOURCE_OPTION_NAMES, *FORMAT_OPTION_NAMES))
    known = known_options(given, SINK_OPTION_NAMES)
    boolean(known, SINK_OPTIONS["includeHeaders"])
    topic = known["topic"].strip() if "topic" in known else None
    if topic == "":
        raise KafkaConfigurationError(
            "topic is empty: set it to the name of a topic, or remove it to use a column topic"
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
            "exactly.once needs a topic for which to commit its progress: set the option topic, or set "
            "exactly.once.topic to an existing topic"
        )
    resolve_producer(parsed.producer_configs)
    return parsed


def _with_compression_level(given: Mapping[str, str]) -> dict[str, str]:
    """Replace the levels of all codecs by the level of the chosen codec.

    Kafka has one level setting per codec (KIP-390). kafkacore's producer has one level setting for all
    codecs.
    """
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
            f"kafka.partitioner.class={partitioner} is a Java class, which cannot be used here: remove it to "
            "partition by the hash of the key, or add a column partition"
        )


def _check_exactly_once(known: Mapping[str, str], configs: Mapping[str, str], streaming: bool) -> None:
    if not streaming:
        raise KafkaConfigurationError(
            "exactly.once needs the batch ids of a stream: remove it from df.write, or use df.writeStream"
        )
    if configs.get("enable_idempotence", "true").lower() != "true":
        raise KafkaConfigurationError(
            "exactly.once needs an idempotent producer: remove kafka.enable.idempotence"
        )
    if known.get("exactly.once.prefix") == "":
        raise KafkaConfigurationError(
            "exactly.once.prefix is empty: set it to a prefix for the transactional ids, or remove it"
        )
