from typing import Final

LENGTH_AT: Final[int]
LOG_OVERHEAD: Final[int]
MAGIC_AT: Final[int]
CURRENT_MAGIC: Final[int]
BATCH_OVERHEAD: Final[int]
MAX_FIELDS_OVERHEAD: Final[int]
