"""Messages exchanged with kafka-python, in each API and version that it supports."""

from __future__ import annotations

import importlib
import pkgutil
import random
from typing import Any

import pytest
from kafka.protocol.api_message import ApiMessage
from model.slow_codec import RandomMessages, python_name

from kafkacore.protocol import API_REGISTRY, ZERO_UUID, ApiKey, Struct
from kafkacore.protocol.schema import APIS
from kafkacore.protocol.schema.declaration import Message
from kafkacore.wire import Cursor, Uuid, Writer


def their_classes() -> dict[str, type]:
    """Return kafka-python's class of each message, by name."""
    for package in ("metadata", "producer", "consumer", "admin"):
        module = importlib.import_module(f"kafka.protocol.{package}")
        for found in pkgutil.iter_modules(module.__path__, f"{module.__name__}."):
            importlib.import_module(found.name)
    importlib.import_module("kafka.protocol.sasl")
    classes: dict[str, type] = {}
    for one in ApiMessage.__subclasses__():
        if isinstance(getattr(one, "name", None), str):
            classes[one.name] = one
    return classes


THEIRS = their_classes()
DECLARED = {message.name: (api.key, message) for api in APIS for message in api.messages}


def assert_same(message: Message, ours: Any, theirs: Any, fields: Any, version: int, path: str) -> None:
    for field in fields:
        name = python_name(field.name)
        # kafka-python decodes these bit fields to sets, some of them under another name.
        if version in field.versions and not name.endswith("authorized_operations"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            assert_same_value(message, mine, other, field, version, f"{path}.{name}")


def assert_same_value(message: Message, ours: Any, theirs: Any, field: Any, version: int, path: str) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs), path
        for mine, other in zip(ours, theirs, strict=True):
            assert_same_value(message, mine, other, field, version, path)
    elif theirs is None and isinstance(ours, Uuid | Struct):
        # kafka-python represents default values by None.
        assert ours == (ZERO_UUID if isinstance(ours, Uuid) else type(ours)()), path
    elif isinstance(ours, Struct):
        assert_same(message, ours, theirs, message.structs[field.type].fields, version, path)
    elif isinstance(ours, Uuid):
        assert str(ours) == str(theirs), path
    else:
        assert ours == theirs, path


def test_kafka_python_has_most_of_what_a_client_needs() -> None:
    assert len(THEIRS.keys() & DECLARED.keys()) > 80


@pytest.mark.parametrize("name", sorted(THEIRS.keys() & DECLARED.keys()))
def test_kafka_python_reads_and_rewrites_our_message(name: str) -> None:
    api_key, declaration = DECLARED[name]
    message_class = next(one for one in API_REGISTRY[ApiKey(api_key)] if name == one.NAME)
    theirs: Any = THEIRS[name]
    source = random.Random(name)
    for version in declaration.versions:
        if version > theirs.max_version:
            continue
        for _ in range(3):
            ours = RandomMessages(declaration, message_class, version, source).make()
            if name == "ApiVersionsResponse":
                ours.error_code = 0  # with an error code, kafka-python decodes the rest as version 0
            writer = Writer()
            ours.encode(writer, version)
            raw = b"".join(writer.pieces())
            decoded = theirs.decode(raw, version=version)
            assert_same(declaration, ours, decoded, declaration.fields, version, f"{name} version {version}")
            decoded._header = None  # kafka-python reads the header on encode, but decode() does not set it
            assert message_class.decode(Cursor(decoded.encode()), version) == ours
