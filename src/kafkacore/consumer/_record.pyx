# cython: auto_pickle=False, autotestdict=False
"""One record for the user, made when it is read. A batch's lazy records in, ``ConsumerRecord`` objects out.

Key, value and headers stay bytes of the fetch response until they are asked for; with a deserializer they
are made at once, so that its error comes out of ``poll``. Does not know: batches' format, positions, the
network.
"""

cimport cython

from kafkacore.record.batch cimport Record

_FIELDS = (
    "topic", "partition", "leader_epoch", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
    "checksum", "serialized_key_size", "serialized_value_size", "serialized_header_size",
)
# A value that no record has.
cdef object _UNREAD = object()


@cython.final
cdef class ConsumerRecord:
    """A record as kafka-python names it; compares, unpacks and pickles like its named tuple.

    Parameters
    ----------
    topic, partition, offset
        Where it was.
    leader_epoch
        Epoch of the leader that wrote it, -1 if unknown.
    timestamp
        Milliseconds since the epoch, -1 if it has none.
    timestamp_type
        0 for the producer's clock, 1 for the broker's.
    key, value
        As the deserializer made them; ``bytes`` or ``None`` without one.
    headers
        List of ``(str, bytes or None)``.
    checksum
        Always ``None`` since message format 2.
    serialized_key_size, serialized_value_size, serialized_header_size
        Bytes; -1 for none.
    """

    _fields = _FIELDS
    __match_args__ = _FIELDS

    def __init__(
        self, topic, int partition, int leader_epoch, long long offset, long long timestamp,
        int timestamp_type, key, value, headers=(), checksum=None, serialized_key_size=None,
        serialized_value_size=None, serialized_header_size=None,
    ):
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self._key = key
        self._value = value
        self._headers = list(headers)
        self._key_size = _size_of(key) if serialized_key_size is None else serialized_key_size
        self._value_size = _size_of(value) if serialized_value_size is None else serialized_value_size
        self._header_size = (
            _header_size(self._headers) if serialized_header_size is None else serialized_header_size
        )

    @property
    def key(self):
        if self._key is _UNREAD:
            self._key = self._record.key
        return self._key

    @property
    def value(self):
        if self._value is _UNREAD:
            self._value = self._record.value
        return self._value

    @property
    def headers(self):
        if self._headers is _UNREAD:
            self._headers = self._record.headers
        return self._headers

    @property
    def checksum(self):
        return None

    @property
    def serialized_key_size(self):
        if self._key_size is None:
            self._key_size = self._record.fields.key_size
        return self._key_size

    @property
    def serialized_value_size(self):
        if self._value_size is None:
            self._value_size = self._record.fields.value_size
        return self._value_size

    @property
    def serialized_header_size(self):
        if self._header_size is None:
            self._header_size = _header_size(self.headers)
        return self._header_size

    def detach(self):
        """Let go of the fetch response: read every field now, so that a small record does not pin a large
        buffer.
        """
        if self._record is not None:
            for name in _FIELDS:
                getattr(self, name)
            self._record = None
        return self

    def _asdict(self):
        return {name: getattr(self, name) for name in _FIELDS}

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

    # Headers are a list and values what a deserializer likes, as in the named tuple: not hashable.
    __hash__ = None

    def __repr__(self):
        return f"ConsumerRecord({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"

    def __reduce__(self):
        return ConsumerRecord, tuple(self)


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
cdef class RecordReader:
    """Hands out the records of one batch a few at a time.

    Parameters
    ----------
    batch
        A ``record.RecordBatch``; its records are asked for one by one.
    topic, partition
        What the records will say of themselves.
    key_deserializer, value_deserializer
        Functions ``(topic, headers, bytes or None) -> object``, or ``None`` for bytes.
    """

    def __init__(self, batch, topic, int partition, key_deserializer=None, value_deserializer=None):
        self._records = iter(batch)
        self._topic = topic
        self._partition = partition
        self._leader_epoch = batch.partition_leader_epoch
        self._timestamp_type = batch.timestamp_type
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self.failed_in_deserializer = False

    def read(self, list out, Py_ssize_t limit, long long from_offset):
        """Append up to ``limit`` records at or after ``from_offset`` to ``out``. Whether the batch is
        exhausted.

        Whatever is raised, ``out`` holds the records before it. A record that a deserializer refused is
        tried again by the next call.
        """
        cdef Py_ssize_t count = 0
        while count < limit:
            if self._pending is None:
                self.failed_in_deserializer = False
                self._pending = next(self._records, None)
                if self._pending is None:
                    return True
            if self._pending.offset >= from_offset:
                out.append(self._make(self._pending))
                count += 1
            self._pending = None
        return False

    cdef ConsumerRecord _make(self, Record record):
        cdef ConsumerRecord made = ConsumerRecord.__new__(ConsumerRecord)
        made.topic = self._topic
        made.partition = self._partition
        made.leader_epoch = self._leader_epoch
        made.timestamp_type = self._timestamp_type
        made.offset = record.offset
        made.timestamp = record.timestamp
        made._record = record
        made._key = made._value = made._headers = _UNREAD
        if self._key_deserializer is None and self._value_deserializer is None:
            return made
        self.failed_in_deserializer = True
        made._headers = record.headers
        if self._key_deserializer is not None:
            made._key = self._key_deserializer(self._topic, made._headers, record.key)
        if self._value_deserializer is not None:
            made._value = self._value_deserializer(self._topic, made._headers, record.value)
        self.failed_in_deserializer = False
        return made

    @property
    def pending_offset(self):
        """Offset of the record that was read from the batch and not handed out; ``None`` without one."""
        return None if self._pending is None else self._pending.offset
