"""Request dispatch: decode header and body, call the API's handler, encode the response.

The structure follows Kafka's ``KafkaApis``.
"""

cimport cython
from libc.limits cimport INT_MAX
from libc.stdint cimport int32_t

from kafkacore.broker.replica._produce_call cimport skip_tags
from kafkacore.broker.requests._request cimport Request, RequestContext
from kafkacore.metrics._sensor cimport Sensor
from kafkacore.wire._cursor cimport Cursor

from kafkacore.broker.handlers import api_versions, registry
from kafkacore.broker.requests._request import ANSWERED_LATER, HANG_UP, CloseConnectionError
from kafkacore.broker.server.metrics import BrokerMetrics
from kafkacore.errors import IllegalSaslStateError
from kafkacore.protocol import encode_response

# Maximum number of elements in all arrays of a request. For example, 10,000 topics with one partition each
# are 20,000 elements. Kafka limits only the size of a request. Here an element of two bytes becomes an object
# of about 70 bytes, and the response has a result for each element.
MAX_ELEMENTS = 100_000


@cython.final
cdef class ServedApi:
    """An API that the broker serves: what each of its requests needs.

    Attributes
    ----------
    handle:
        Function of the handler. A test may replace it.
    """

    cdef object handler
    cdef object stats
    cdef Sensor queue
    cdef object decode
    cdef object encode
    cdef public object handle
    cdef int min_version, max_version, flexible_from

    def __init__(self, handler not None, stats):
        self.handler = handler
        self.stats = stats
        self.queue = stats.queue
        self.decode = handler.decode or handler.request_class.decode
        self.encode = handler.encode or encode_response
        self.handle = handler.handle
        self.min_version, self.max_version = handler.min_version, handler.max_version
        flexible_from = handler.request_class.FLEXIBLE_FROM
        self.flexible_from = INT_MAX if flexible_from is None else flexible_from


cdef class KafkaApis:
    """Handles request frames. Only the network thread uses it.

    Parameters
    ----------
    services:
        The parts of the broker that the handlers use.
    interceptor:
        Called with each request before its handler, or ``None``.
    """

    cdef readonly object metrics
    cdef object _services
    cdef object _interceptor
    cdef object _clock
    # By API key.
    cdef readonly dict _apis

    def __init__(self, services, interceptor=None):
        self._services = services
        self._interceptor = interceptor
        self._clock = services.clock
        handlers = {handler.request_class.API_KEY: handler for handler in registry.HANDLERS}
        names = {key: each.request_class.NAME.removesuffix("Request") for key, each in handlers.items()}
        self.metrics = BrokerMetrics(names, services.clock)
        self._apis = {key: ServedApi(each, self.metrics.apis[key]) for key, each in handlers.items()}
        api_versions.serve(registry.HANDLERS)

    def handle(self, RequestContext context not None, frame, on_response):
        """Handle a request. If the request must wait, ``on_response`` is called later, otherwise at once.

        ``frame`` is any object with a buffer. Views of the buffer keep it alive.

        Raises
        ------
        MalformedMessageError
            The bytes are not a valid request of their API and version.
        CloseConnectionError
            The request cannot be answered, so the connection must be closed.
        """
        cdef Cursor cursor = Cursor(frame)
        cdef Py_ssize_t size = cursor.remaining()
        cursor.limit_elements(MAX_ELEMENTS)
        # Every version of the header starts with these fields. The other fields depend on the version.
        cdef int api_key = cursor.read_int16()
        cdef int version = cursor.read_int16()
        cdef int32_t correlation_id = cursor.read_int32()
        cdef Request request
        cdef str client_id
        cdef ServedApi api = self._apis.get(api_key)
        cdef double began_ms
        if api is None:
            raise CloseConnectionError(f"API key {api_key} is not supported")
        if not api.min_version <= version <= api.max_version:
            return self._answer_unknown(api.handler, context, api_key, version, correlation_id, on_response)
        client_id = cursor.read_nullable_string(False)
        skip_tags(cursor, version >= api.flexible_from)
        began_ms = self._clock.monotonic_ms()
        api.queue.record(began_ms - <double> self.metrics.turn_began_ms, began_ms)
        # Without the constructor, which would convert the numbers to objects and back.
        request = Request.__new__(Request)
        request.context, request.client_id, request.on_response = context, client_id, on_response
        request.api_key, request.version, request.correlation_id = api_key, version, correlation_id
        request.message, request.encode = api.decode(cursor, version), api.encode
        request.stats, request.began_ms = api.stats, began_ms
        context.client_id = client_id
        if self._services.quotas.is_enabled:
            request.size, request.quotas = size, self._services.quotas
        if self._interceptor is None:
            self.serve(request, api)
        else:
            self._interceptor(request, self._serve)
        return request

    def _serve(self, Request request not None):
        self.serve(request, self._apis[request.api_key])

    cdef int serve(self, Request request, ServedApi api) except -1:
        response = api.handle(request, self._services)
        if response is ANSWERED_LATER:
            request.waits_since_ms = self._clock.monotonic_ms()
        else:
            request.respond(response)
        return 0

    def _answer_unknown(self, handler, context, api_key, version, correlation_id, on_response):
        """Reject a request of an unsupported version. Only ApiVersions has a response for this case."""
        if handler is not api_versions.HANDLER:
            raise CloseConnectionError(f"{handler.request_class.NAME} version {version} is not supported")
        request = Request(context, api_key, 0, correlation_id, None, None, encode_response, on_response)
        request.respond(api_versions.unsupported_version())
        return request

    def answer_before_authentication(self, RequestContext context not None, payload):
        """Return the response to an ApiVersions request, the only request allowed before authentication.

        Raises
        ------
        MalformedMessageError, IllegalSaslStateError
            The frame is not a valid ApiVersions request.
        """
        answers = []
        try:
            self.handle(context, payload, lambda request, pieces: answers.append(pieces))
        except CloseConnectionError as error:
            raise IllegalSaslStateError(str(error)) from error
        assert answers, "ApiVersions is answered immediately"
        if answers[0] is None or answers[0] is HANG_UP:
            raise IllegalSaslStateError("the broker could not answer the ApiVersions request")
        return answers[0]
