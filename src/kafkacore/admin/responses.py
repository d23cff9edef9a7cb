"""Helpers that every area of the admin client uses to read a response."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol, TypeVar

from kafkacore.errors import BrokerResponseError, MalformedMessageError, for_code

A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=IntEnum)


class Result(Protocol):
    """The part of a response that reports the outcome for one entity."""

    error_code: int
    error_message: str | None


def error_of(error_code: int, error_message: str | None, about: object) -> BrokerResponseError:
    """What a broker says of ``about``, in its own words if it has any."""
    return for_code(error_code)(error_message or str(about))


def error_text(result: Result) -> str | None:
    """Return the broker's message, or the error's name if it sent none; ``None`` without an error."""
    if not result.error_code:
        return None
    return result.error_message or for_code(result.error_code).__name__


def paired(asked: Sequence[A], answered: Sequence[B]) -> list[tuple[A, B]]:
    """What was asked, each with its answer; both are in the same order.

    Raises
    ------
    MalformedMessageError
        There are more answers or fewer.
    """
    if len(asked) != len(answered):
        raise MalformedMessageError(f"{len(asked)} were asked for, and {len(answered)} answered")
    return list(zip(asked, answered, strict=True))


def member(kind: type[E], number: int) -> E:
    """The member of this number; 0, which is unknown everywhere, for one that newer brokers have."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
