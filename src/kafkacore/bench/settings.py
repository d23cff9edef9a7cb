"""Settings of each client in a benchmark, under the client's own names.

The profile ``tuned`` sets all clients for throughput, with the same values. The profile ``default`` leaves
each client at its defaults, except for the settings that the user chose.
"""

from __future__ import annotations

from kafkacore.bench.options import BenchOptions
from kafkacore.bench.task import ClientSettings

TUNED_BATCH_BYTES = 1_000_000
TUNED_LINGER_MS = 5
TUNED_BUFFER_BYTES = 128 << 20
TUNED_POLL_RECORDS = 10_000
TUNED_PARTITION_FETCH_BYTES = 4 << 20
#: Maximum time that the broker waits for records. It is short, so that a fetch that is still waiting at the
#: end of the warm-up does not delay the measurement.
TUNED_FETCH_WAIT_MS = 20
DEFAULT_POLL_RECORDS = 500

#: Option of the benchmark → name of the setting in kafkacore and kafka-python.
_SNAKE = {
    "bootstrap": "bootstrap_servers",
    "acks": "acks",
    "codec": "compression_type",
    "batch_size": "batch_size",
    "linger_ms": "linger_ms",
    "buffer_bytes": "buffer_memory",
}
_DOTTED = {
    "bootstrap": "bootstrap.servers",
    "acks": "acks",
    "codec": "compression.type",
    "batch_size": "batch.size",
    "linger_ms": "linger.ms",
}
_PRODUCER_NAMES: dict[str, dict[str, str]] = {
    "kafkacore": _SNAKE,
    # kafka-python has had no memory limit since version 3.0.
    "kafka-python": {name: own for name, own in _SNAKE.items() if name != "buffer_bytes"},
    "aiokafka": {name: own for name, own in _SNAKE.items() if name != "buffer_bytes"}
    | {"batch_size": "max_batch_size"},
    "confluent": _DOTTED,
    "java": _DOTTED | {"buffer_bytes": "buffer.memory"},
}
#: Further settings of single clients in the profile ``tuned``.
_PRODUCER_OWN: dict[str, ClientSettings] = {
    # Keep the default buffer, which is enough. A larger buffer exceeds the CPU caches and is slower.
    "kafkacore": {"buffer_memory": 32 << 20},
    "kafka-python": {"enable_idempotence": False},
    # Raise librdkafka's other limits. Otherwise these limits would take effect before the batch size and the
    # buffer.
    "confluent": {
        "batch.num.messages": 1_000_000,
        "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": TUNED_BUFFER_BYTES >> 10,
    },
    "java": {"enable.idempotence": False},
}
_SNAKE_CONSUMER = {
    "max_poll_records": TUNED_POLL_RECORDS,
    "fetch_max_wait_ms": TUNED_FETCH_WAIT_MS,
    "max_partition_fetch_bytes": TUNED_PARTITION_FETCH_BYTES,
}
_CONSUMER_TUNED: dict[str, ClientSettings] = {
    "kafkacore": _SNAKE_CONSUMER,
    "kafka-python": _SNAKE_CONSUMER,
    "aiokafka": _SNAKE_CONSUMER,
    "confluent": {
        "fetch.wait.max.ms": TUNED_FETCH_WAIT_MS,
        "queued.min.messages": 1_000_000,
        # With the default, the client stops fetching for a second whenever its queue is full.
        "fetch.queue.backoff.ms": 10,
        "max.partition.fetch.bytes": TUNED_PARTITION_FETCH_BYTES,
    },
    "java": {
        "max.poll.records": TUNED_POLL_RECORDS,
        "fetch.max.wait.ms": TUNED_FETCH_WAIT_MS,
        "max.partition.fetch.bytes": TUNED_PARTITION_FETCH_BYTES,
    },
}
_CONSUMER_ALWAYS: dict[str, ClientSettings] = {
    "kafkacore": {"auto_offset_reset": "earliest"},
    "kafka-python": {"auto_offset_reset": "earliest", "group_id": None, "enable_auto_commit": False},
    "aiokafka": {"auto_offset_reset": "earliest", "enable_auto_commit": False},
    # confluent-kafka requires a group id, but does not send it because the consumer uses assign() and does
    # not commit.
    "confluent": {
        "auto.offset.reset": "earliest",
        "group.id": "kafkacore-bench",
        "enable.auto.commit": False,
    },
    "java": {"auto.offset.reset": "earliest", "enable.auto.commit": False},
}


def client_of(peer: str) -> str:
    """Return the client of a peer: ``kafkacore`` for ``kafkacore-arrow``."""
    return peer.removesuffix("-arrow")


def producer_settings(peer: str, options: BenchOptions, bootstrap: str, codec: str) -> ClientSettings:
    """Return the settings of a producer under the client's own names."""
    client = client_of(peer)
    tuned = options.profile == "tuned"
    wanted: ClientSettings = {
        "bootstrap": bootstrap,
        "acks": options.acks or ("1" if tuned else None),
        "codec": None if codec == "none" and client in ("kafkacore", "kafka-python", "aiokafka") else codec,
        "batch_size": options.batch_size or (TUNED_BATCH_BYTES if tuned else None),
        "linger_ms": (TUNED_LINGER_MS if tuned else None) if options.linger_ms is None else options.linger_ms,
        "buffer_bytes": TUNED_BUFFER_BYTES if tuned else None,
    }
    names = _PRODUCER_NAMES[client]
    settings = {names[name]: value for name, value in wanted.items() if value is not None and name in names}
    if "acks" in settings and client not in ("confluent", "java") and settings["acks"] != "all":
        settings["acks"] = int(settings["acks"])
    if client in ("kafka-python", "java") and names["linger_ms"] in settings:
        settings[names["linger_ms"]] = int(settings[names["linger_ms"]])
    return settings | (_PRODUCER_OWN.get(client, {}) if tuned else {})


def consumer_settings(
    peer: str, options: BenchOptions, bootstrap: str, group: str | None = None
) -> ClientSettings:
    """Return the settings of a consumer under the client's own names.

    With a ``group``, the consumer is a member with automatic commits.
    """
    client = client_of(peer)
    name = "bootstrap.servers" if client in ("confluent", "java") else "bootstrap_servers"
    tuned = _CONSUMER_TUNED[client] if options.profile == "tuned" else {}
    settings: ClientSettings = {name: bootstrap} | _CONSUMER_ALWAYS[client] | tuned
    if group is not None:
        settings |= (
            {"group.id": group, "enable.auto.commit": True}
            if client == "confluent"
            else {"group_id": group, "enable_auto_commit": True}
        )
    return settings


def poll_records(options: BenchOptions) -> int:
    """Return the maximum number of records per call, for clients that take it as an argument."""
    return TUNED_POLL_RECORDS if options.profile == "tuned" else DEFAULT_POLL_RECORDS
