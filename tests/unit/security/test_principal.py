"""Principals and their text form."""

from __future__ import annotations

import pytest

from kafkacore.errors import IllegalArgumentError
from kafkacore.security import ANONYMOUS, KafkaPrincipal


@pytest.mark.parametrize("text", ["User:alice", "User:CN=a,O=b:c", "Group:x", "User:", "User:é"])
def test_principal_is_read_as_it_is_written(text: str) -> None:
    assert str(KafkaPrincipal.parse(text)) == text


@pytest.mark.parametrize("text", ["", "alice", ":alice"])
def test_text_without_a_type_is_no_principal(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match="as User:alice"):
        KafkaPrincipal.parse(text)


def test_anonymous_is_a_user() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert KafkaPrincipal.user("ANONYMOUS") == ANONYMOUS
