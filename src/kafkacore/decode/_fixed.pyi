import pyarrow as pa

BOOLEAN: int

def decode_fixed(
    validity: pa.Buffer | None,
    offsets: pa.Buffer | None,
    data: pa.Buffer | None,
    start: int,
    count: int,
    kind: int,
) -> tuple[bytes, bytes | None, bytes | None, int]: ...
