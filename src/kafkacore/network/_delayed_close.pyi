from typing import final

@final
class DelayedCloses:
    def __len__(self) -> int: ...
