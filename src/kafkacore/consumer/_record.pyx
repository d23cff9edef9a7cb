# cython: auto_pickle=False, autotestdict=False
"""The records that a consumer returns. Key, value and headers are created when they are accessed.

A record keeps the fetch response in memory until :meth:`ConsumerRecord.detach` is called. A later poll also
detaches the record if only few records of the response are left (see ``_memory``).
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from kafkacore.consumer._memory cimport RecordOrigin
from kafkacore.record.parse cimport read_header

cdef extern from "Python.h":
    void PyObject_GC_Track(object)
    bint PyObject_GC_IsTracked(object)
    object _PyObject_GC_New(PyTypeObject *type)
    object PyObject_Init(PyObject *memory, PyTypeObject *type)
    void PyObject_GC_Del(void *object)
    ctypedef struct TypeSlots "PyTypeObject":
        void *tp_alloc
        void *tp_free
        Py_ssize_t tp_basicsize

_FIELDS = (
    "topic", "partition", "leader_epoch", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
    "checksum", "serialized_key_size", "serialized_value_size", "serialized_header_size",
)


@cython.final
@cython.no_gc_clear
cdef class ConsumerRecord:
    """A record, with kafka-python's field names.

    It compares, unpacks and pickles like kafka-python's named tuple.

    Parameters
    ----------
    topic, partition, offset
        Position of the record.
    leader_epoch
        Epoch of the leader that wrote the record, or -1 if unknown.
    timestamp
        Milliseconds since the epoch, or -1 without a timestamp.
    timestamp_type
        0 if the producer set the timestamp, 1 if the broker did.
    key, value
        Objects that the deserializers returned. Without a deserializer, each access creates a ``bytes``
        object or returns ``None``.
    headers
        List of ``(str, bytes or None)``.
    checksum
        Always ``None``; message format 2 has no checksum per record.
    serialized_key_size, serialized_value_size, serialized_header_size
        Size in bytes, or -1 without a key, value or headers.
    """

    _fields = _FIELDS
    __match_args__ = _FIELDS

    def __init__(
        self, topic, int partition, int leader_epoch, long long offset, long long timestamp,
        int timestamp_type, key, value, headers=(), checksum=None, serialized_key_size=None,
        serialized_value_size=None, serialized_header_size=None,
    ):
        cdef RecordOrigin origin = RecordOrigin.__new__(RecordOrigin)
        cdef OwnFields own = OwnFields.__new__(OwnFields)
        origin.topic = topic
        origin.partition = partition
        origin.leader_epoch = leader_epoch
        origin.timestamp_type = timestamp_type
        own.key = key
        own.value = value
        own.headers = list(headers)
        own.key_size = _size_of(key) if serialized_key_size is None else serialized_key_size
        own.value_size = _size_of(value) if serialized_value_size is None else serialized_value_size
        own.header_size = (
            _header_size(own.headers) if serialized_header_size is None else serialized_header_size
        )
        self.offset = offset
        self.timestamp = timestamp
        _unregister(self)
        self.origin = origin
        _set_own(self, own)

    def __dealloc__(self):
        _unregister(self)

    @property
    def topic(self):
        return _origin_of(self).topic

    @property
    def partition(self):
        return _origin_of(self).partition

    @property
    def leader_epoch(self):
        return _origin_of(self).leader_epoch

    @property
    def timestamp_type(self):
        return _origin_of(self).timestamp_type

    @property
    def key(self):
        if _has_bytes(self):
            return _bytes_of(self.fields.key, self.fields.key_size)
        return None if self.own is None else self.own.key

    @property
    def value(self):
        if _has_bytes(self):
            return _bytes_of(self.fields.value, self.fields.value_size)
        return None if self.own is None else self.own.value

    @property
    def headers(self):
        if self.own is None:
            own = OwnFields.__new__(OwnFields)
            (<OwnFields> own).headers = _headers_of(self)
            _set_own(self, own)
        return self.own.headers

    @property
    def checksum(self):
        return None

    @property
    def serialized_key_size(self):
        if _has_bytes(self):
            return self.fields.key_size
        return None if self.own is None else self.own.key_size

    @property
    def serialized_value_size(self):
        if _has_bytes(self):
            return self.fields.value_size
        return None if self.own is None else self.own.value_size

    @property
    def serialized_header_size(self):
        if _has_bytes(self):
            return _header_size(_headers_of(self))
        return None if self.own is None else self.own.header_size

    def detach(self):
        """Copy key, value and headers, and release the fetch response.

        A record that is kept for a long time then does not keep a large response in memory.

        Returns
        -------
        ConsumerRecord
            The record itself.
        """
        _detach(self)
        return self

    def _asdict(self):
        return {name: getattr(self, name) for name in _FIELDS}

    def _replace(self, **changes):
        """Return a copy with other values for the named fields, like ``_replace`` of a named tuple."""
        fields = self._asdict()
        unknown = [name for name in changes if name not in fields]
        if unknown:
            raise ValueError(f"a ConsumerRecord has no field {', '.join(map(repr, unknown))}")
        return ConsumerRecord(**(fields | changes))

    @classmethod
    def _make(cls, fields):
        """Return a record with these 13 values, in the order of ``_fields``."""
        values = tuple(fields)
        if len(values) != len(_FIELDS):
            raise TypeError(f"a ConsumerRecord has {len(_FIELDS)} fields, not {len(values)}")
        return cls(*values)

    def __iter__(self):
        return iter([getattr(self, name) for name in _FIELDS])

    def __len__(self):
        return len(_FIELDS)

    def __getitem__(self, index):
        return tuple(self)[index]

    def __eq__(self, other):
        if isinstance(other, (ConsumerRecord, tuple)):
            return tuple(self) == tuple(other)
        return NotImplemented

    # Like the named tuple, a record is not hashable: headers are a list, and values can have any type.
    __hash__ = None

    def __repr__(self):
        return f"ConsumerRecord({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"

    def __reduce__(self):
        return ConsumerRecord, tuple(self)


# ---- Allocation
# ----------------------------------------------------------------------------------------------
cdef enum:
    # Number of records kept for reuse (2 MiB). Without reuse, each poll would return the memory pages of its
    # records to the operating system, and the next poll would request them again. That costs as much as all
    # other work on a record.
    MAX_FREE = 16 * 1024

cdef PyObject *_free_records[MAX_FREE]
cdef Py_ssize_t _free_count = 0


cdef object _allocate(PyTypeObject *kind, Py_ssize_t count):
    """Allocate a record that the garbage collector does not track, because bytes cannot form a cycle."""
    global _free_count
    if _free_count > 0:
        _free_count -= 1
        record = PyObject_Init(_free_records[_free_count], kind)
    else:
        record = _PyObject_GC_New(kind)
    memset(<char *> <PyObject *> record + sizeof(PyObject), 0, BODY_SIZE)
    return record


cdef void _free(void *record) noexcept:
    global _free_count
    if _free_count < MAX_FREE:
        _free_records[_free_count] = <PyObject *> record
        _free_count += 1
    else:
        PyObject_GC_Del(record)


(<TypeSlots *> ConsumerRecord).tp_alloc = <void *> _allocate
(<TypeSlots *> ConsumerRecord).tp_free = <void *> _free
cdef Py_ssize_t BODY_SIZE = (<TypeSlots *> ConsumerRecord).tp_basicsize - sizeof(PyObject)


cdef ConsumerRecord new_record(RecordOrigin origin):
    """Return a record in a free slot of ``origin``, which must exist. The caller sets the other fields."""
    cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
    record.origin = origin
    record.index = origin.count
    origin.records[origin.count] = <PyObject *> record
    origin.count += 1
    origin.live += 1
    return record


cdef int own_fields(ConsumerRecord record, object key, object value, list headers) except -1:
    """Store the results of the deserializers in ``record``, and release its bytes."""
    cdef OwnFields own = OwnFields.__new__(OwnFields)
    own.key = key
    own.value = value
    own.headers = headers
    own.key_size = record.fields.key_size
    own.value_size = record.fields.value_size
    own.header_size = _header_size(headers)
    _replace_bytes(record, own)
    return 0


cdef int _detach(ConsumerRecord record) except -1:
    cdef OwnFields own
    if not _has_bytes(record):
        return 0
    own = OwnFields.__new__(OwnFields)
    own.headers = record.headers
    own.key = _bytes_of(record.fields.key, record.fields.key_size)
    own.value = _bytes_of(record.fields.value, record.fields.value_size)
    own.key_size = record.fields.key_size
    own.value_size = record.fields.value_size
    own.header_size = _header_size(own.headers)
    _replace_bytes(record, own)
    return 0


cdef int _replace_bytes(ConsumerRecord record, OwnFields own) except -1:
    cdef RecordOrigin bare = record.origin.without_bytes()
    _unregister(record)
    _set_own(record, own)
    record.origin = bare
    return 0


cdef void _set_own(ConsumerRecord record, OwnFields own) noexcept:
    record.own = own
    # Track the record from now on, because headers or a deserialized value may refer back to it.
    if not PyObject_GC_IsTracked(record):
        PyObject_GC_Track(record)


cdef inline void _unregister(ConsumerRecord record) noexcept:
    cdef RecordOrigin origin = record.origin
    if origin is not None and origin.records != NULL and origin.records[record.index] == <PyObject *> record:
        origin.records[record.index] = NULL
        origin.live -= 1


cdef inline bint _has_bytes(ConsumerRecord record) noexcept:
    return record.origin is not None and record.origin.batch is not None


cdef RecordOrigin _NOWHERE = RecordOrigin.__new__(RecordOrigin)


cdef inline RecordOrigin _origin_of(ConsumerRecord record):
    return _NOWHERE if record.origin is None else record.origin


cdef inline object _bytes_of(const uint8_t *data, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *> data, size)


cdef list _headers_of(ConsumerRecord record):
    cdef const uint8_t *pos = record.fields.headers
    # Keep the bytes alive: creating objects may run the garbage collector, which may run any code.
    cdef RecordOrigin origin = record.origin
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef int32_t key_size = 0, value_size = 0
    cdef list headers = []
    for _ in range(record.fields.header_count):
        # The whole record was checked, so the headers end within the record.
        if read_header(&pos, origin.batch.records_end, &key, &key_size, &value, &value_size) < 0:
            raise AssertionError("headers changed since the record was checked")
        name = PyUnicode_DecodeUTF8(<const char *> key, key_size, "replace")
        headers.append((name, _bytes_of(value, value_size)))
    return headers


cdef object _size_of(object data):
    if data is None:
        return -1
    try:
        return len(data)
    except TypeError:
        return -1


cdef object _header_size(object headers):
    if not headers:
        return -1
    return sum(len(key.encode()) + (0 if value is None else len(value)) for key, value in headers)


@cython.final
cdef class OwnFields:
    """The fields of a record that exist as Python objects."""
