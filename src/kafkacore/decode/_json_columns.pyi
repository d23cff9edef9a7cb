import sys
from typing import Self, final

import pyarrow as pa

from kafkacore.decode.decoder import ArrowArray
from kafkacore.decode.json_schema import Node
from kafkacore.decode.json_zones import Zones

#: The row, whether it is well-formed JSON, name and type of the field, and the byte at which its value
#: starts.
_Reason = tuple[int, bool, tuple[str, pa.DataType] | None, int]

@final
class Block:
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class JsonColumns:
    def __new__(
        cls,
        root: Node,
        zones: Zones,
        allow_non_numeric: bool,
        allow_single_quotes: bool,
        date_fallback: bool,
        time_fallback: bool,
        batch_bytes: int,
    ) -> Self: ...
    def decode(
        self, values: pa.BinaryArray
    ) -> tuple[list[ArrowArray], pa.BooleanArray | None, list[_Reason], pa.BooleanArray | None]: ...
