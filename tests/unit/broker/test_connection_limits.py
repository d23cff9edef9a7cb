"""Limits of connections: in total, per address, per listener and per second."""

from __future__ import annotations

from kafkacore.broker.listeners.connection_limits import ConnectionLimits, ConnectionRate, ListenerLimit

ANY = ListenerLimit("PLAINTEXT")


def test_total_counts_every_address_and_what_has_ended_is_free_again() -> None:
    limits = ConnectionLimits(2, 10)
    assert [limits.admit("a", ANY), limits.admit("b", ANY)] == [None, None]
    assert limits.admit("c", ANY) == "the limit of 2 connections is reached (max.connections)"
    limits.release("a", ANY)
    assert limits.admit("c", ANY) is None


def test_override_of_an_address_counts_instead_of_the_limit_of_all() -> None:
    limits = ConnectionLimits(100, 1, {"a": 2, "b": 0})
    assert [limits.admit("a", ANY), limits.admit("a", ANY), limits.admit("c", ANY)] == [None, None, None]
    assert limits.admit("a", ANY) == "the limit of 2 connections from a is reached (max.connections.per.ip)"
    assert limits.admit("b", ANY) == "the limit of 0 connections from b is reached (max.connections.per.ip)"
    assert limits.admit("c", ANY) == "the limit of 1 connections from c is reached (max.connections.per.ip)"


def test_limit_of_a_listener_counts_its_own_connections() -> None:
    limits, inside, outside = ConnectionLimits(100, 100), ListenerLimit("INSIDE"), ListenerLimit("OUTSIDE", 1)
    assert [limits.admit("a", inside), limits.admit("a", inside), limits.admit("a", outside)] == [None] * 3
    assert limits.admit("b", outside) == (
        "the limit of 1 connections of listener OUTSIDE is reached (max.connections)"
    )
    limits.release("a", outside)
    assert limits.admit("b", outside) is None


def test_rate_lets_a_seconds_worth_in_at_once_and_then_one_by_one() -> None:
    rate = ConnectionRate(10)
    assert [rate.count(5_000.0) for _ in range(11)] == [0.0] * 9 + [100.0, 200.0]
    assert rate.count(5_200.0) == 100.0
    assert [rate.count(60_000.0) for _ in range(9)] == [0.0] * 9


def test_rate_of_nothing_waits_a_second_after_each() -> None:
    assert ConnectionRate(0).count(1_000.0) == 1_000.0
