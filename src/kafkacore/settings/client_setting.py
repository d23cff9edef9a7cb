"""The definition of a setting of a client, which is a keyword argument, and of its check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kafkacore.settings.tables import SettingType

T_co = TypeVar("T_co", covariant=True)


# Not a dataclass: dataclasses imports inspect, which takes as long as a tenth of the import of a client.
class Check(Generic[T_co]):
    """A check of the value of a keyword argument.

    Parameters
    ----------
    apply:
        Function ``(name, value)`` that returns the value to use, or raises
        :class:`~kafkacore.errors.KafkaConfigurationError`.
    annotation:
        The type of the argument in a signature.
    allowed:
        Description of the valid values, for the documentation. It is empty if the annotation is enough.
    type:
        The type of the setting. ``None`` for a number: the type of the default then determines whether the
        number is an integer or a float.
    """

    __slots__ = ("_apply", "allowed", "annotation", "type")

    def __init__(
        self,
        apply: Callable[[str, object], T_co],
        annotation: str,
        allowed: str = "",
        type: SettingType | None = SettingType.STRING,  # noqa: A002
    ) -> None:
        self._apply = apply
        self.annotation = annotation
        self.allowed = allowed
        self.type = type

    def __call__(self, name: str, value: object) -> T_co:
        return self._apply(name, value)


class ClientSetting(NamedTuple):
    """One setting of a client.

    Attributes
    ----------
    name:
        Name of the keyword argument, such as ``linger_ms``.
    default:
        The value if the user gives none. The default is not checked.
    documentation:
        One or two sentences on the setting, which the reference shows.
    check:
        The check of the value.
    """

    name: str
    type: SettingType
    default: object
    documentation: str
    check: Check[object]

    @property
    def is_secret(self) -> bool:
        """Whether messages and logs must not show the value."""
        return self.type is SettingType.PASSWORD
