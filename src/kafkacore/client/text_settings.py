"""Convert settings that are given as text, such as Spark options and properties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import ClientSetting, SettingType
from kafkacore.settings.texts import InvalidTextError, read_boolean, read_number, read_whole

#: Setting for which Java's clients interpret -1 as "never".
MAX_IDLE: Final = "connections_max_idle_ms"


def typed(name: str, label: str, text: str, known: Mapping[str, ClientSetting]) -> object:
    """Convert the text of a setting to the type that the client expects.

    Parameters
    ----------
    name:
        Name of the client's keyword argument.
    label:
        Name under which the user gave the setting, for the message.
    text:
        The value. The message never contains the value, because it may be a secret.
    known:
        The settings of the client. The text of any other argument is returned unchanged.

    Raises
    ------
    KafkaConfigurationError
        The text is not a valid number or boolean.
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
