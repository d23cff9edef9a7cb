"""Helpers to read responses, for all areas of the admin client."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from kafkacore.access_control import ACLOperation
from kafkacore.errors import BrokerResponseError, IllegalArgumentError, MalformedMessageError, for_code
from kafkacore.structs import EnumHelper, TopicPartition

#: Value of the field for allowed operations if the broker did not set it.
OMITTED_OPERATIONS: Final = -(2**31)

AnyEnum = TypeVar("AnyEnum", bound=EnumHelper)
A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=IntEnum)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Result(Protocol):
    """The part of a response that reports the outcome for one entity."""

    error_code: int
    error_message: str | None


def error_of(error_code: int, error_message: str | None, about: object) -> BrokerResponseError:
    """Return the error for a code, with the broker's message, or with ``about`` if it sent no message."""
    return for_code(error_code)(error_message or str(about))


def error_text(result: Result) -> str | None:
    """Return the broker's message, or the error's name if the message is empty; ``None`` for no error."""
    if not result.error_code:
        return None
    return result.error_message or for_code(result.error_code).__name__


def paired(requested: Sequence[A], results: Sequence[B]) -> list[tuple[A, B]]:
    """Return each item of a request with its result. Both sequences have the same order.

    Raises
    ------
    MalformedMessageError
        The response has more or fewer results than the request has items.
    """
    if len(requested) != len(results):
        raise MalformedMessageError(
            f"the response has {len(results)} results for {len(requested)} items of the request"
        )
    return list(zip(requested, results, strict=True))


def complete(results: Mapping[K, V], wanted: Iterable[K]) -> dict[K, V]:
    """Return the outcomes of the wanted items only, in the order of ``wanted``.

    Raises
    ------
    MalformedMessageError
        The response leaves out an item.
    """
    found: dict[K, V] = {}
    for key in wanted:
        if key not in results:
            raise MalformedMessageError(f"the result of {key!r} is missing from the response")
        found[key] = results[key]
    return found


def member(kind: type[E], number: int) -> E:
    """Return the member with this value, or member 0 (unknown) for a value that only newer brokers know."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def operations(bits: int) -> list[str] | None:
    """Return the names of the operations in a bit field (KIP-430); ``None`` for an unset field."""
    if bits == OMITTED_OPERATIONS:
        return None
    return [each.name for each in ACLOperation if each > ACLOperation.ALL and bits >> each & 1]


def as_member(kind: type[AnyEnum], value: object) -> AnyEnum:
    """Return the member of an enumeration, given as a member, a value or a case-insensitive name.

    Raises
    ------
    IllegalArgumentError
        The enumeration has no such member.
    """
    try:
        return kind.build_from(value)
    except ValueError as error:
        raise IllegalArgumentError(str(error)) from None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
