"""Settings that are text, as options of Spark and files of properties have them: a client's arguments, which
have types, out.

Does not know: what a setting does, where the text is from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.text import parse_boolean

#: Their defaults are numbers, and their texts have names for some.
READ_BY_THE_CLIENT: Final = ("acks", "compression_type")
#: Its default is none.
ALSO_A_NUMBER: Final = "compression_level"
#: How Java says that a connection may be idle for ever.
MAX_IDLE: Final = "connections_max_idle_ms"


def typed(name: str, label: str, text: str, defaults: Mapping[str, Any]) -> Any:
    """A text as the argument ``name``, by the type of its default.

    Parameters
    ----------
    label:
        What the user calls it, for the message; the text is never in it.
    defaults:
        Of the client.

    Raises
    ------
    KafkaConfigurationError
        A number is not a number, or a truth is none.
    """
    default = defaults.get(name)
    if isinstance(default, bool):
        flag = parse_boolean(text, strip=False)
        if flag is None:
            raise KafkaConfigurationError(f"{label} must be true or false")
        return flag
    if name == MAX_IDLE and text == "-1":
        return math.inf
    if name == ALSO_A_NUMBER or (isinstance(default, int | float) and name not in READ_BY_THE_CLIENT):
        return _number(label, text, isinstance(default, float))
    return text


def _number(label: str, text: str, may_have_a_fraction: bool) -> float:
    try:
        return float(text) if may_have_a_fraction and not text.lstrip("-").isdecimal() else int(text)
    except ValueError:
        kind = "a number" if may_have_a_fraction else "a whole number"
        raise KafkaConfigurationError(f"{label} must be {kind}") from None
