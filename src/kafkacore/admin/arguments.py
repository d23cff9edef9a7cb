"""Check the arguments of admin calls.

Without these checks, the encoder of the request would fail on a wrong type, and its error would not name the
argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from kafkacore.admin.responses import as_member
from kafkacore.errors import IllegalArgumentError
from kafkacore.structs import EnumHelper, TopicPartition

AnyEnum = TypeVar("AnyEnum", bound=EnumHelper)
T = TypeVar("T")


def text(name: str, value: object) -> str:
    """Return ``value`` if it is a string that can be encoded as UTF-8, or raise an error."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: {value!r} is not a name; pass it as str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: {value!r} is not valid Unicode") from None
    return value


def integer(name: str, value: object) -> int:
    """Return an integer; ``True`` and ``False`` are not accepted."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: {value!r} is not an integer")
    return value


def listed(name: str, values: object, what: str = "names") -> list[Any]:
    """Return the items of an iterable that is not a string.

    Raises
    ------
    IllegalArgumentError
        ``values`` is a string, whose items would be its characters.
    TypeError
        ``values`` is not iterable.
    """
    if isinstance(values, str | bytes):
        raise IllegalArgumentError(f"{name} must be a list of {what}; pass [{values!r}]")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of {what}, not {type(values).__name__}")
    return list(values)


def names(name: str, values: object) -> list[str]:
    return [text(name, each) for each in listed(name, values)]


def integers(name: str, values: object, what: str = "numbers") -> list[int]:
    return [integer(name, each) for each in listed(name, values, what)]


def broker_ids(name: str, values: object) -> list[int]:
    return integers(name, values, "ids of brokers")


def instances(name: str, values: object, kind: type[T]) -> list[T]:
    """Return the items of an iterable, which must all be instances of ``kind``."""
    items = listed(name, values, f"{kind.__name__} objects")
    for each in items:
        if not isinstance(each, kind):
            raise TypeError(f"{name}: {each!r} is not a {kind.__name__}")
    return items


def members(name: str, values: object, kind: type[AnyEnum]) -> list[AnyEnum]:
    """Convert a list of members, names or values to members of an enumeration."""
    return [as_member(kind, each) for each in listed(name, values, f"{kind.__name__} members")]


def mapping(name: str, value: object, what: str) -> Mapping[Any, Any]:
    """Return ``value`` if it is a mapping, or raise ``TypeError``. ``what`` describes its keys and values."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of {what}, not {type(value).__name__}")
    return value


def partition(name: str, value: object) -> TopicPartition:
    """Convert any tuple of a topic and a number, such as kafka-python's, to a ``TopicPartition``."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{name}: {value!r} is not a TopicPartition")
    return TopicPartition(text(name, value[0]), integer(name, value[1]))


def partitions(name: str, values: object) -> list[TopicPartition]:
    return [partition(name, each) for each in listed(name, values, "TopicPartition objects")]


def by_partition(name: str, value: object, what: str) -> dict[TopicPartition, Any]:
    """Return a mapping whose keys are partitions. ``what`` describes its values for the error message."""
    return {partition(name, key): each for key, each in mapping(name, value, f"partitions to {what}").items()}


def numbers_by_topic(name: str, value: object) -> dict[str, list[int]]:
    """Return a mapping of topics to lists of partition numbers."""
    return {
        text(name, topic): integers(f"{name}[{topic!r}]", numbers, "partition numbers")
        for topic, numbers in mapping(name, value, "topics to partition numbers").items()
    }
