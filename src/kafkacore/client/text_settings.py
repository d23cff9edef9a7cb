"""Settings of a client that are text, as options of Spark and files of properties have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import Setting, SettingType
from kafkacore.settings.texts import InvalidTextError, read_boolean, read_number, read_whole

#: How Java says that a connection may be idle for ever.
MAX_IDLE: Final = "connections_max_idle_ms"


def typed(name: str, label: str, text: str, known: Mapping[str, Setting]) -> object:
    """Return the argument ``name`` of a client, given as a text.

    Parameters
    ----------
    label:
        What the user calls it, for the message; the text is never in it.
    known:
        The settings of the client. The text of any other argument is returned.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a boolean is neither true nor false.
    """
    kind = known[name].type if name in known else SettingType.STRING
    if name == MAX_IDLE and text == "-1":
        return math.inf
    try:
        if kind is SettingType.BOOLEAN:
            return read_boolean(text, strip=False)
        if kind is SettingType.INT:
            return read_whole(text)
        if kind is SettingType.DOUBLE:
            number = read_number(text)
            return int(text) if text.lstrip("-").isdecimal() else number
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{label} {error}") from None
    return text
