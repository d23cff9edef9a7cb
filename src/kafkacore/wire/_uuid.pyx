"""Ids of topics, of log directories and of other things in Kafka's protocol.

The standard module ``uuid`` is not imported, because it takes milliseconds to import.
"""

import sys

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyTypeObject
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf

cimport kafkacore.wire.primitives as primitives

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t count)

cdef enum:
    SIZE = 16
    TEXT_SIZE = 36

cdef dict MODULES = sys.modules
cdef uint64_t ALL_BITS = <uint64_t> -1
#: Modulus of Python's hash of an integer.
cdef uint64_t HASH_MODULUS = (<uint64_t> 1 << 61) - 1


@cython.final
@cython.total_ordering
cdef class Uuid:
    """A 128-bit id (Kafka's ``Uuid``).

    It equals the :class:`uuid.UUID` of the same bytes, and has the same hash and the same text. Ids are
    ordered as in Kafka: as pairs of signed 64-bit numbers.

    Parameters
    ----------
    raw:
        The 16 bytes of the id.
    """

    def __cinit__(self, raw):
        cdef const uint8_t *at
        if not isinstance(raw, bytes):
            raise TypeError(f"raw must be bytes, not {type(raw).__name__}")
        if len(raw) != SIZE:
            raise ValueError(f"raw must have {SIZE} bytes, not {len(raw)}")
        at = <const uint8_t *> PyBytes_AS_STRING(raw)
        self.high = <uint64_t> primitives.load_int64(at)
        self.low = <uint64_t> primitives.load_int64(at + 8)

    @staticmethod
    def from_hex(str text not None):
        """Return the id with this text, such as ``'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'``.

        Raises
        ------
        ValueError
            The text has another form.
        """
        raw = bytes_of_hex(text.replace("-", ""))
        if len(raw) == SIZE:
            found = Uuid(raw)
            if str(found) == text.lower():
                return found
        raise ValueError(f"{text!r} is not an id of the form 01234567-89ab-cdef-0123-456789abcdef")

    @staticmethod
    def from_random_bits(bits):
        """Return the id of version 4 that has these 128 random bits.

        Six of the bits are replaced by the version and the variant of the id.
        """
        cdef uint64_t high = bits >> 64
        cdef uint64_t low = bits & ALL_BITS
        return new_uuid(high & ~<uint64_t> 0xF000 | 0x4000, low & ALL_BITS >> 2 | <uint64_t> 1 << 63)

    @property
    def bytes(self):
        """The 16 bytes of the id."""
        raw = PyBytes_FromStringAndSize(NULL, SIZE)
        cdef uint8_t *at = <uint8_t *> PyBytes_AS_STRING(raw)
        primitives.store_int64(at, <int64_t> self.high)
        primitives.store_int64(at + 8, <int64_t> self.low)
        return raw

    @property
    def int(self):
        """The id as an unsigned number of 128 bits."""
        return <object> self.high << 64 | self.low

    def __eq__(self, other):
        cdef Uuid that = as_uuid(other)
        if that is None:
            return NotImplemented
        return self.high == that.high and self.low == that.low

    def __lt__(self, other):
        if not isinstance(other, Uuid):
            return NotImplemented
        if self.high != (<Uuid> other).high:
            return <int64_t> self.high < <int64_t> (<Uuid> other).high
        return <int64_t> self.low < <int64_t> (<Uuid> other).low

    def __hash__(self):
        # The hash of the number, as in uuid.UUID. 2**64 is 8 modulo HASH_MODULUS.
        return <Py_hash_t> ((self.high % HASH_MODULUS * 8 % HASH_MODULUS + self.low % HASH_MODULUS)
                            % HASH_MODULUS)

    def __str__(self):
        cdef char text[TEXT_SIZE + 1]
        snprintf(
            text, sizeof(text), "%08x-%04x-%04x-%04x-%012llx", <unsigned int> (self.high >> 32),
            <unsigned int> (self.high >> 16 & 0xFFFF), <unsigned int> (self.high & 0xFFFF),
            <unsigned int> (self.low >> 48), <unsigned long long> (self.low & ALL_BITS >> 16),
        )
        return PyUnicode_DecodeASCII(text, TEXT_SIZE, NULL)

    def __repr__(self):
        return f"Uuid('{self}')"

    def __reduce__(self):
        return Uuid, (self.bytes,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef bytes_of_hex(str text):
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


cdef Uuid new_uuid(uint64_t high, uint64_t low):
    """Return the id with these halves."""
    # Uuid.__new__ would call __cinit__, which needs an object with the bytes.
    cdef Uuid made = <Uuid> PyType_GenericAlloc(<PyTypeObject *> Uuid, 0)
    made.high = high
    made.low = low
    return made


cpdef Uuid as_uuid(value):
    """Return a :class:`Uuid` or :class:`uuid.UUID` as a Uuid, and ``None`` for any other value."""
    if isinstance(value, Uuid):
        return value
    # A program that has a uuid.UUID has imported the module.
    found = getattr(MODULES.get("uuid"), "UUID", None)
    if found is None or not isinstance(value, found):
        return None
    number = value.int
    return new_uuid(number >> 64, number & ALL_BITS)
