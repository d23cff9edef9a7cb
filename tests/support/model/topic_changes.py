"""Changes of topics in a broker without threads, where they complete immediately."""

from __future__ import annotations

from kafkacore.broker.topics.topic_catalog import TopicCatalog


def delete_topic(topics: TopicCatalog, name: str) -> None:
    """Delete a topic, or raise the error."""
    outcomes: list[object] = []
    topics.delete_soon(name, outcomes.append)
    _check(outcomes)


def grow_topic(topics: TopicCatalog, name: str, partition_count: int) -> None:
    """Add partitions to a topic, or raise the error."""
    outcomes: list[object] = []
    topics.grow_soon(name, partition_count, outcomes.append)
    _check(outcomes)


def _check(outcomes: list[object]) -> None:
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
