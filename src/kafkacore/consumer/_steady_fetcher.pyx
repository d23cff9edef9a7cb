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
from kafkacore.consumer._fetch_codec cimport FetchSettings, SessionPart, read_usual_response
from kafkacore.consumer._memory cimport FetchMemory
from kafkacore.consumer._reader cimport RecordReader, Scan
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

from kafkacore.client.connection_states import ConnectionState
from kafkacore.consumer.completed_fetch import CompletedFetch
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.fetch_session import FIRST_VERSION_BY_ID, FetchPartition
from kafkacore.consumer.subscription_state import FetchPosition, FetchState
from kafkacore.errors import MalformedMessageError
from kafkacore.network import NetworkSend
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.exchange import around_correlation_id
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.structs import IsolationLevel

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

READY = ConnectionState.READY
FETCHING = FetchState.FETCHING

cdef enum:
    # Larger responses have so many records that nothing is gained.
    MOST_BYTES = 64 * 1024
    FRAME_SIZE_BYTES = 4
    # Maximum number of fetches that are left to the general code after one was prepared in vain.
    MOST_SKIPPED = 63


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
    is_read
        Whether the positions are after the records of the last response.
    is_useful
        Whether a usual response has arrived.
    """

    cdef int node_id
    cdef object handler, partitions, future, connection
    cdef str connection_id
    cdef dict parts
    cdef double until_ms
    cdef bint is_read, is_useful
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

    Attributes
    ----------
    responses
        Number of responses that this object has handled.
    """

    cdef object _client, _network, _selector, _in_flight, _metadata, _subscriptions, _clock, _buffer
    cdef object _pins, _counter, _options
    cdef FetchSettings _settings
    cdef int _max_partition_bytes
    cdef bint _is_committed
    # Node id -> _SteadyFetch of the fetch in flight.
    cdef dict _fetches
    # Nodes whose last response was small.
    cdef set _small
    # The fetches whose records are being read, or None.
    cdef list _reading
    # Number that grows when the general code sends a fetch or receives its response.
    cdef Py_ssize_t _version
    # Number of responses that were read here, usual or not.
    cdef Py_ssize_t _reads
    # Number of fetches to skip after the last one that was prepared in vain, and how many of them are left.
    cdef int _skipped, _skips_left
    cdef readonly Py_ssize_t responses

    def __cinit__(self):
        self._fetches = {}
        self._small = set()

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

    @property
    def is_reading(self):
        """Whether a deserializer is being called."""
        return self._reading is not None

    def sent(self, int node_id, handler not None, partitions not None, future not None):
        """Note a fetch that the Fetcher has sent to a node."""
        cdef _SteadyFetch fetch
        self._version += 1
        if node_id not in self._small:
            return
        if self._skips_left > 0:
            self._skips_left -= 1
            return
        fetch = _SteadyFetch()
        fetch.node_id = node_id
        fetch.handler = handler
        fetch.partitions = partitions
        fetch.future = future
        fetch.is_read = True
        self._fetches[node_id] = fetch

    def received(self, int node_id, Py_ssize_t size_in_bytes):
        """Note that the Fetcher has received a response with ``size_in_bytes`` bytes of records."""
        cdef _SteadyFetch fetch = self._fetches.pop(node_id, None)
        self._version += 1
        if fetch is not None and fetch.parts is not None:
            # Preparing takes time for each partition, so do it rarely while it is of no use.
            self._skipped = 0 if fetch.is_useful else min(2 * self._skipped + 1, <int> MOST_SKIPPED)
            self._skips_left = self._skipped
        if size_in_bytes <= MOST_BYTES:
            self._small.add(node_id)
        else:
            self._small.discard(node_id)

    def failed(self, int node_id):
        """Note that a fetch has failed. The next one starts a new session."""
        self._version += 1
        self._fetches.pop(node_id, None)
        self._small.discard(node_id)

    def retain(self, assigned not None):
        """Stop reading the records of partitions that are not in ``assigned``. A deserializer may do this."""
        cdef _SteadyFetch fetch
        cdef SessionPart part
        if self._reading is None:
            return
        for fetch in self._reading:
            for part in fetch.answered:
                if part.reader is not None and part.partition not in assigned:
                    part.reader.drain()

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
        if not self._fetches or len(self._buffer) or not self._is_steady():
            return None
        if not self._client.wait(timeout_ms):
            return None
        receives = self._selector.completed_receives
        if not receives or self._selector.disconnected or self._selector.connected:
            return None
        now_ms = self._clock.monotonic_ms()
        if self._in_flight.next_deadline_ms() <= now_ms:
            return None
        if self._network.states.next_setup_deadline_ms() <= now_ms:
            return None
        fetches = self._answered(receives, max_records, now_ms)
        if fetches is None:
            return None
        for fetch in fetches:
            self._build_next(fetch, now_ms)
        # From here to the next call of a Python function, no Ctrl-C can separate the steps.
        for fetch in fetches:
            self._move_on(fetch)
        self._network.handled_receives = receives
        self._network.count_wait(now_ms)
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
            if fetch is None or fetch in found or not self._may_send(fetch, now_ms):
                return None
            left -= self._read(fetch, receive, left)
            if left < 0:
                return None
            found.append(fetch)
        return found

    cdef bint _is_steady(self) except -1:
        """Return whether all partitions to fetch are in the fetches in flight, and belong there."""
        cdef _SteadyFetch fetch
        made_for = (self._version, self._subscriptions.fetchable_version, self._metadata.update_version)
        for fetch in self._fetches.values():
            if not fetch.is_read or fetch.made_for != made_for:
                fetch.made_for = made_for if self._prepare(fetch) else None
            if fetch.parts is None:
                return False
        return True

    cdef bint _prepare(self, _SteadyFetch fetch) except -1:
        """Set ``parts``; return whether this needs no repetition until another fetch or a change."""
        cdef dict parts = {}
        cdef Py_ssize_t count = 0
        cdef _SteadyFetch other
        fetch.parts = fetch.answered = None
        fetch.until_ms = INFINITY
        if fetch.request is None:
            fetch.request = self._client.open_requests.get(fetch.future)
        if fetch.request is None or fetch.request.version < 0:
            return False
        if fetch.request.version < <int> FIRST_VERSION_BY_ID or fetch.handler.after_response() is None:
            return True
        for other in self._fetches.values():
            count += len(other.partitions)
        if count != self._subscriptions.fetchable_count():
            return True
        cluster = self._metadata.fetch()
        for partition, wanted in fetch.partitions.items():
            state = self._subscriptions.state_or_none(partition)
            if state is None or not self._is_wanted(fetch, cluster, partition, state, wanted):
                return True
            parts.setdefault(wanted.topic_id, {})[partition.partition] = SessionPart(
                partition, state, wanted.topic_id, wanted.fetch_offset, wanted.max_bytes,
                wanted.current_leader_epoch,
            )
        fetch.connection_id = self._network.connection_id(fetch.node_id)
        fetch.connection = self._network.states.connection(fetch.node_id)
        fetch.before, fetch.after = around_correlation_id(
            FetchRequest.API_KEY, fetch.request.version, self._network.client_id
        )
        fetch.parts = parts
        fetch.is_read = True
        return True

    cdef bint _is_wanted(self, _SteadyFetch fetch, cluster, partition, state, wanted) except -1:
        """Return whether a new fetch of a partition would be the same as the fetch in flight."""
        replica = state.preferred_read_replica
        if replica is None:
            node = cluster.leader_for(partition)
        else:
            node = cluster.online_node(partition, replica)
            fetch.until_ms = min(fetch.until_ms, <double> state.preferred_replica_expires_ms)
        epoch = cluster.leader_epoch(partition)
        return (
            node is not None
            and node.node_id == fetch.node_id
            and state.is_fetchable()
            and state.position is not None
            and state.position.offset == wanted.fetch_offset
            and wanted.max_bytes == self._max_partition_bytes
            and wanted.topic_id != ZERO_UUID
            and wanted.topic_id == cluster.topic_id(partition.topic)
            and wanted.current_leader_epoch == (-1 if epoch is None else epoch)
        )

    cdef bint _may_send(self, _SteadyFetch fetch, double now_ms) except -1:
        """Return whether the response leaves the node ready for the next fetch."""
        return (
            now_ms < fetch.until_ms
            and self._in_flight.count(fetch.node_id) == 1
            and self._in_flight.oldest(fetch.node_id) is fetch.request
            and fetch.request.send.is_completed
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
        self._reads += 1
        fetch.answered = _read_frame(payload, fetch, metadata.session_id, self._reads)
        if fetch.answered is None:
            return max_records + 1
        fetch.memory = FetchMemory(self._pins)
        for part in fetch.answered:
            part.reader = None
            part.is_read = False
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
        """Replace the request in flight by the next one. No Python code runs here."""
        cdef SessionPart part
        self.responses += 1
        fetch.is_useful = True
        fetch.is_read = False
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

        After an error, the buffer contains the records that have not been read. Return ``None`` if there are
        no records before the error. Then the general code reads the records again and raises the error.
        """
        cdef _SteadyFetch fetch
        cdef SessionPart part
        cdef dict records = {}
        cdef dict moved = {}
        cdef list positions = []
        failure = None
        self._reading = fetches
        try:
            for fetch in fetches:
                for part in fetch.answered:
                    if failure is None:
                        failure = self._read_part(fetch, part, records)
        except BaseException:
            # The user receives none of these records, so read them again after a Ctrl-C in a deserializer.
            for fetch in fetches:
                for part in fetch.answered:
                    part.is_read = False
            self._hand_over(fetches, {})
            raise
        finally:
            self._reading = None
        for fetch in fetches:
            self._note_offsets(fetch, records, moved, positions, now_ms)
        if failure is not None:
            self._hand_over(fetches, records)
            if not moved:
                if isinstance(failure, RecordDeserializationError):
                    raise failure
                return None
        self._move_positions(fetches, positions)
        return records, moved

    cdef object _read_part(self, _SteadyFetch fetch, SessionPart part, dict records):
        """Read the records of a partition. Return the error that ended this early, or ``None``."""
        cdef list out = []
        failure = None
        if part.reader is not None:
            fetch.memory.add_part(len(part.records))
            try:
                part.reader.read(out, PY_SSIZE_T_MAX)
            except Exception as error:
                failure = error
                if part.reader.failed_in_deserializer:
                    failure = RecordDeserializationError(part.partition, part.reader.deserialized_offset)
                    failure.__cause__ = error
            fetch.memory.part_is_done()
            if out:
                records[part.partition] = out
        part.is_read = failure is None
        return failure

    cdef int _note_offsets(self, _SteadyFetch fetch, dict records, dict moved, list positions,
                           double now_ms) except -1:
        """Update states and metrics with the offsets in the response, and find the new positions."""
        cdef SessionPart part
        for part in fetch.answered:
            state = part.state
            if not part.is_read and part.partition not in records:
                continue
            self._note_part(fetch, part, len(records.get(part.partition, ())))
            if (
                part.reader is None
                or part.reader.next_offset == part.fetched_offset
                # A deserializer may have unsubscribed, or reset the offset.
                or self._subscriptions.state_or_none(part.partition) is not state
                or state.state is not FETCHING
            ):
                continue
            if part.is_read:
                self._subscriptions.move_to_end(part.partition)
            moved[part.partition] = part.reader.next_offset
            positions.append((part, FetchPosition(part.reader.next_offset, part.reader.last_epoch)))
            if self._counter is not None:
                end = state.last_stable_offset if self._is_committed else state.high_watermark
                start = state.log_start_offset
                self._counter.position_moved(
                    part.partition, part.reader.next_offset, -1 if end is None else end,
                    -1 if start is None else start, now_ms,
                )
        return 0

    cdef int _note_part(self, _SteadyFetch fetch, SessionPart part, Py_ssize_t count) except -1:
        """Update a state, and count a partition that has been read completely."""
        state = part.state
        state.has_failed_fetch = False
        if part.high_watermark >= 0:
            state.high_watermark = part.high_watermark
        if part.log_start_offset >= 0:
            state.log_start_offset = part.log_start_offset
        if part.last_stable_offset >= 0:
            state.last_stable_offset = part.last_stable_offset
        if fetch.tally is not None and part.is_read:
            size = 0 if part.reader is None else len(part.records)
            fetch.tally.part_is_done(part.partition[0], size, count)
        return 0

    cdef int _move_positions(self, list fetches, list positions) except -1:
        """Update the positions like ``FetchBuffer.collect``. No Python code runs here."""
        cdef _SteadyFetch fetch
        cdef SessionPart part
        moved_from = self._buffer.moved_from
        for part, position in positions:
            moved_from[part.partition] = part.state.position
            part.state.position = position
        for fetch in fetches:
            fetch.is_read = True
            for part in fetch.answered:
                if part.reader is not None and part.reader.next_offset != part.offset:
                    fetch.is_read = False
                part.reader = part.records = None
            fetch.memory = None
        return 0

    cdef int _hand_over(self, list fetches, dict records) except -1:
        """Add all that has not been read to the buffer. ``records`` has the records to return first."""
        cdef _SteadyFetch fetch
        cdef SessionPart part
        for fetch in fetches:
            memory = FetchMemory(self._pins)
            for part in fetch.answered:
                if part.is_read:
                    continue
                read = records.get(part.partition, ())
                data = FetchResponse.PartitionData(
                    partition_index=part.partition[1],
                    high_watermark=part.high_watermark,
                    last_stable_offset=part.last_stable_offset,
                    log_start_offset=part.log_start_offset,
                    aborted_transactions=None,
                    records=part.records,
                )
                completed = CompletedFetch(
                    part.partition, data, part.reader.next_offset if read else part.fetched_offset,
                    fetch.request.version, self._options, memory, fetch.tally,
                )
                completed.records_read = len(read)
                self._buffer.add(completed)
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
