"""Changes of topics in a broker without threads, where they are over at once."""

from __future__ import annotations

from kafkacore.broker.topics.topic_catalog import TopicCatalog


def delete_topic(topics: TopicCatalog, name: str) -> None:
    """Remove a topic; raises what speaks against it."""
    outcomes: list[object] = []
    topics.delete_soon(name, outcomes.append)
    _check(outcomes)


def grow_topic(topics: TopicCatalog, name: str, partition_count: int) -> None:
    """Give a topic more partitions; raises what speaks against it."""
    outcomes: list[object] = []
    topics.grow_soon(name, partition_count, outcomes.append)
    _check(outcomes)


def _check(outcomes: list[object]) -> None:
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
