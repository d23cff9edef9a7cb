"""Description of one option of a Spark source or sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kafkacore.settings import SettingType
from kafkacore.settings.setting import Setting


@dataclass(frozen=True, slots=True)
class SparkOption(Setting):
    """One option of a source or of the sink.

    Parameters
    ----------
    scope:
        Kind of read that the option applies to: batch or stream. Empty for both.
    shown_default:
        Text for the default in the documentation, if the default is not a constant.
    """

    scope: Literal["", "batch", "stream"] = ""
    shown_default: str = ""


def spark_option(
    name: str,
    kind: SettingType,
    default: object = None,
    *,
    documentation: str,
    low: float | None = None,
    choices: tuple[str, ...] = (),
    scope: Literal["", "batch", "stream"] = "",
    shown_default: str = "",
) -> SparkOption:
    return SparkOption(
        name, kind, default, documentation, low, choices=choices, scope=scope, shown_default=shown_default
    )
