"""Responses of a schema registry, valid and invalid, and values that refer to a schema id."""

import base64
import io
import json
import socket
import struct
from functools import partial

import fastavro
import pyarrow as pa
import pytest
from decode.registry_server import scripted_registry
from eventually import BUDGET_S

from kafkacore.decode.avro import AvroOptions, avro_decoder
from kafkacore.decode.registry import (
    ABSENT_MS,
    ANSWER_MS,
    ATTEMPTS,
    MAX_ABSENT,
    MAX_ANSWER_BYTES,
    RegistryOptions,
    SchemaRegistry,
    SchemaRegistryError,
    registry_options,
)
from kafkacore.errors import KafkaConfigurationError
from kafkacore.testing.clock import VirtualClock

V1 = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
V2 = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "id", "type": "long"},
        {"name": "x", "type": "int"},
    ],
}
OTHER = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
WANTED = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def server(monkeypatch, clock):
    # A server may get the port of an earlier one, so registries must not be shared between tests.
    monkeypatch.setattr("kafkacore.decode.registry._shared", {})
    # A process that is stopped for a while must not miss a response: requests are counted.
    monkeypatch.setattr("kafkacore.decode.registry.TIMEOUT_S", BUDGET_S)
    # Give the registry that the decoders of a process share the virtual clock.
    monkeypatch.setattr("kafkacore.decode.registry.SchemaRegistry", partial(SchemaRegistry, clock=clock))
    with scripted_registry() as registry:
        yield registry


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def registry(server, clock):
    return SchemaRegistry(RegistryOptions((server.url,)), clock)


def framed(schema_id, schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + struct.pack(">I", schema_id) + out.getvalue()


def decode(server, values, wanted=WANTED, schema=None):
    options = AvroOptions(json.dumps(schema) if schema else None, RegistryOptions((server.url,)))
    decoded = avro_decoder(wanted, options).decode(pa.array(values, pa.binary()))
    rows = [tuple(row) for row in zip(*(c.to_pylist() for c in decoded.columns), strict=True)]
    return (
        rows,
        decoded.malformed.to_pylist() if decoded.malformed is not None else None,
        dict(decoded.reasons),
    )


# ---- Values --------------------------------------------------------------------------------------------


def test_each_value_is_read_by_the_schema_that_it_names(server):
    server.schema(1, V1)
    server.schema(70_000, V2)
    values = [
        framed(1, V1, {"id": 1}),
        framed(70_000, V2, {"name": "b", "id": 2, "x": 0}),
        None,
        framed(1, V1, {"id": 3}),
    ]
    assert decode(server, values) == ([(1, None), (2, "b"), (None, None), (3, None)], None, {})
    assert len(server.asked) == 2


def test_value_without_frame_or_of_an_unknown_schema_is_malformed(server):
    server.schema(1, V1)
    values = [b"", b"\1\0\0\0\1\2", b"\0\0\0\0", framed(9, V1, {"id": 1}), framed(1, V1, {"id": 1})]
    rows, malformed, reasons = decode(server, values)
    assert malformed == [True, True, True, True, False]
    assert rows[-1] == (1, None)
    assert "does not start with a zero byte" in reasons[0]
    assert decode(server, values[3:])[2] == {0: "schema 9 is not in the registry"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"schema": "syntax = 'proto3'", "schemaType": "PROTOBUF"}, "schemaType is PROTOBUF, not AVRO"),
        ({"schema": "{"}, "not an Avro schema"),
        ({"id": 1}, "has no 'schema' property"),
        (
            {"schema": json.dumps({**V1, "fields": [{"name": "id", "type": "string"}]})},
            "cannot be read as int64",
        ),
        ({"schema": json.dumps(V1), "references": 5}, "not a list"),
        ({"schema": json.dumps(V1), "references": [{"name": "x"}]}, "no subject or no version"),
    ],
)
def test_schema_that_cannot_be_used_makes_its_values_malformed(server, answer, reason):
    server.answer("/schemas/ids/1", (200, answer))
    _, malformed, reasons = decode(server, [framed(1, V1, {"id": 1})])
    assert malformed == [True]
    assert reason in reasons[0]
    assert "schema 1: " in reasons[0]


def test_readers_schema_gives_aliases_and_defaults(server):
    server.schema(1, V1)
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "number", "aliases": ["id"], "type": "long"},
            {"name": "text", "type": "string", "default": "none"},
            {"name": "many", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
            {"name": "inner", "type": {**V1, "name": "I"}, "default": {"id": 7}},
            {"name": "maybe", "type": ["null", "int"], "default": None},
        ],
    }
    wanted = pa.schema(
        [
            ("text", pa.string()),
            ("number", pa.int64()),
            ("many", pa.list_(pa.int32())),
            ("inner", pa.struct([("id", pa.int64())])),
            ("maybe", pa.int32()),
        ]
    )
    rows, malformed, _ = decode(server, [framed(1, V1, {"id": 5})] * 2, wanted, reader)
    assert malformed is None
    assert rows == [("none", 5, [1, 2], {"id": 7}, None)] * 2


def test_schemas_that_a_schema_refers_to_are_asked_for(server):
    outer = {"type": "record", "name": "O", "fields": [{"name": "r", "type": "a.R"}]}
    server.schema(1, outer, references=[{"name": "a.R", "subject": "a/R", "version": 3}])
    inner = {"schema": json.dumps({**V1, "namespace": "a"})}
    server.answer("/subjects/a%2FR/versions/3", (200, inner))
    whole = {**outer, "fields": [{"name": "r", "type": V1}]}
    wanted = pa.schema([("r", pa.struct([("id", pa.int32())]))])
    assert decode(server, [framed(1, whole, {"r": {"id": 4}})], wanted)[0] == [({"id": 4},)]


def test_schemas_that_refer_to_each_other_without_end_are_refused(server, registry):
    around = [{"name": "x", "subject": "s", "version": 1}]
    server.schema(1, "int", references=around)
    server.answer("/subjects/s/versions/1", (200, {"schema": '"int"', "references": around}))
    assert registry.schema(1)[0].kind == "int"
    for version in range(200):
        after = [{"name": "x", "subject": "t", "version": version + 1}]
        server.answer(f"/subjects/t/versions/{version}", (200, {"schema": '"int"', "references": after}))
    server.schema(2, "int", references=[{"name": "x", "subject": "t", "version": 0}])
    assert "refers to more than" in registry.schema(2)[1]


# ---- Responses -----------------------------------------------------------------------------------------


def test_what_was_found_is_not_asked_for_again(server, registry):
    server.schema(1, V1)
    assert registry.schema(1)[0] is registry.schema(1)[0]
    assert len(server.asked) == 1


def test_what_is_not_there_is_asked_for_again_after_a_while(server, registry, clock):
    assert registry.schema(1) == (None, "schema 1 is not in the registry")
    assert registry.schema(1)[0] is None
    assert len(server.asked) == 1
    server.schema(1, V1)
    clock.sleep_ms(ABSENT_MS)
    assert registry.schema(1)[0].kind == "record"


def test_a_flood_of_unknown_ids_is_not_handed_on_to_the_registry(server, registry):
    for schema_id in range(MAX_ABSENT + 50):
        assert registry.schema(schema_id)[0] is None
    assert len(server.asked) == MAX_ABSENT
    assert "not requested" in registry.schema(10_000)[1]


def test_error_of_the_server_is_tried_again(server, registry):
    server.answer("/schemas/ids/1", (500, b""), (503, b"oops"), (200, {"schema": json.dumps(V1)}))
    assert registry.schema(1)[0].kind == "record"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "sentence", "attempts"),
    [
        ((500, b""), "did not answer in 3 attempts: .* answered 500", ATTEMPTS),
        ((429, b""), "answered 429", ATTEMPTS),
        ((200, b"<html>"), "not a JSON object", ATTEMPTS),
        ((200, b"[" * 100_000), "not a JSON object", ATTEMPTS),
        ((200, b" " * (MAX_ANSWER_BYTES + 1)), "exceeds", ATTEMPTS),
        ((401, b""), "401: check schema.registry.auth", 1),
        ((302, b"http://127.0.0.1:1/"), "answered 302", 1),
        ((400, b""), "answered 400", 1),
        ((404, b"<html>no such page"), "answered 404, but it is not a schema registry", 1),
        ((404, b"[40403]"), "check schema.registry.url", 1),
    ],
)
def test_answer_that_is_none_is_an_error_not_a_malformed_value(server, registry, answer, sentence, attempts):
    server.answer("/schemas/ids/1", answer)
    with pytest.raises(SchemaRegistryError, match=sentence):
        registry.schema(1)
    assert len(server.asked) == attempts


def test_answer_that_never_ends_is_an_error(server):
    class Hurried(VirtualClock):
        def monotonic_ms(self):
            self.sleep_ms(ANSWER_MS)
            return super().monotonic_ms()

    server.answer("/schemas/ids/1", (200, b" " * 1_000_000))
    with pytest.raises(SchemaRegistryError, match="the response took longer than 30 s"):
        SchemaRegistry(RegistryOptions((server.url,)), Hurried()).schema(1)


def test_other_address_is_asked_when_one_does_not_answer(server, clock):
    server.schema(1, V1)
    # The port stays bound, so that no other program listens on it.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{bound.getsockname()[1]}"
        registry = SchemaRegistry(RegistryOptions((dead, server.url)), clock)
        assert registry.schema(1)[0].kind == "record"
        with pytest.raises(SchemaRegistryError, match="refused"):
            SchemaRegistry(RegistryOptions((dead,)), clock).schema(1)


def test_latest_schema_of_a_subject(server, registry):
    server.answer("/subjects/t-value/versions/latest", (200, {"schema": json.dumps(V2), "id": 1}))
    assert [field.name for field in registry.latest("t-value").fields] == ["name", "id", "x"]
    with pytest.raises(KafkaConfigurationError, match=r"no subject 'u-value': set value\.subject"):
        registry.latest("u-value")


# ---- Options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_url", [True, False])
def test_password_is_sent_and_never_shown(server, clock, in_url):
    given = {"schema.registry.url": server.url + "/", "schema.registry.auth": "me:s3cret"}
    if in_url:
        given = {"schema.registry.url": server.url.replace("//", "//me:s3cret@")}
    options = registry_options(given)
    assert "s3cret" not in repr(options)
    server.answer("/schemas/ids/1", (401, b""))
    with pytest.raises(SchemaRegistryError) as caught:
        SchemaRegistry(options, clock).schema(1)
    assert "s3cret" not in str(caught.value)
    assert base64.b64decode(server.asked[0][1].removeprefix("Basic ")) == b"me:s3cret"


@pytest.mark.parametrize(
    "url", ["registry:8081", "file:///etc/passwd", "http://", "ftp://x", "http://[", "http://h:x"]
)
def test_address_of_another_kind_is_refused(url):
    with pytest.raises(KafkaConfigurationError, match="must be an address such as"):
        registry_options({"schema.registry.url": url})
