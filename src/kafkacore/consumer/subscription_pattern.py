"""A regular expression that the broker matches against topic names (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
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

    pattern: str

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise TypeError(f"the pattern must be a str, not {type(self.pattern).__name__}")
        if not self.pattern:
            raise ValueError("the pattern must not be empty")

    def __str__(self) -> str:
        return self.pattern
