from typing import Any

BOOLEAN: int

def decode_fixed(
    validity: Any | None, offsets: Any, data: Any | None, start: int, count: int, kind: int
) -> tuple[bytes, bytes | None, bytes | None, int]: ...
