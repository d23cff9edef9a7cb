from kafkacore.structs import Compression

def encode(
    values: object,
    keys: object = None,
    headers: object = None,
    timestamps: object = None,
    *,
    timestamp_ms: int = -1,
    batch_size: int = 1048576,
    compression: Compression | int = ...,
    compression_level: int | None = None,
    compression_ratio: float = 1.0,
) -> list[memoryview]: ...
