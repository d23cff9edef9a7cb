"""How many connections there may be, together and from one address."""

from __future__ import annotations

from kafkacore.broker.connection_limits import ConnectionLimits


def test_total_counts_every_address_and_what_has_ended_is_free_again() -> None:
    limits = ConnectionLimits(2, 10)
    assert [limits.admit("a"), limits.admit("b")] == [None, None]
    assert limits.admit("c") == "2 connections is the limit (max.connections)"
    limits.release("a")
    assert limits.admit("c") is None


def test_override_of_an_address_counts_instead_of_the_limit_of_all() -> None:
    limits = ConnectionLimits(100, 1, {"a": 2, "b": 0})
    assert [limits.admit("a"), limits.admit("a"), limits.admit("c")] == [None, None, None]
    assert limits.admit("a") == "2 connections from a is the limit (max.connections.per.ip)"
    assert limits.admit("b") == "0 connections from b is the limit (max.connections.per.ip)"
    assert limits.admit("c") == "1 connections from c is the limit (max.connections.per.ip)"
