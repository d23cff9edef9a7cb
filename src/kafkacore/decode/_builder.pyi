import pyarrow as pa
from typing_extensions import disjoint_base

from kafkacore.decode.decoder import ArrowArray

@disjoint_base
class Columns:
    schema: pa.Schema

    def __new__(cls, schema: pa.Schema, batch_bytes: int) -> Columns: ...
    def take(self) -> list[ArrowArray]: ...
