"""``kafka.*`` options, which are text, in; a client's arguments, which have types, out.

Does not know: what an argument does, the options of source and sink themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.java_configs import option_name
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
#: Their defaults are numbers, and their texts have names for some.
READ_BY_THE_CLIENT = ("acks", "compression_type")
#: Its default is none.
ALSO_A_NUMBER = "compression_level"


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> dict[str, Any]:
    """Arguments for :class:`~kafkacore.KafkaConsumer`.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a secret is not where its reference says. (Unknown names are the
        consumer's to refuse.)
    """
    ours = {"auto_offset_reset": "none", **(FETCHING if for_fetching else {})}
    return ours | typed_arguments(client_configs, KafkaConsumer.DEFAULT_CONFIG)


def typed_arguments(client_configs: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Texts as what a client takes: secrets looked up, numbers and truths by the type of their defaults.

    Parameters
    ----------
    client_configs:
        By the client's own names of arguments.
    defaults:
        Of the client.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, a truth is none, or a secret is not where its reference says.
    """
    typed = {}
    for name, text in client_configs.items():
        option = option_name(name)
        typed[name] = _typed(name, option, resolved(text, option).strip(), defaults.get(name))
    if typed.get("connections_max_idle_ms") == -1:
        # How Java says that a connection may be idle for ever.
        typed["connections_max_idle_ms"] = math.inf
    return typed


def _typed(name: str, option: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise KafkaConfigurationError(f"{option} must be true or false")
        return text.lower() == "true"
    if name == ALSO_A_NUMBER or (isinstance(default, int | float) and name not in READ_BY_THE_CLIENT):
        try:
            return int(text)
        except ValueError:
            raise KafkaConfigurationError(f"{option} must be a whole number") from None
    return text
