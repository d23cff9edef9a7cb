"""Arrow arrays built field by field as C structures, including ones that no Arrow library produces."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

_POINTER = ctypes.c_void_p
_RELEASE = ctypes.CFUNCTYPE(None, _POINTER)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [_POINTER, ctypes.c_char_p, _POINTER]


class _Schema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", _POINTER),
        ("dictionary", _POINTER),
        ("release", _RELEASE),
        ("private_data", _POINTER),
    ]


class _Array(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", _POINTER),
        ("children", _POINTER),
        ("dictionary", _POINTER),
        ("release", _RELEASE),
        ("private_data", _POINTER),
    ]


#: Everything that was exported is kept forever. The capsule needs an owner, and a destructor in Python cannot
#: be one because it may run while an exception is propagating.
_exported: list[ArrowByHand] = []


@_RELEASE
def _keep(structure: int) -> None:
    """Release nothing: Python owns the memory and keeps it."""


@dataclass
class ArrowByHand:
    """An array that exports exactly these fields. ``None`` for a buffer is exported as a null pointer."""

    format: str
    length: int
    buffers: list[bytes | None]
    null_count: int = 0
    offset: int = 0
    children: list[ArrowByHand] = field(default_factory=list)
    name: str = ""
    is_released: bool = False
    child_count: int | None = None

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        schema, array = self._structures()
        _exported.append(self)
        return (
            _new_capsule(ctypes.addressof(schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(array), b"arrow_array", None),
        )

    def _structures(self) -> tuple[_Schema, _Array]:
        made = [child._structures() for child in self.children]
        count = len(made) if self.child_count is None else self.child_count
        self._schemas = (_POINTER * len(made))(*(ctypes.addressof(schema) for schema, _ in made))
        self._arrays = (_POINTER * len(made))(*(ctypes.addressof(array) for _, array in made))
        self._memory = [
            buffer and ctypes.create_string_buffer(buffer, len(buffer)) for buffer in self.buffers
        ]
        self._buffers = (_POINTER * len(self._memory))(
            *(ctypes.addressof(memory) if memory else None for memory in self._memory)
        )
        schema = _Schema(self.format.encode(), self.name.encode(), None, 0, len(made))
        schema.children = ctypes.addressof(self._schemas) if made else None
        schema.release = _keep
        array = _Array(self.length, self.null_count, self.offset, len(self.buffers), count)
        array.buffers = ctypes.addressof(self._buffers) if self.buffers else None
        array.children = ctypes.addressof(self._arrays) if made else None
        array.release = _RELEASE() if self.is_released else _keep
        self._made = schema, array, made
        return schema, array
