"""Rules for topic names, as in Kafka's ``Topic`` class."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.errors import InvalidTopicError
from kafkacore.structs import MAX_TOPIC_NAME_LENGTH, is_topic_name


def validate(name: str) -> None:
    """Check a topic name.

    The name becomes part of a folder name, so this check also keeps clients inside the data folder.

    Raises
    ------
    InvalidTopicError
        The name is not 1 to 249 characters of ``a-zA-Z0-9._-``, or it is ``.`` or ``..``.
    """
    if not name:
        raise InvalidTopicError("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicError(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        raise InvalidTopicError(
            f"Topic name is invalid: its length of {len(name)} exceeds the limit of {MAX_TOPIC_NAME_LENGTH}"
        )
    if not is_topic_name(name):
        raise InvalidTopicError(
            "Topic name is invalid: it contains a character other than ASCII alphanumerics, '.', '_' and '-'"
        )


def colliding(name: str, existing: Iterable[str]) -> str | None:
    """Return an existing topic that collides with ``name`` in metrics, where ``.`` and ``_`` are the same."""
    if "." not in name and "_" not in name:
        return None
    folded = name.replace(".", "_")
    return next((other for other in existing if other != name and other.replace(".", "_") == folded), None)
