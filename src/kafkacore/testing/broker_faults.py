"""What a broker under test is to do wrong: errors, delays, silence, hanging up, throttling, API by API.

Faults in, by any thread; each request that comes uses the first that fits it, on the broker's network thread.
Does not know: sockets, clients. Bytes that get lost on the way are ``FaultProxy``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import HANG_UP, BrokerServices, Request
from kafkacore.broker.purgatory.timer import TimerTask
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.message import ResponseMessage
from kafkacore.structs import TopicPartition
from kafkacore.testing.error_responses import ERROR_RESPONSES

Serve = Callable[[Request], None]

#: Kafka's name of an API → its key, for those that the broker serves.
APIS = {h.request_class.NAME.removesuffix("Request"): int(h.request_class.API_KEY) for h in HANDLERS}
_NAMES = {key: name for name, key in APIS.items()}


@dataclass(eq=False)
class _Fault:
    api_key: int | None
    apply: Callable[[Request, Serve], None]
    node: int | None
    times: int | None

    def fits(self, request: Request) -> bool:
        return self.api_key in (None, request.api_key) and self.node in (None, request.node_id)


class _Later(TimerTask):
    def __init__(self, request: Request, serve: Serve) -> None:
        super().__init__()
        self._request, self._serve = request, serve

    def run(self) -> None:
        try:
            self._serve(self._request)
        except Exception:  # noqa: BLE001 - what would have closed the connection then closes it now
            self._request.on_response(self._request, HANG_UP)


class BrokerFaults:
    """The faults of one broker. ``api`` is Kafka's name of an API ("Produce"), ``None`` any of them; ``node``
    the virtual node that is asked, ``None`` any; ``times`` how many requests are hit, ``None`` all until
    :meth:`clear`. Faults of one API are used in the order in which they were given.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._faults: list[_Fault] = []
        self._counts: Counter[tuple[str, int]] = Counter()
        self._services: BrokerServices | None = None

    def attach(self, services: BrokerServices) -> None:
        """Belong to this broker."""
        self._services = services

    # ---- What goes wrong ------------------------------------------------------------------------------

    def fail(
        self,
        api: str,
        *errors: type[BrokerResponseError],
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        """Answer the next requests with ``errors``, one each, and do nothing of what they ask.

        Parameters
        ----------
        errors:
            Classes of ``kafkacore.errors``, such as ``NotLeaderForPartitionError``; each is used once.
        topic, partition:
            Only these fail, in Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

        Raises
        ------
        ValueError
            The broker does not serve ``api``, or that API has no place for an error.
        """
        key = _api_key(api)
        assert key is not None
        if api not in PARTITION_APIS and api not in GROUP_APIS and api not in ERROR_RESPONSES:
            known = sorted({*PARTITION_APIS, *GROUP_APIS, *ERROR_RESPONSES})
            raise ValueError(f"{api} cannot be answered with an error; these can: {', '.join(known)}")

        for error in errors:
            self._add(key, node, 1, self._failing(api, error, topic, partition))

    def _failing(
        self, api: str, error: type[BrokerResponseError], topic: str | None, partition: int | None
    ) -> Callable[[Request, Serve], None]:
        def apply(request: Request, serve: Serve) -> None:
            if api in PARTITION_APIS:
                with self._refusing(error, topic, partition):
                    serve(request)
            elif api in GROUP_APIS:
                with self._refusing_groups(error):
                    serve(request)
            else:
                request.respond(ERROR_RESPONSES[api](request, error.errno))

        return apply

    @contextmanager
    def _refusing(
        self, error: type[BrokerResponseError], topic: str | None, partition: int | None
    ) -> Iterator[None]:
        def refusal(asked: TopicPartition) -> Exception | None:
            fits = topic in (None, asked.topic) and partition in (None, asked.partition)
            return error("injected by a test") if fits else None

        assert self._services is not None, "not attached"
        self._services.cluster.refusal = refusal
        try:
            yield
        finally:
            self._services.cluster.refusal = None

    @contextmanager
    def _refusing_groups(self, error: type[BrokerResponseError]) -> Iterator[None]:
        assert self._services is not None, "not attached"
        log = self._services.coordinator_log
        log.refusal = error("injected by a test")
        try:
            yield
        finally:
            log.refusal = None

    def delay(self, api: str | None, ms: float, *, times: int | None = 1, node: int | None = None) -> None:
        """Begin to serve ``ms`` milliseconds later; the connection's other requests wait as well."""

        def apply(request: Request, serve: Serve) -> None:
            assert self._services is not None, "not attached"
            deadline_ms = self._services.clock.monotonic_ms() + ms
            self._services.timer.add(deadline_ms, _Later(request, serve))

        self._add(_api_key(api), node, times, apply)

    def drop_request(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Never serve it and never answer: the client waits for its time-out."""
        self._add(_api_key(api), node, times, lambda request, serve: None)

    def drop_response(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Do what it asks, and never answer."""

        def apply(request: Request, serve: Serve) -> None:
            request.on_response = lambda request, pieces: None
            serve(request)

        self._add(_api_key(api), node, times, apply)

    def cut_request(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Hang up instead of serving it."""
        self._add(_api_key(api), node, times, lambda request, serve: request.on_response(request, HANG_UP))

    def cut_response(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Do what it asks, and hang up instead of answering."""

        def apply(request: Request, serve: Serve) -> None:
            answer = request.on_response
            request.on_response = lambda request, pieces: answer(request, HANG_UP)
            serve(request)

        self._add(_api_key(api), node, times, apply)

    def throttle(self, api: str | None, ms: int, *, times: int | None = 1, node: int | None = None) -> None:
        """Tell the client to send nothing for ``ms`` milliseconds (KIP-219); answers that cannot say so do
        not."""

        def apply(request: Request, serve: Serve) -> None:
            encode = request.encode

            def throttled(
                response: ResponseMessage, version: int, correlation_id: int
            ) -> list[bytes | memoryview]:
                if hasattr(response, "throttle_time_ms"):
                    response.throttle_time_ms = ms
                return encode(response, version, correlation_id)

            request.encode = throttled
            serve(request)

        self._add(_api_key(api), node, times, apply)

    def clear(self) -> None:
        """From now on nothing goes wrong; counts begin anew."""
        with self._lock:
            self._faults.clear()
            self._counts.clear()

    # ---- What came ------------------------------------------------------------------------------------

    def count(self, api: str, node: int | None = None) -> int:
        """Requests of ``api`` since the start or :meth:`clear`, those that were hit included."""
        _api_key(api)
        with self._lock:
            return sum(
                count for (name, at), count in self._counts.items() if name == api and node in (None, at)
            )

    @property
    def pending(self) -> int:
        """Faults that have not hit all the requests they are for."""
        with self._lock:
            return len(self._faults)

    # ---- On the network thread ------------------------------------------------------------------------

    def __call__(self, request: Request, serve: Serve) -> None:
        """Serve a request, or do to it what is to be done."""
        fault = self._take(request)
        if fault is None:
            serve(request)
        else:
            fault.apply(request, serve)

    def _add(
        self,
        api_key: int | None,
        node: int | None,
        times: int | None,
        apply: Callable[[Request, Serve], None],
    ) -> None:
        with self._lock:
            self._faults.append(_Fault(api_key, apply, node, times))

    def _take(self, request: Request) -> _Fault | None:
        with self._lock:
            self._counts[_NAMES[request.api_key], request.node_id] += 1
            for fault in self._faults:
                if fault.fits(request):
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times <= 0:
                            self._faults.remove(fault)
                    return fault
        return None


#: Errors of these go to their partitions.
PARTITION_APIS = ("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords")
#: Errors of these are the coordinator's.
GROUP_APIS = (
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
    "DescribeGroups",
    "DeleteGroups",
)


def _api_key(api: str | None) -> int | None:
    if api is None:
        return None
    if api not in APIS:
        raise ValueError(f"the broker does not serve {api!r}; it serves {', '.join(sorted(APIS))}")
    return int(ApiKey(APIS[api]))
