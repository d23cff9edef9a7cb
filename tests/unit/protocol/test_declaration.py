"""The language of the message declarations."""

from __future__ import annotations

import pytest

from kafkacore.protocol.schema.declaration import (
    ALL_VERSIONS,
    NO_VERSIONS,
    DeclarationError,
    Field,
    Message,
    Versions,
    api,
    message,
)


def declared(table: str) -> Message:
    return message("Thing", table, versions="0-4", flexible="2+")


def test_line_is_a_field_with_its_marks() -> None:
    found = declared(
        """
        Plain     int32
        Late      string?    2+    = null ignorable   # why
        Half      []int8?3+  1-3
        Tagged    int64      2+    = -1 tag 4
        Key       uuid             key
        Blob      bytes            zero-copy inflexible
        """
    )
    assert found.fields == (
        Field("Plain", "int32"),
        Field(
            "Late", "string", versions=Versions(2, 0x7FFF), nullable=Versions(2, 0x7FFF), default="null",
            ignorable=True,
        ),
        Field("Half", "int8", is_array=True, versions=Versions(1, 3), nullable=Versions(3, 0x7FFF)),
        Field("Tagged", "int64", versions=Versions(2, 0x7FFF), default="-1", tag=4),
        Field("Key", "uuid", key=True),
        Field("Blob", "bytes", zero_copy=True, inflexible=True),
    )  # fmt: skip


def test_indented_lines_are_the_fields_of_a_structure() -> None:
    found = declared(
        """
        Outers      []Outer   1+
          Inner     Inner     2+
            Number  int8
          After     int8
        Last        Shared
        struct Shared
          Name      string
        """
    )
    assert [field.name for field in found.fields] == ["Outers", "Last"]
    assert {name: [field.name for field in struct.fields] for name, struct in found.structs.items()} == {
        "Outer": ["Inner", "After"],
        "Inner": ["Number"],
        "Shared": ["Name"],
    }
    assert found.structs["Inner"].versions == Versions(2, 4)
    assert found.structs["Shared"].is_common


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("A", "invalid field: A"),
        ("A int32 sometimes", "'sometimes' in: A int32 sometimes"),
        ("A int32 1-x", "invalid range of versions"),
        ("A Missing", "undeclared type Missing"),
        ("A int32\n  B int32", "declared twice or has the name of a primitive"),
        ("A S\n  B int8\nC S\n  D int8", "declared twice"),
        ("  A int32\nB int32", "unexpected indent"),
    ],
)
def test_line_that_cannot_be_read_is_named(table: str, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        declared(table)


def test_versions_intersect() -> None:
    assert Versions.parse("2-5") & Versions.parse("4+") == Versions(4, 5)
    assert Versions.parse("2-3") & Versions.parse("4+") == NO_VERSIONS
    assert list(Versions.parse("none")) == []
    assert 3 in Versions.parse("3")
    assert 4 not in Versions.parse("3")
    assert 0 in ALL_VERSIONS


def test_api_has_a_request_and_a_response_of_the_same_versions() -> None:
    made = api(1, "Ask", "Ask.", versions="2-3", flexible="3+", request="A int8", response="B int8")
    assert [one.name for one in made.messages] == ["AskRequest", "AskResponse"]
    assert {one.versions for one in made.messages} == {Versions(2, 3)}
    assert api(2, "Gone", "Gone.", versions="none").messages == ()
