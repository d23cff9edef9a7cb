from collections.abc import Callable, Sequence

import pyarrow as pa
from typing_extensions import disjoint_base

from kafkacore.decode._builder import Columns
from kafkacore.decode.avro_program import NodeSpec
from kafkacore.decode.decoder import ArrowArray

@disjoint_base
class AvroReader:
    columns: Columns
    first_bad: int
    fault: int
    fault_field: int
    fault_schema: int

    def __new__(cls, schema: pa.Schema, framed: bool, batch_bytes: int) -> AvroReader: ...
    def add_program(self, schema_id: int, specs: Sequence[NodeSpec] | None) -> None: ...
    def read(
        self,
        validity: pa.Buffer | None,
        offsets: pa.Buffer | None,
        data: pa.Buffer | None,
        start: int,
        count: int,
        ask: Callable[[int], None],
    ) -> tuple[list[ArrowArray], bytes | None]: ...
