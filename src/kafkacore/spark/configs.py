"""``kafka.*`` options, which are text, in; the consumer's arguments, which have types, out.

Does not know: what an argument does, the source's own options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.secrets import resolved

#: For a worker that reads ranges of one partition. The user's own settings win. More than 4 MiB at a time
#: cost as much for a record, and memory for three answers: one that comes, one that is read, one that Spark
#: takes.
FETCHING = {
    "fetch_max_bytes": 64 * 1024 * 1024,
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
    # Nobody can see them.
    "metrics_enabled": False,
}
#: Ranges and their progress are Spark's: a worker neither joins a group nor commits.
OF_A_GROUP = ("group_id", "group_instance_id")


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> dict[str, Any]:
    """Arguments for :class:`~kafkacore.KafkaConsumer`.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a secret is not where its reference says. (Unknown names are the
        consumer's to refuse.)
    """
    typed: dict[str, Any] = {"auto_offset_reset": "none", **(FETCHING if for_fetching else {})}
    for name, text in client_configs.items():
        if for_fetching and name in OF_A_GROUP:
            continue
        default = KafkaConsumer.DEFAULT_CONFIG.get(name)
        option = f"kafka.{name.replace('_', '.')}"
        typed[name] = _typed(option, resolved(text, option).strip(), default)
    if typed.get("connections_max_idle_ms") == -1:
        # How Java says that a connection may be idle for ever.
        typed["connections_max_idle_ms"] = math.inf
    return typed


def _typed(option: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise KafkaConfigurationError(f"{option} must be true or false")
        return text.lower() == "true"
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise KafkaConfigurationError(f"{option} must be a whole number") from None
    return text
