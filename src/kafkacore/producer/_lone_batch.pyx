"""The response to a produce request with one batch."""

cimport cython
from libc.stdint cimport int32_t

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._produce_codec cimport FLEXIBLE_FROM
from kafkacore.wire._cursor cimport Cursor

from kafkacore.errors import MalformedMessageError
from kafkacore.producer._produce_codec import read_acknowledgements
from kafkacore.producer.produce_request import PartitionResponse


@cython.final
cdef class LoneBatch:
    """Completes one batch. It is the ``callback`` and the ``usual_response`` of a ``ClientRequest``.

    The usual response acknowledges the batch and does not throttle. It is read without message objects.

    Parameters
    ----------
    sender
        The Sender, which handles all other responses.
    clock
        Clock of the Sender.
    batch
        The batch.
    message
        The BatchesRequest with the batch.
    topic
        Topic as in the response: its name, or the 16 bytes of its id.
    correlation_id, version
        Correlation id and version of the request.
    """

    cdef object _sender, _clock, _message, _topic
    cdef ProducerBatch _batch
    cdef int _correlation_id, _version
    cdef long long _base_offset, _log_append_time_ms

    def __init__(self, sender not None, clock not None, ProducerBatch batch not None, message not None,
                 topic not None, int correlation_id, int version):
        self._sender = sender
        self._clock = clock
        self._batch = batch
        self._message = message
        self._topic = topic
        self._correlation_id = correlation_id
        self._version = version

    def __call__(self, response):
        """Handle a response that is not the usual one, or the failure of the request."""
        self._sender.handle_produce_response([self._batch], self._message, response)

    def read(self, payload):
        """Read the payload of a frame; return whether it is the usual response."""
        cdef Cursor cursor = Cursor(payload)
        try:
            if cursor.read_int32() != <int32_t> self._correlation_id:
                return False
            if self._version >= FLEXIBLE_FROM and cursor.read_unsigned_varint() != 0:
                return False
            found = read_acknowledgements(cursor, self._version)
        except MalformedMessageError:
            # The general decoder reports the error.
            return False
        if found is None or found[1] != 0 or len(found[0]) != 1:
            return False
        topic, partition, self._base_offset, self._log_append_time_ms = found[0][0]
        return topic == self._topic and partition == self._batch.topic_partition[1]

    def on_complete(self):
        """Complete the batch with the response that was read."""
        response = PartitionResponse(self._base_offset, self._log_append_time_ms)
        self._sender.outcomes.handle(self._batch, response, self._clock.monotonic_ms())
