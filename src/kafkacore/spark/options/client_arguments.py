"""``kafka.*`` options, which are text, in; a client's arguments, which have types, out.

Does not know: what an argument does, the options of source and sink themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.client.config import all_settings
from kafkacore.client.text_settings import typed
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.security.settings import SECRET_SETTINGS
from kafkacore.settings import Config, Setting
from kafkacore.spark.options.java_configs import is_of_security, option_name, secure_arguments
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


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> Config:
    """Arguments for :class:`~kafkacore.KafkaConsumer`.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a secret is not where its reference says. (Unknown names are the
        consumer's to refuse.)
    """
    ours = {"auto_offset_reset": "none", **(FETCHING if for_fetching else {})}
    return ours | typed_arguments(client_configs, all_settings(CONSUMER_SETTINGS))


def typed_arguments(client_configs: Mapping[str, str], known: Mapping[str, Setting]) -> Config:
    """Return texts as the arguments of a client: secrets are looked up, numbers and booleans parsed.

    Parameters
    ----------
    client_configs:
        By the client's own names of arguments.
    known:
        The settings of the client.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, a boolean is neither true nor false, or a secret is not where its reference
        says.
    """
    arguments = {
        n: resolved(text, option_name(n)) for n, text in client_configs.items() if not is_of_security(n)
    }
    arguments |= secure_arguments(client_configs, resolved)
    return {
        # A provider of tokens is no text.
        name: typed(name, option_name(name), value if name in SECRET_SETTINGS else value.strip(), known)
        if isinstance(value, str)
        else value
        for name, value in arguments.items()
    }
