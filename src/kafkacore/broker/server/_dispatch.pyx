"""A request's way to its handler: the header read, the body decoded, the handler called, the answer encoded.

Does not know: which APIs there are, what they do.
"""

from libc.stdint cimport int32_t

from kafkacore.broker.replica._produce_call cimport skip_tags
from kafkacore.broker.requests._request cimport Request, RequestContext
from kafkacore.metrics._sensor cimport Sensor
from kafkacore.wire._cursor cimport Cursor

from kafkacore.broker.requests._request import CloseConnectionError

# In all arrays of one request together: each of 10,000 partitions of as many topics takes two. Kafka bounds
# only a request's size; but an element of two bytes becomes an object of some 70 and an answer of its own.
MOST_ELEMENTS = 100_000

# Returned by a handler that answers later, by ``request.respond``.
ANSWERED_LATER = object()


cdef class Dispatcher:
    """What :class:`~kafkacore.broker.server.kafka_apis.KafkaApis` is made on; for the network thread alone.

    Parameters
    ----------
    services:
        What the handlers work with.
    interceptor:
        Gets each request before its handler does, or ``None``.
    handlers:
        API key → its handler.
    metrics:
        Counts what is done here.
    """

    cdef readonly object metrics
    cdef object _services
    cdef object _interceptor
    cdef object _clock
    cdef readonly dict _handlers
    # API key → its figures.
    cdef dict _stats

    def __init__(self, services, interceptor, dict handlers not None, metrics):
        self._services = services
        self._interceptor = interceptor
        self._clock = services.clock
        self._handlers = handlers
        self.metrics = metrics
        self._stats = metrics.apis

    def handle(self, RequestContext context not None, payload, on_response):
        """Handle one request; ``on_response`` is called before this returns, or later if it has to wait.

        Raises
        ------
        MalformedMessageError
            The bytes are no request of the API and version that they claim to be.
        CloseConnectionError
            The request cannot be answered in its own protocol.
        """
        cdef Cursor cursor = Cursor(payload)
        cursor.limit_elements(MOST_ELEMENTS)
        # What every version of the header begins with; the rest is only known once the version is.
        cdef int api_key = cursor.read_int16()
        cdef int version = cursor.read_int16()
        cdef int32_t correlation_id = cursor.read_int32()
        cdef Request request
        cdef str client_id
        cdef object handler = self._handlers.get(api_key)
        if handler is None:
            raise CloseConnectionError(f"API key {api_key} is not served")
        if not <int> handler.min_version <= version <= <int> handler.max_version:
            return self._answer_unknown(handler, context, api_key, version, correlation_id, on_response)
        client_id = cursor.read_nullable_string(False)
        flexible_from = handler.request_class.FLEXIBLE_FROM
        skip_tags(cursor, flexible_from is not None and version >= <int> flexible_from)
        began_ms = self._clock.monotonic_ms()
        stats = self._stats[api_key]
        (<Sensor?> stats.queue).record(began_ms - self.metrics.turn_began_ms, began_ms)
        decode = handler.decode
        if decode is None:
            decode = handler.request_class.decode
        request = Request(
            context, api_key, version, correlation_id, client_id, decode(cursor, version), handler.encode,
            on_response,
        )
        context.client_id = client_id
        request.stats, request.began_ms = stats, began_ms
        if self._services.quotas.is_enabled:
            request.size, request.quotas = len(payload), self._services.quotas
        if self._interceptor is None:
            self._serve(request)
        else:
            self._interceptor(request, self._serve)
        return request

    def _serve(self, Request request not None):
        response = self._handlers[request.api_key].handle(request, self._services)
        if response is ANSWERED_LATER:
            request.waits_since_ms = self._clock.monotonic_ms()
        else:
            request.respond(response)
