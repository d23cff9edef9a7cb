"""Convert ``kafka.*`` options, which are text, to typed arguments of kafkacore's clients."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.client.config import all_settings
from kafkacore.client.text_settings import typed
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.security.settings import SECRET_SETTINGS
from kafkacore.settings import ClientSetting, Config
from kafkacore.spark.options.java_configs import is_of_security, option_name, secure_arguments
from kafkacore.spark.secrets import resolved

#: Consumer settings for a worker that reads ranges of one partition. Settings of the user override them.
#: A larger fetch size per partition does not reduce the cost per record. It takes memory for three responses:
#: the response in flight, the response that is being decoded, and the response that Spark is reading.
FETCHING = {
    "fetch_max_bytes": 64 * 1024 * 1024,
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
    # The metrics of a client in a worker are not accessible.
    "metrics_enabled": False,
}


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> Config:
    """Return the arguments for :class:`~kafkacore.KafkaConsumer`.

    Unknown names are not checked here; the consumer rejects them.

    Parameters
    ----------
    client_configs:
        Text values by argument name.
    for_fetching:
        Whether to add the settings :data:`FETCHING` of a worker.

    Raises
    ------
    KafkaConfigurationError
        The text of a number cannot be parsed, or a referenced secret does not exist.
    """
    # With bootstrap_timeout_ms=0, the constructor does not wait for a broker. The first call that needs a
    # broker waits instead, and its error names the operation that failed.
    ours = {
        "auto_offset_reset": "none",
        "bootstrap_timeout_ms": 0,
        **(FETCHING if for_fetching else {}),
    }
    return ours | typed_arguments(client_configs, all_settings(CONSUMER_SETTINGS))


def typed_arguments(client_configs: Mapping[str, str], known: Mapping[str, ClientSetting]) -> Config:
    """Convert text values to arguments of a client: resolve secrets, and parse numbers and booleans.

    Parameters
    ----------
    client_configs:
        Text values by argument name.
    known:
        The settings of the client.

    Raises
    ------
    KafkaConfigurationError
        The text of a number or a boolean cannot be parsed, or a referenced secret does not exist.
    """
    arguments = {
        n: resolved(text, option_name(n)) for n, text in client_configs.items() if not is_of_security(n)
    }
    arguments |= secure_arguments(client_configs, resolved)
    return {
        # A token provider is an object, not text.
        name: typed(name, option_name(name), value if name in SECRET_SETTINGS else value.strip(), known)
        if isinstance(value, str)
        else value
        for name, value in arguments.items()
    }
