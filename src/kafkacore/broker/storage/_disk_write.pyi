from collections.abc import Sequence

class WritingDisk:
    def pwritev(self, fd: int, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> None: ...
