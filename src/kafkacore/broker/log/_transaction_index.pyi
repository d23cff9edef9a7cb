from typing_extensions import Buffer

ENTRY_SIZE: int

def find_aborted(entries: Buffer, start_offset: int, end_offset: int) -> tuple[list[int], bool]: ...
