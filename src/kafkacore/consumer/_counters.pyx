# cython: auto_pickle=False, autotestdict=False
"""Counters of fetch responses, positions and polls.

The counters update a few sensors per event, and none per record.
"""

cimport cython
from libc.stdint cimport int64_t

from kafkacore.metrics._sensor cimport Sensor


@cython.final
cdef class TopicSensors:
    """Sensors for the bytes and records of one topic in each response."""

    cdef readonly Sensor size, records

    def __init__(self, Sensor size not None, Sensor records not None):
        self.size = size
        self.records = records


@cython.final
cdef class PartitionSensors:
    """Sensors for the distance of a position from the end of the log (lag) and from its start (lead)."""

    cdef readonly Sensor lag, lead

    def __init__(self, Sensor lag not None, Sensor lead not None):
        self.lag = lag
        self.lead = lead


@cython.final
cdef class FetchCounter:
    """Counts the fetches of one consumer.

    Parameters
    ----------
    register_topic, register_partition
        Functions that return the sensors of a topic name or of a partition. They are called when the topic or
        partition is first counted.
    clock
        Source of time, read once per response.
    size, records
        Sensors for the bytes and records consumed from a response, recorded when the whole response has been
        consumed.
    latency
        Sensor for the milliseconds until a response arrived.
    throttle
        Sensor for the milliseconds by which the broker throttled the request.
    """

    cdef readonly Sensor size, records, latency, throttle
    cdef object _register_topic, _register_partition
    cdef object _monotonic_ms
    cdef dict _topics
    cdef dict _partitions

    def __init__(self, register_topic, register_partition, clock, Sensor size not None,
                 Sensor records not None, Sensor latency not None, Sensor throttle not None):
        self._register_topic = register_topic
        self._register_partition = register_partition
        self._monotonic_ms = clock.monotonic_ms
        self.size = size
        self.records = records
        self.latency = latency
        self.throttle = throttle
        self._topics = {}
        self._partitions = {}

    def response(self, double latency_ms, double throttle_ms, Py_ssize_t part_count):
        """Record a response with ``part_count`` partitions, and return a tally for its records."""
        cdef double now_ms = self._monotonic_ms()
        self.latency.record(latency_ms, now_ms)
        self.throttle.record(throttle_ms, now_ms)
        return ResponseTally(self, part_count)

    def position_moved(self, partition, int64_t position, int64_t end_offset, int64_t start_offset,
                       double now_ms):
        """Record the lag and lead after a position moved. An offset of -1 is unknown."""
        cdef PartitionSensors found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = self._register_partition(partition)
        if end_offset >= 0:
            found.lag.record(max(end_offset - position, 0), now_ms)
        if start_offset >= 0:
            found.lead.record(max(position - start_offset, 0), now_ms)

    def forget(self, assigned):
        """Remove the partitions that are not in ``assigned``, and return them."""
        cdef list gone = [each for each in self._partitions if each not in assigned]
        for each in gone:
            del self._partitions[each]
        return gone

    cdef int _finish(self, ResponseTally tally) except -1:
        cdef double now_ms = self._monotonic_ms()
        if tally._topic is None:
            return 0
        self._of_topic(tally._topic, tally._topic_size, tally._topic_records, now_ms)
        if tally._other_topics is not None:
            for name, (size, records) in tally._other_topics.items():
                self._of_topic(name, size, records, now_ms)
        self.size.record(tally._size, now_ms)
        self.records.record(tally._records, now_ms)
        return 0

    cdef int _of_topic(self, str name, double size, double records, double now_ms) except -1:
        cdef TopicSensors topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = self._register_topic(name)
        topic.size.record(size, now_ms)
        topic.records.record(records, now_ms)
        return 0


@cython.final
cdef class ResponseTally:
    """Adds up the bytes and records consumed from one response, and finally updates the sensors."""

    cdef FetchCounter _counter
    cdef Py_ssize_t _parts_left
    cdef double _size, _records
    # The topic of the previous partition, and the sums of that topic. Usually a response has only one topic.
    cdef str _topic
    cdef double _topic_size, _topic_records
    cdef dict _other_topics

    def __init__(self, FetchCounter counter not None, Py_ssize_t part_count):
        self._counter = counter
        self._parts_left = part_count

    def part_is_done(self, str topic, double size, double records):
        """Add the bytes and records that were consumed from one partition."""
        if topic != self._topic:
            self._change_topic(topic)
        self._topic_size += size
        self._topic_records += records
        self._size += size
        self._records += records
        self._parts_left -= 1
        if self._parts_left == 0:
            self._counter._finish(self)

    cdef int _change_topic(self, str topic) except -1:
        if self._topic is not None:
            if self._other_topics is None:
                self._other_topics = {}
            self._other_topics[self._topic] = (self._topic_size, self._topic_records)
        self._topic = topic
        self._topic_size, self._topic_records = (
            (0.0, 0.0) if self._other_topics is None else self._other_topics.pop(topic, (0.0, 0.0))
        )
        return 0


@cython.final
cdef class PollCounter:
    """Records when polls begin and end.

    Parameters
    ----------
    clock
        Source of time.
    between
        Sensor for the milliseconds between the starts of two polls.
    idle_ratio
        Sensor for the fraction of the time that is spent in polls.
    """

    cdef readonly Sensor between, idle_ratio
    # Start of the last poll in monotonic milliseconds, or -1 before the first poll.
    cdef readonly double last_began_ms
    cdef object _monotonic_ms
    cdef double _since_last_ms

    def __init__(self, clock, Sensor between not None, Sensor idle_ratio not None):
        self._monotonic_ms = clock.monotonic_ms
        self.between = between
        self.idle_ratio = idle_ratio
        self.last_began_ms = -1.0

    def began(self):
        """Record the start of a poll."""
        cdef double now_ms = self._monotonic_ms()
        self._since_last_ms = 0.0 if self.last_began_ms < 0 else now_ms - self.last_began_ms
        self.last_began_ms = now_ms
        self.between.record(self._since_last_ms, now_ms)

    def ended(self):
        """Record the end of a poll, whether the poll returned or raised an error."""
        cdef double now_ms = self._monotonic_ms()
        cdef double length_ms = now_ms - self.last_began_ms
        cdef double all_ms = length_ms + self._since_last_ms
        self.idle_ratio.record(length_ms / all_ms if all_ms > 0 else 0.0, now_ms)
