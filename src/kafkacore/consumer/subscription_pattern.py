"""A regular expression that the broker matches against topic names (KIP-848)."""

from __future__ import annotations


class SubscriptionPattern:
    """A regular expression in RE2 syntax, for a subscription that the broker resolves.

    Pass it to :meth:`KafkaConsumer.subscribe` as ``pattern``. If you pass a ``str`` or a compiled pattern
    instead, the consumer matches the topics.

    Parameters
    ----------
    pattern:
        Regular expression that must match the whole name of a topic. The broker checks the expression. If the
        expression is invalid, :meth:`poll <KafkaConsumer.poll>` raises ``InvalidRegularExpressionError``.

    Raises
    ------
    TypeError
        If ``pattern`` is not a ``str``.
    ValueError
        If ``pattern`` is empty.

    Notes
    -----
    This is Java's ``org.apache.kafka.clients.consumer.SubscriptionPattern``. This class needs the setting
    ``group_protocol="consumer"`` and Apache Kafka 4.0 or newer.
    """

    __slots__ = ("_pattern",)

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise TypeError(f"the pattern must be a str, not {type(pattern).__name__}")
        if not pattern:
            raise ValueError("the pattern must not be empty")
        self._pattern = pattern

    @property
    def pattern(self) -> str:
        """The regular expression."""
        return self._pattern

    def __eq__(self, other: object) -> bool:
        return self._pattern == other._pattern if isinstance(other, SubscriptionPattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pattern)

    def __repr__(self) -> str:
        return f"SubscriptionPattern({self._pattern!r})"

    def __str__(self) -> str:
        return self._pattern
