"""Helpers to read responses, for all areas of the admin client."""

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
    """Return the error of a code, with the broker's message or, without one, with ``about``."""
    return for_code(error_code)(error_message or str(about))


def error_text(result: Result) -> str | None:
    """Return the broker's message, or the error's name if it sent none; ``None`` without an error."""
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


def member(kind: type[E], number: int) -> E:
    """Return the member with this value, or the member 0 (unknown) for a value of newer brokers."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
