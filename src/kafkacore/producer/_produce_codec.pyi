from kafkacore.producer._batch import ProducerBatch
from kafkacore.wire import Cursor, Uuid, Writer

def write_body(
    writer: Writer,
    version: int,
    acks: int,
    timeout_ms: int,
    topics: list[tuple[str, Uuid, list[ProducerBatch]]],
    transactional_id: str | None = None,
) -> None: ...
def read_acknowledgements(
    cursor: Cursor, version: int
) -> tuple[list[tuple[str | Uuid, int, int, int]], int] | None: ...
