"""``kafka.*`` options, which are text, in; the consumer's arguments, which have types, out.

Does not know: what an argument does, the source's own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError

#: For a worker that reads long ranges: fewer, larger answers. The user's own settings win.
FETCHING = {
    "fetch_max_bytes": 64 * 1024 * 1024,
    "max_partition_fetch_bytes": 16 * 1024 * 1024,
}


def consumer_configs(client_configs: Mapping[str, str], for_fetching: bool = False) -> dict[str, Any]:
    """Arguments for :class:`~kafkacore.KafkaConsumer`.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number. (Unknown names are the consumer's to refuse.)
    """
    typed: dict[str, Any] = {"auto_offset_reset": "none", **(FETCHING if for_fetching else {})}
    for name, text in client_configs.items():
        default = KafkaConsumer.DEFAULT_CONFIG.get(name)
        typed[name] = _typed(name, text, default)
    return typed


def _typed(name: str, text: str, default: object) -> object:
    option = f"kafka.{name.replace('_', '.')}"
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise KafkaConfigurationError(f"{option} must be true or false, not {text!r}")
        return text.lower() == "true"
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise KafkaConfigurationError(f"{option} must be a whole number, not {text!r}") from None
    return text
