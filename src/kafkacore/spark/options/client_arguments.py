"""``kafka.*`` options, which are text, in; a client's arguments, which have types, out.

Does not know: what an argument does, the options of source and sink themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.client.text_settings import typed
from kafkacore.consumer import KafkaConsumer
from kafkacore.security.references import SECRET_SETTINGS
from kafkacore.spark.options.java_configs import is_of_security, option_name, secure_arguments
from kafkacore.spark.secrets import resolved

#: Of a client, by name. What a value is depends on the argument.
ClientArguments = dict[str, Any]

#: For a worker that reads ranges of one partition. The user's own settings win. More than 4 MiB at a time
#: cost as much for a record, and memory for three answers: one that comes, one that is read, one that Spark
#: takes.
FETCHING = {
    "fetch_max_bytes": 64 * 1024 * 1024,
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
    # Nobody can see them.
    "metrics_enabled": False,
}


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> ClientArguments:
    """Arguments for :class:`~kafkacore.KafkaConsumer`.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a secret is not where its reference says. (Unknown names are the
        consumer's to refuse.)
    """
    ours = {"auto_offset_reset": "none", **(FETCHING if for_fetching else {})}
    return ours | typed_arguments(client_configs, KafkaConsumer.DEFAULT_CONFIG)


def typed_arguments(client_configs: Mapping[str, str], defaults: Mapping[str, object]) -> ClientArguments:
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
    arguments = {
        n: resolved(text, option_name(n)) for n, text in client_configs.items() if not is_of_security(n)
    }
    arguments |= secure_arguments(client_configs, resolved)
    return {
        # A provider of tokens is no text.
        name: typed(name, option_name(name), value if name in SECRET_SETTINGS else value.strip(), defaults)
        if isinstance(value, str)
        else value
        for name, value in arguments.items()
    }
