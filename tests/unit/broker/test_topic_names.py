"""Topic names: Kafka's rules, which also keep a client inside the data folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.config import topic_names
from kafkacore.errors import InvalidTopicError

LEGAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", ".hidden", "-"])
def test_legal_name_is_accepted(name: str) -> None:
    topic_names.validate(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "a/b", "a\\b", "a b", "a\0", "a\n", "ä", "a:b", "../../etc/passwd", "٣"],
)
def test_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopicError):
        topic_names.validate(name)


@given(st.text(max_size=300))
def test_name_is_accepted_exactly_if_every_rule_holds(name: str) -> None:
    legal = 0 < len(name) <= 249 and name not in (".", "..") and set(name) <= set(LEGAL)
    if legal:
        topic_names.validate(name)
    else:
        with pytest.raises(InvalidTopicError):
            topic_names.validate(name)


def test_names_that_differ_in_dot_and_underscore_collide() -> None:
    assert topic_names.colliding("a.b", ["x", "a_b"]) == "a_b"
    assert topic_names.colliding("a_b", ["a.b"]) == "a.b"
    assert topic_names.colliding("a.b", ["a.b", "a-b"]) is None
    assert topic_names.colliding("ab", ["a.b"]) is None
