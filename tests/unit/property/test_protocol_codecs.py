"""Every message in every version, compared with a simple codec; and malformed bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.slow_codec import RandomMessages, SlowEncoder

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol._fieldcode import snake_case
from kafkacore.protocol.schema import APIS, DATA
from kafkacore.protocol.schema.declaration import Message as Declaration
from kafkacore.wire import Cursor, Writer

MODULES: dict[str, tuple[Declaration, ...]] = {
    **{snake_case(api.name): api.messages for api in APIS if api.versions},
    **DATA,
}
SEEDS = st.integers(0, 2**32)


def encoded(message: Message, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    raw = b"".join(writer.pieces())
    assert writer.size_in_bytes == len(raw)
    return raw


def messages(module_name: str, seed: int) -> Iterator[tuple[Declaration, Any, int]]:
    """Yield a random message of each class of the module in each of its versions."""
    module = import_module(f"kafkacore.protocol.generated.{module_name}")
    source = random.Random(seed)
    for declaration in MODULES[module_name]:
        message_class = getattr(module, declaration.name)
        for version in declaration.versions:
            yield declaration, RandomMessages(declaration, message_class, version, source).make(), version


@pytest.mark.parametrize("module_name", MODULES)
@settings(max_examples=5)
@given(seed=SEEDS)
def test_every_version_is_encoded_as_the_slow_codec_does_and_comes_back(module_name: str, seed: int) -> None:
    for declaration, message, version in messages(module_name, seed):
        raw = encoded(message, version)
        assert raw == SlowEncoder(declaration, version).encode(message), f"{message!r} version {version}"
        cursor = Cursor(raw)
        assert type(message).decode(cursor, version) == message
        assert cursor.remaining() == 0


@pytest.mark.parametrize("module_name", MODULES)
@settings(max_examples=2)
@given(seed=SEEDS)
def test_message_cut_at_any_length_is_malformed(module_name: str, seed: int) -> None:
    for _, message, version in messages(module_name, seed):
        raw = encoded(message, version)
        for size in range(len(raw)):
            with pytest.raises(MalformedMessageError):
                type(message).decode(Cursor(raw[:size]), version)


@pytest.mark.parametrize("module_name", MODULES)
@settings(max_examples=3)
@given(seed=SEEDS)
def test_changed_bytes_give_a_message_or_a_malformed_one(module_name: str, seed: int) -> None:
    source = random.Random(seed)
    for _, message, version in messages(module_name, seed):
        raw = bytearray(encoded(message, version))
        for _ in range(min(len(raw), 8)):
            at = source.randrange(len(raw))
            before, raw[at] = raw[at], source.choice((0, 1, 0x7F, 0x80, 0xFF))
            try:
                decoded = type(message).decode(Cursor(bytes(raw)), version)
            except MalformedMessageError:
                pass
            else:
                assert isinstance(decoded, type(message))
            raw[at] = before


def add_unknown_tags(raw: bytes, tag: int) -> bytes:
    """Add an unknown tagged field to a message that ends with an empty section of tagged fields."""
    assert raw[-1] == 0
    return raw[:-1] + bytes([1, tag, 3]) + b"abc"


@pytest.mark.parametrize("module_name", MODULES)
def test_unknown_tagged_field_is_skipped_in_every_flexible_version(module_name: str) -> None:
    module = import_module(f"kafkacore.protocol.generated.{module_name}")
    for declaration in MODULES[module_name]:
        message_class = getattr(module, declaration.name)
        for version in declaration.versions & declaration.flexible:
            raw = add_unknown_tags(encoded(message_class(), version), tag=100)
            cursor = Cursor(raw)
            assert message_class.decode(cursor, version) == message_class()
            assert cursor.remaining() == 0
