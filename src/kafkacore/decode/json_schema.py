"""Translate an Arrow schema to a tree of nodes, which describes the schema to the compiled JSON decoder."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from kafkacore.errors import KafkaConfigurationError

NO_PATTERNS: Mapping[int, bytes] = MappingProxyType({})
#: Maximum nesting depth of a schema. The decoder recurses once for each level.
MAX_DEPTH = 100

# Kinds of nodes, with the values of the enum kj_kind in json_types.h.
(
    NULL,
    BOOLEAN,
    BYTE,
    SHORT,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DECIMAL,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    STRING,
    BINARY,
) = range(14)
LIST, MAP, STRUCT = 14, 15, 16

SCALARS: dict[pa.DataType, tuple[int, int]] = {
    pa.null(): (NULL, 0),
    pa.bool_(): (BOOLEAN, 1),
    pa.int8(): (BYTE, 1),
    pa.int16(): (SHORT, 2),
    pa.int32(): (INT, 4),
    pa.int64(): (LONG, 8),
    pa.float32(): (FLOAT, 4),
    pa.float64(): (DOUBLE, 8),
    pa.date32(): (DATE, 4),
    pa.string(): (STRING, 4),
    pa.binary(): (BINARY, 4),
}


class Node(NamedTuple):
    """Description of a field's type for the decoder.

    Parameters
    ----------
    kind:
        One of the constants of this module, such as ``BOOLEAN`` or ``STRUCT``.
    width:
        Number of bytes per value, or per offset for types with offsets. 0 for structs and nulls.
    arrow_type:
        The Arrow type of the field.
    precision, scale:
        Precision and scale of a decimal.
    names, children:
        The fields of a struct. The only child of a list is its element type. The children of a map are its
        key and value types.
    pattern:
        Program of ``json_patterns`` that reads the dates or times. If the program is empty, the default
        formats are read.
    """

    kind: int
    width: int
    arrow_type: pa.DataType
    precision: int = 0
    scale: int = 0
    names: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()
    pattern: bytes = b""


def root_of(schema: pa.Schema, patterns: Mapping[int, bytes] = NO_PATTERNS) -> Node:
    """Return the fields of ``schema`` as one struct node.

    Parameters
    ----------
    schema:
        The columns to read.
    patterns:
        Programs of ``json_patterns`` by kind (``DATE``, ``TIMESTAMP`` or ``TIMESTAMP_NTZ``).

    Raises
    ------
    KafkaConfigurationError
        A field has an unsupported type, or two fields have the same name.
    """
    return _node_of(pa.struct(list(schema)), "", 0, patterns)


def _node_of(kind: pa.DataType, path: str, depth: int, patterns: Mapping[int, bytes]) -> Node:
    if depth > MAX_DEPTH:
        raise KafkaConfigurationError(f"{path} is nested deeper than {MAX_DEPTH} levels: flatten the schema")
    if kind in SCALARS:
        return Node(*SCALARS[kind], kind, pattern=patterns.get(SCALARS[kind][0], b""))
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return Node(DECIMAL, 16, kind, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        number = TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
        return Node(number, 8, kind, pattern=patterns.get(number, b""))
    if pa.types.is_list(kind):
        return Node(LIST, 4, kind, children=(_node_of(kind.value_type, f"{path}[]", depth + 1, patterns),))
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        key = _node_of(kind.key_type, path, depth + 1, patterns)
        return Node(
            MAP, 4, kind, children=(key, _node_of(kind.item_type, f"{path}{{}}", depth + 1, patterns))
        )
    if pa.types.is_struct(kind):
        return _struct_of(kind, path, depth, patterns)
    raise KafkaConfigurationError(
        f"{path} is of type {kind}, which cannot be read from JSON: declare it as a string"
    )


def _struct_of(kind: pa.StructType, path: str, depth: int, patterns: Mapping[int, bytes]) -> Node:
    fields = [kind.field(at) for at in range(kind.num_fields)]
    names = tuple(field.name for field in fields)
    for name in names:
        if names.count(name) > 1:
            raise KafkaConfigurationError(f"the schema has two fields named {path}{name}: rename one of them")
        if "\0" in name:
            raise KafkaConfigurationError(
                "the schema has a field with a zero character in its name: rename it"
            )
    children = tuple(
        _node_of(field.type, f"{path}.{field.name}" if path else field.name, depth + 1, patterns)
        for field in fields
    )
    return Node(STRUCT, 0, kind, names=names, children=children)
