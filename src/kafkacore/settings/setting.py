"""The definition of a setting of the broker, a topic, a group, a listener or Spark."""

from __future__ import annotations

from dataclasses import dataclass

from kafkacore.settings.tables import SettingType


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is given as text: a property of the broker or an option of Spark.

    Parameters
    ----------
    name:
        The name as a user writes it, such as ``log.segment.bytes``.
    default:
        The value if the user gives none. The default is not checked. If the values of a component are texts,
        such as those of a topic, the default is a text too.
    documentation:
        One or two sentences on the setting, which DescribeConfigs and the reference show.
    low, high:
        Limits of a number, both included.
    exception:
        A number that is valid although it is outside the limits.
    choices:
        The valid texts, or the valid parts of a list.
    is_dynamic:
        Whether AlterConfigs can change the setting while the broker runs.
    """

    name: str
    type: SettingType
    default: object = None
    documentation: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    exception: int | None = None
    is_dynamic: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether messages, logs and responses must not show the value."""
        return self.type is SettingType.PASSWORD
