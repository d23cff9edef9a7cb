"""Every request and response of every version, written by Kafka's generated classes and read by ours.

These tests compare the bytes. The drift test compares the names of fields.
"""

from __future__ import annotations

import pytest
from model.golden_messages import GoldenMessage, golden_messages

from kafkacore.protocol import API_REGISTRY, ApiKey, Message
from kafkacore.wire import Cursor, Writer

MESSAGES = list(golden_messages())


def message_class(golden: GoldenMessage) -> type[Message]:
    request, response = API_REGISTRY[ApiKey(golden.api_key)]
    return request if golden.kind == "request" else response


def written(message: Message, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return b"".join(writer.pieces())


@pytest.mark.parametrize("api_key", sorted({golden.api_key for golden in MESSAGES}))
def test_message_written_by_java_is_read_to_its_end_and_written_alike(api_key: int) -> None:
    differing = []
    for golden in (golden for golden in MESSAGES if golden.api_key == api_key):
        cursor = Cursor(golden.content)
        message = message_class(golden).decode(cursor, golden.version)
        assert cursor.remaining() == 0
        if written(message, golden.version) != golden.content:
            differing.append(golden)
    assert differing == []


@pytest.mark.parametrize("api_key", sorted({golden.api_key for golden in MESSAGES}))
def test_message_of_defaults_is_written_as_java_writes_it(api_key: int) -> None:
    differing = [
        golden
        for golden in MESSAGES
        if golden.api_key == api_key
        and golden.variant == "default"
        and written(message_class(golden)(), golden.version) != golden.content
    ]
    assert differing == []


def test_every_api_and_version_of_ours_is_among_javas() -> None:
    ours = {
        (int(key), kind, version)
        for key, classes in API_REGISTRY.items()
        for kind, message in zip(("request", "response"), classes, strict=True)
        for version in range(message.MIN_VERSION, message.MAX_VERSION + 1)
    }
    theirs = {(golden.api_key, golden.kind, golden.version) for golden in MESSAGES}
    assert ours == theirs
