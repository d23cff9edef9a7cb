from typing import Any

import pyarrow as pa
from typing_extensions import disjoint_base

@disjoint_base
class Columns:
    schema: pa.Schema

    def __new__(cls, schema: pa.Schema, batch_bytes: int) -> Columns: ...
    def take(self) -> list[pa.Array[Any]]: ...
