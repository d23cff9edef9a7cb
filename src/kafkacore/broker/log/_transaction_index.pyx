"""Searches and checks the encoded entries of a transaction index.

A search can read many entries: while a transaction stays open, a fetch must look at every transaction that
was aborted after the open transaction began.
"""

from libc.stdint cimport int64_t, uint8_t

from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int16, load_int64

from kafkacore.errors import CorruptRecordError

cdef enum:
    VERSION = 0
    # Positions of an entry's fields: version, producer id, first offset, last offset, last stable offset.
    PRODUCER_ID_AT = 2
    FIRST_OFFSET_AT = 10
    LAST_OFFSET_AT = 18
    LAST_STABLE_OFFSET_AT = 26
    SIZE = 34

#: Size of an encoded entry in bytes.
ENTRY_SIZE = SIZE


def find_aborted(entries, int64_t start_offset, int64_t end_offset):
    """Return the positions of the entries that overlap a range, up to the entry that ends the search.

    Parameters
    ----------
    entries:
        Whole entries.
    start_offset, end_offset:
        First offset of the range, and the offset after it.

    Returns
    -------
    tuple
        The positions, and whether an entry ended the search. Such an entry has a last stable offset that is
        not below ``end_offset``, so all later entries begin after the range.

    Raises
    ------
    CorruptRecordError
        An entry has an unknown version.
    """
    cdef list found = []
    cdef int64_t at = 0
    cdef Payload payload = Payload(entries)
    cdef int64_t length = payload.size
    cdef const uint8_t *entry
    while length - at >= SIZE:
        entry = payload.data + at
        if load_int16(entry) != VERSION:
            raise CorruptRecordError(f"the transaction index has unknown version {load_int16(entry)}")
        if (
            load_int64(entry + FIRST_OFFSET_AT) < end_offset
            and load_int64(entry + LAST_OFFSET_AT) >= start_offset
        ):
            found.append(at)
        if load_int64(entry + LAST_STABLE_OFFSET_AT) >= end_offset:
            return found, True
        at += SIZE
    return found, False


def check_entries(entries, int64_t base_offset, int64_t end_offset):
    """Check all entries of an index. An index file has no checksum.

    Parameters
    ----------
    entries:
        Content of the file.
    base_offset, end_offset:
        Base offset of the segment, and the offset after its last record.

    Raises
    ------
    CorruptRecordError
        An entry is invalid or incomplete, its marker is not in the segment, or the markers are not in
        order.
    """
    cdef int64_t at = 0
    cdef Payload payload = Payload(entries)
    cdef int64_t length = payload.size
    cdef int64_t previous = base_offset - 1
    cdef int64_t first, last, stable
    cdef const uint8_t *entry
    if length % SIZE:
        raise CorruptRecordError(f"the transaction index has {length} bytes, not a multiple of {SIZE}")
    while at < length:
        entry = payload.data + at
        first = load_int64(entry + FIRST_OFFSET_AT)
        last = load_int64(entry + LAST_OFFSET_AT)
        stable = load_int64(entry + LAST_STABLE_OFFSET_AT)
        if (
            load_int16(entry) != VERSION
            or load_int64(entry + PRODUCER_ID_AT) < 0
            or not 0 <= first < last
            or not previous < last < end_offset
            or not 0 <= stable <= last + 1
        ):
            raise CorruptRecordError(
                f"entry {at // SIZE} of the transaction index is invalid: version {load_int16(entry)}, "
                f"producer {load_int64(entry + PRODUCER_ID_AT)}, offsets {first} to {last}, last stable "
                f"offset {stable}"
            )
        previous = last
        at += SIZE
