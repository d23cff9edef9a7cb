from typing_extensions import Buffer

from kafkacore.record._header import BatchHeader

def walk_headers(chunk: Buffer, position: int) -> tuple[list[BatchHeader], int, str | None]: ...
