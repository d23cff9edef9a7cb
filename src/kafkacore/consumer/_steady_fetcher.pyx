# cython: auto_pickle=False, autotestdict=False
"""Receives small fetch responses and sends the next fetches, without objects for messages and futures.

If records are rare, each poll waits for a response with a few records. Its partitions stay the same, and
nothing but their positions changes. Then this module reads the response, writes the next request and reads
the records. In all other cases it changes nothing, and the ``Fetcher`` handles the response.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from kafkacore.client._client_request cimport ClientRequest
from kafkacore.consumer._fetch_codec cimport (
    FIRST_VERSION_BY_ID, FetchSettings, SessionPart, read_usual_response,
)
from kafkacore.consumer._memory cimport FetchMemory
from kafkacore.consumer._reader cimport RecordReader, Scan
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

from kafkacore.client.connection_states import ConnectionState
from kafkacore.consumer.completed_fetch import CompletedFetch
from kafkacore.consumer.fetch_session import FetchPartition
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.errors import MalformedMessageError
from kafkacore.network import NetworkSend
from kafkacore.protocol.exchange import around_correlation_id
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.structs import IsolationLevel

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

READY = ConnectionState.READY

cdef enum:
    # Larger responses have so many records that nothing is gained.
    MOST_BYTES = 64 * 1024
    FRAME_SIZE_BYTES = 4


@cython.final
cdef class _SteadyFetch:
    """The fetch in flight to one node.

    Attributes
    ----------
    handler, partitions
        The ``FetchSessionHandler`` and its partitions with their fetch parameters.
    future
        Future that the general code completes if it receives the response.
    parts
        Topic id → partition index → ``SessionPart``; ``None`` if the general code must handle the response.
    until_ms
        Time until which the partitions stay with the node, in milliseconds.
    """

    cdef int node_id
    cdef object handler, partitions, future, connection
    cdef str connection_id
    cdef dict parts
    cdef double until_ms
    cdef ClientRequest request
    cdef bytes before, after
    # Versions for which `parts` was made.
    cdef object made_for
    # The partitions and the size of the response that is being handled, its latency and its metrics.
    cdef list answered
    cdef Py_ssize_t size_in_bytes
    cdef FetchMemory memory
    cdef double latency_ms
    cdef object tally
    # The next request, the session's metadata after it, and the partitions with a new offset.
    cdef ClientRequest next_request
    cdef object next_metadata
    cdef dict moved


@cython.final
cdef class SteadyFetcher:
    """Fetches for a ``Fetcher`` as long as nothing but the positions changes.

    Parameters
    ----------
    client
        The ConsumerNetworkClient, whose NetworkClient has a ``Selector``.
    metadata, subscriptions, clock
        Objects that the parts of the consumer share.
    buffer
        FetchBuffer of the Fetcher.
    config
        FetchConfig of the Fetcher.
    pins
        PinLedger of the Fetcher.
    counter
        FetchCounter of the metrics, or ``None``.
    """

    cdef object _client, _network, _selector, _in_flight, _metadata, _subscriptions, _clock, _buffer
    cdef object _pins, _counter, _options
    cdef FetchSettings _settings
    cdef int _max_partition_bytes
    cdef bint _is_committed
    # Node id -> _SteadyFetch of the fetch in flight.
    cdef dict _fetches
    # Number of fetches that the general code has sent, and of responses read here.
    cdef Py_ssize_t _sent, _responses

    def __init__(self, client not None, metadata not None, subscriptions not None, clock not None,
                 buffer not None, config not None, pins not None, counter):
        self._client = client
        self._network = client.client
        self._selector = client.client.selector
        self._in_flight = client.client.in_flight
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._buffer = buffer
        self._pins = pins
        self._counter = counter
        self._options = config.read
        self._is_committed = config.read.isolation_level is IsolationLevel.READ_COMMITTED
        self._settings = FetchSettings(
            config.fetch_max_wait_ms, config.fetch_min_bytes, config.fetch_max_bytes,
            int(config.read.isolation_level), config.client_rack,
        )
        self._max_partition_bytes = config.max_partition_fetch_bytes
        self._fetches = {}

    def sent(self, int node_id, handler not None, partitions not None, future not None):
        """Note a fetch that the Fetcher has sent to a node."""
        cdef _SteadyFetch fetch = _SteadyFetch()
        fetch.node_id = node_id
        fetch.handler = handler
        fetch.partitions = partitions
        fetch.future = future
        self._sent += 1
        self._fetches[node_id] = fetch

    def ended(self, int node_id):
        """Note that the Fetcher has received the response of a node."""
        self._fetches.pop(node_id, None)

    def receive(self, double timeout_ms, Py_ssize_t max_records):
        """Wait for responses, and return their records if all of them are usual.

        Parameters
        ----------
        timeout_ms
            Maximum time to wait, in milliseconds.
        max_records
            Maximum number of records.

        Returns
        -------
        tuple | None
            Dicts of the records and of the new offsets of each partition. With ``None``, nothing but the
            network's results has changed, and the general code continues.
        """
        cdef _SteadyFetch fetch
        cdef list fetches
        cdef double now_ms
        if not self._fetches or len(self._buffer) or not self._client.wait(timeout_ms):
            return None
        receives = self._selector.completed_receives
        if not receives or self._selector.disconnected or self._selector.connected:
            return None
        now_ms = self._clock.monotonic_ms()
        fetches = self._answered(receives, max_records, now_ms)
        if fetches is None:
            return None
        for fetch in fetches:
            self._build_next(fetch, now_ms)
        for fetch in fetches:
            self._move_on(fetch)
        self._network.results_handled(now_ms)
        self._selector.flush()
        for fetch in fetches:
            self._count(fetch, now_ms)
        return self._read_records(fetches, now_ms)

    # ---- Responses -----------------------------------------------------------------------------------------
    cdef list _answered(self, receives, Py_ssize_t max_records, double now_ms):
        """Return the fetches with their responses, or ``None`` if any response is not usual."""
        cdef _SteadyFetch fetch
        cdef list found = []
        cdef Py_ssize_t left = max_records
        for receive in receives:
            fetch = self._fetches.get(self._network.node_id(receive.source_id))
            if fetch is None or self._in_flight.oldest(fetch.node_id) is not self._request(fetch):
                return None
            if not self._is_steady(fetch, now_ms) or not self._may_send(fetch, now_ms):
                return None
            left -= self._read(fetch, receive, left)
            if left < 0:
                return None
            found.append(fetch)
        return found

    cdef ClientRequest _request(self, _SteadyFetch fetch):
        if fetch.request is None:
            fetch.request = self._client.open_requests.get(fetch.future)
        return fetch.request

    cdef bint _is_steady(self, _SteadyFetch fetch, double now_ms) except -1:
        """Return whether the next fetch to the node has the same partitions."""
        made_for = (self._sent, self._subscriptions.fetchable_version, self._metadata.update_version)
        if fetch.made_for != made_for:
            fetch.made_for = made_for
            self._prepare(fetch, now_ms)
        return fetch.parts is not None and now_ms < fetch.until_ms

    cdef int _prepare(self, _SteadyFetch fetch, double now_ms) except -1:
        cdef dict parts = {}
        cdef Py_ssize_t count = 0
        cdef _SteadyFetch other
        fetch.parts = None
        fetch.until_ms = INFINITY
        if fetch.request.version < FIRST_VERSION_BY_ID:
            return 0
        for other in self._fetches.values():
            count += len(other.partitions)
        if count != self._subscriptions.fetchable_count():
            return 0
        for partition, wanted in fetch.partitions.items():
            state = self._subscriptions.state_or_none(partition)
            if (
                state is None or not state.is_fetchable() or wanted.topic_id.int == 0
                or wanted.max_bytes != self._max_partition_bytes
            ):
                return 0
            if state.preferred_read_replica is not None:
                fetch.until_ms = min(fetch.until_ms, <double> state.preferred_replica_expires_ms)
            topic_id = wanted.topic_id.bytes
            parts.setdefault(topic_id, {})[partition.partition] = SessionPart(
                partition, state, topic_id, wanted.fetch_offset, wanted.max_bytes, wanted.current_leader_epoch
            )
        fetch.connection_id = self._network.connection_id(fetch.node_id)
        fetch.connection = self._network.states.connection(fetch.node_id)
        fetch.before, fetch.after = around_correlation_id(
            FetchRequest.API_KEY, fetch.request.version, self._network.client_id
        )
        fetch.parts = parts
        return 0

    cdef bint _may_send(self, _SteadyFetch fetch, double now_ms) except -1:
        """Return whether the response leaves the node ready for the next fetch."""
        return (
            self._in_flight.count(fetch.node_id) == 1
            and fetch.connection.state is READY
            and <double> fetch.connection.throttled_until_ms <= now_ms
            and self._selector.is_channel_ready(fetch.connection_id)
            and not self._network.connection_errors.has_early_closes
        )

    cdef Py_ssize_t _read(self, _SteadyFetch fetch, receive, Py_ssize_t max_records) except -1:
        """Read a response. Return the maximum number of records; more than ``max_records`` if unusual."""
        cdef SessionPart part
        cdef Scan scan
        cdef Py_ssize_t count = 0
        payload = receive.payload
        metadata = fetch.handler.after_response()
        if metadata is None or len(payload) > MOST_BYTES:
            return max_records + 1
        self._responses += 1
        fetch.answered = _read_frame(payload, fetch, metadata.session_id, self._responses)
        if fetch.answered is None:
            return max_records + 1
        fetch.memory = FetchMemory(self._pins)
        for part in fetch.answered:
            part.reader = None
            part.next_offset = part.offset
            position = part.state.position
            if position is None or <int64_t> position.offset != part.offset:
                return max_records + 1
            if part.records is None or len(part.records) == 0:
                continue
            part.reader = self._new_reader(part, fetch.memory)
            if part.reader._scan(&scan) < 0 or scan.batches == 0 or scan.end <= part.offset:
                return max_records + 1
            count += scan.records
            part.next_offset = scan.end
        fetch.size_in_bytes = len(payload) + FRAME_SIZE_BYTES
        fetch.next_metadata = metadata
        return count

    cdef RecordReader _new_reader(self, SessionPart part, FetchMemory memory):
        options = self._options
        return RecordReader(
            part.records,
            part.partition[0],
            part.partition[1],
            part.offset,
            memory,
            _is_data,
            check_crcs=options.check_crcs,
            max_decompressed_size=options.max_decompressed_size,
            read_committed=self._is_committed,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
        )

    # ---- Requests ------------------------------------------------------------------------------------------
    cdef int _build_next(self, _SteadyFetch fetch, double now_ms) except -1:
        """Create the request for the records after those of the response."""
        cdef Writer writer = Writer()
        cdef SessionPart part
        cdef list moved = []
        correlation_id = self._network.next_correlation_id()
        fetch.moved = {}
        for part in fetch.answered:
            if part.next_offset != part.offset:
                moved.append(part)
                before = fetch.partitions[part.partition]
                fetch.moved[part.partition] = FetchPartition(
                    before.topic_id, part.next_offset, part.max_bytes, part.leader_epoch
                )
        writer.write_buffer(fetch.before)
        writer.write_int32(correlation_id)
        writer.write_buffer(fetch.after)
        self._settings.write_request(
            writer, fetch.request.version, fetch.next_metadata.session_id, fetch.next_metadata.epoch, moved
        )
        fetch.next_request = fetch.request.repeated(
            correlation_id, now_ms, NetworkSend(fetch.connection_id, writer.pieces())
        )
        return 0

    cdef int _move_on(self, _SteadyFetch fetch) except -1:
        """Replace the request in flight by the next one.

        No Python code runs here, so a Ctrl-C cannot separate the steps.
        """
        cdef SessionPart part
        fetch.latency_ms = fetch.next_request.sent_ms - fetch.request.sent_ms
        self._in_flight.complete_next(fetch.node_id)
        self._in_flight.add(fetch.next_request)
        fetch.request = fetch.next_request
        self._client.open_requests[fetch.future] = fetch.request
        fetch.handler.next_metadata = fetch.next_metadata
        fetch.partitions.update(fetch.moved)
        for part in fetch.answered:
            part.fetched_offset = part.offset
            part.offset = part.next_offset
        self._selector.send(fetch.request.send)
        return 0

    cdef int _count(self, _SteadyFetch fetch, double now_ms) except -1:
        """Count the response and the next request in the metrics."""
        metrics = self._network.metrics
        fetch.tally = None
        if metrics is not None:
            metrics.requests.response_received(
                fetch.node_id, fetch.size_in_bytes, fetch.latency_ms, 0.0, now_ms
            )
            self._network.count_sent(fetch.request, now_ms)
        if self._counter is not None:
            fetch.tally = self._counter.response(fetch.latency_ms, 0.0, len(fetch.answered))
        return 0

    # ---- Records -------------------------------------------------------------------------------------------
    cdef tuple _read_records(self, list fetches, double now_ms):
        """Return the records and the new offsets, after updating the positions.

        Return ``None`` if a record cannot be read, or if a deserializer has changed the subscription. Then
        the buffer contains the responses, and the general code reads them again.
        """
        cdef _SteadyFetch fetch
        cdef SessionPart part
        cdef dict records = {}
        cdef dict moved = {}
        cdef list positions = []
        cdef list out
        version = self._subscriptions.fetchable_version
        try:
            for fetch in fetches:
                for part in fetch.answered:
                    if part.reader is None:
                        continue
                    out = []
                    fetch.memory.add_part(len(part.records))
                    part.reader.read(out, PY_SSIZE_T_MAX)
                    fetch.memory.part_is_done()
                    if out:
                        records[part.partition] = out
                    moved[part.partition] = part.reader.next_offset
                    positions.append((part, FetchPosition(part.reader.next_offset, part.reader.last_epoch)))
        except Exception:
            # The general code raises the error after it has returned the records before it.
            self._hand_over(fetches)
            return None
        if self._subscriptions.fetchable_version != version:
            self._hand_over(fetches)
            return None
        for fetch in fetches:
            self._note_offsets(fetch, records, now_ms)
        self._move_positions(positions)
        return records, moved

    cdef int _note_offsets(self, _SteadyFetch fetch, dict records, double now_ms) except -1:
        """Update states and metrics with the offsets in the response, and release its bytes."""
        cdef SessionPart part
        for part in fetch.answered:
            state = part.state
            state.has_failed_fetch = False
            if part.high_watermark >= 0:
                state.high_watermark = part.high_watermark
            if part.log_start_offset >= 0:
                state.log_start_offset = part.log_start_offset
            if part.last_stable_offset >= 0:
                state.last_stable_offset = part.last_stable_offset
            size = 0 if part.reader is None else len(part.records)
            if fetch.tally is not None:
                fetch.tally.part_is_done(part.partition[0], size, len(records.get(part.partition, ())))
                if part.reader is not None:
                    self._counter.position_moved(
                        part.partition, part.reader.next_offset,
                        part.last_stable_offset if self._is_committed else part.high_watermark,
                        part.log_start_offset, now_ms,
                    )
            if part.reader is not None:
                self._subscriptions.move_to_end(part.partition)
            part.reader = part.records = None
        fetch.memory = None
        return 0

    cdef int _move_positions(self, list positions) except -1:
        """Update the positions like ``FetchBuffer.collect``. No Python code runs here."""
        cdef SessionPart part
        moved_from = self._buffer.moved_from
        for part, position in positions:
            moved_from[part.partition] = part.state.position
            part.state.position = position
        return 0

    cdef int _hand_over(self, list fetches) except -1:
        """Add the responses to the buffer of fetches that wait to be read."""
        cdef _SteadyFetch fetch
        cdef SessionPart part
        for fetch in fetches:
            memory = FetchMemory(self._pins)
            for part in fetch.answered:
                data = FetchResponse.PartitionData(
                    partition_index=part.partition[1],
                    high_watermark=part.high_watermark,
                    last_stable_offset=part.last_stable_offset,
                    log_start_offset=part.log_start_offset,
                    aborted_transactions=None,
                    records=part.records,
                )
                self._buffer.add(
                    CompletedFetch(
                        part.partition, data, part.fetched_offset, fetch.request.version, self._options,
                        memory, fetch.tally,
                    )
                )
                part.reader = part.records = None
            fetch.memory = None
        return 0


cdef list _read_frame(payload, _SteadyFetch fetch, int session_id, Py_ssize_t number):
    """Read the frame of a response. Return its partitions, or ``None`` if it is not a usual response."""
    cdef Cursor cursor = Cursor(payload)
    try:
        if cursor.read_int32() != <int32_t> fetch.request.correlation_id or cursor.read_unsigned_varint():
            return None
        return read_usual_response(cursor, fetch.parts, session_id, number)
    except MalformedMessageError:
        # The general code reports the error.
        return None


def _is_data(batch):
    """Return whether the user gets the records of a batch of a response without aborted transactions."""
    return not batch.is_control
