from typing_extensions import Buffer

def crc32c(buffer: Buffer, value: int = 0) -> int:
    """Return the CRC-32C of a contiguous buffer.

    Parameters
    ----------
    buffer:
        Any object with a contiguous buffer.
    value:
        The checksum of the preceding bytes; 0 if there are none.
    """

def implementations() -> tuple[str, ...]:
    """Return the names of the implementations that this machine can run. The first is in use."""

def crc32c_with(implementation: str, buffer: Buffer, value: int = 0) -> int:
    """Return the CRC-32C computed by the named implementation, for tests and measurements.

    Raises
    ------
    ValueError
        This machine has no implementation of that name.
    """
