"""What a topic may be called: a name in, nothing or an error out. Source: Kafka's ``Topic`` class."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.errors import InvalidTopicError
from kafkacore.structs import MAX_TOPIC_NAME_LENGTH, is_topic_name


def validate(name: str) -> None:
    """:class:`InvalidTopicError` unless ``name`` is 1 to 249 of ``a-zA-Z0-9._-`` and not ``.`` or ``..``.

    A topic's name becomes a folder's name, so this is also what keeps a client inside the data folder.
    """
    if not name:
        raise InvalidTopicError("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicError(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        raise InvalidTopicError(
            f"Topic name is invalid: the length of {len(name)} is over the limit of {MAX_TOPIC_NAME_LENGTH}"
        )
    if not is_topic_name(name):
        raise InvalidTopicError(
            "Topic name is invalid: it has a character other than ASCII alphanumerics, '.', '_' and '-'"
        )


def colliding(name: str, existing: Iterable[str]) -> str | None:
    """An existing topic whose name differs only in ``.`` and ``_``, which metrics cannot tell apart."""
    if "." not in name and "_" not in name:
        return None
    folded = name.replace(".", "_")
    return next((other for other in existing if other != name and other.replace(".", "_") == folded), None)
