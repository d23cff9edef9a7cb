"""The key of a control record."""

from __future__ import annotations

import pytest

from kafkacore.record.control import ControlRecordType, control_type


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (b"\0\0\0\0", ControlRecordType.ABORT),
        (b"\0\0\0\1", ControlRecordType.COMMIT),
        (b"\0\1\0\1 of a later version", ControlRecordType.COMMIT),
        (b"\0\0\0\2", 2),
        (b"\0\0\0", None),
        (b"", None),
        (None, None),
    ],
)
def test_type_is_read_from_the_key(key: bytes | None, kind: int | None) -> None:
    assert control_type(key) == kind
