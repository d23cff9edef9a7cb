"""Faults of a broker under test, per API: errors, delays, missing responses, disconnects and throttling.

Any thread may add faults. Each request uses the first fault that matches, on the broker's network thread.
Faults of the network are in ``FaultProxy``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import HANG_UP, BrokerServices, Request
from kafkacore.broker.purgatory.timer import TimerTask
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.api_key import ApiKey
from kafkacore.protocol.message import ResponseMessage
from kafkacore.structs import TopicPartition
from kafkacore.testing.error_responses import ERROR_RESPONSES

if TYPE_CHECKING:
    from kafkacore.broker.process.server import KafkaBroker

Serve = Callable[[Request], None]

#: Keys of the APIs that the broker serves, by Kafka's names.
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
        except Exception:  # noqa: BLE001 - an error closes the connection, as without the delay
            self._request.on_response(self._request, HANG_UP)


class BrokerFaults:
    """The faults of one broker.

    In all methods, ``api`` is Kafka's name of an API ("Produce"), or ``None`` for every API. ``node`` limits
    a fault to requests to this node. ``times`` is the number of requests that the fault affects, or ``None``
    for all requests until :meth:`clear`. Faults of an API apply in the order in which they were added.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._faults: list[_Fault] = []
        self._counts: Counter[tuple[str, int]] = Counter()
        self._broker: KafkaBroker | None = None

    def attach(self, broker: KafkaBroker) -> None:
        """Inject the faults into ``broker``. Call this before the broker starts to serve."""
        self._broker = broker

    @property
    def _services(self) -> BrokerServices:
        broker = self._broker
        assert broker is not None, "not attached"
        assert broker.services is not None, "not started"
        return broker.services

    # ---- Faults ---------------------------------------------------------------------------------------

    def fail(
        self,
        api: str,
        *errors: type[BrokerResponseError],
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> None:
        """Answer the next requests with errors, one error per request, without executing them.

        Parameters
        ----------
        errors:
            Classes of ``kafkacore.errors``, such as ``NotLeaderForPartitionError``. Each error is used once.
        topic, partition:
            Fail only this topic or partition, in Produce, Fetch, ListOffsets, OffsetForLeaderEpoch,
            DeleteRecords and WriteTxnMarkers.

        Raises
        ------
        ValueError
            If the broker does not serve ``api``, or its response has no field for an error.
        """
        key = _api_key(api)
        assert key is not None
        known = sorted({*PARTITION_APIS, *GROUP_APIS, *TRANSACTION_APIS, *ERROR_RESPONSES})
        if api not in known:
            raise ValueError(f"{api} cannot be answered with an error; these APIs can: {', '.join(known)}")

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
                with _refusing_keys(self._services.coordinator_log, error):
                    serve(request)
            elif api in TRANSACTION_APIS:
                with _refusing_keys(self._services.transaction_log, error):
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

        cluster = self._services.cluster
        cluster.refusal = refusal
        try:
            yield
        finally:
            cluster.refusal = None

    def delay(self, api: str | None, ms: float, *, times: int | None = 1, node: int | None = None) -> None:
        """Execute requests ``ms`` milliseconds later. Later requests of the connection wait as well."""

        def apply(request: Request, serve: Serve) -> None:
            services = self._services
            services.timer.add(services.clock.monotonic_ms() + ms, _Later(request, serve))

        self._add(_api_key(api), node, times, apply)

    def drop_request(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Ignore requests: they are neither executed nor answered."""
        self._add(_api_key(api), node, times, lambda request, serve: None)

    def drop_response(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Execute requests without answering them."""

        def apply(request: Request, serve: Serve) -> None:
            request.on_response = lambda request, pieces: None
            serve(request)

        self._add(_api_key(api), node, times, apply)

    def cut_request(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Close the connection instead of executing requests."""
        self._add(_api_key(api), node, times, lambda request, serve: request.on_response(request, HANG_UP))

    def cut_response(self, api: str | None, *, times: int | None = 1, node: int | None = None) -> None:
        """Execute requests, and close the connection instead of answering."""

        def apply(request: Request, serve: Serve) -> None:
            answer = request.on_response
            request.on_response = lambda request, pieces: answer(request, HANG_UP)
            serve(request)

        self._add(_api_key(api), node, times, apply)

    def throttle(self, api: str | None, ms: int, *, times: int | None = 1, node: int | None = None) -> None:
        """Answer with ``throttle_time_ms``, so that the client pauses for ``ms`` milliseconds (KIP-219).

        Responses without that field do not change.
        """

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
        """Remove all faults and reset the counts."""
        with self._lock:
            self._faults.clear()
            self._counts.clear()

    # ---- Requests -------------------------------------------------------------------------------------

    def count(self, api: str, node: int | None = None) -> int:
        """Return the number of requests of ``api`` since the start or :meth:`clear`."""
        _api_key(api)
        with self._lock:
            return sum(
                count for (name, at), count in self._counts.items() if name == api and node in (None, at)
            )

    @property
    def pending(self) -> int:
        """Number of faults that still wait for requests."""
        with self._lock:
            return len(self._faults)

    # ---- On the network thread ------------------------------------------------------------------------

    def __call__(self, request: Request, serve: Serve) -> None:
        """Execute a request, or apply the first fault that matches the request."""
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


#: APIs whose errors belong to partitions.
PARTITION_APIS = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "OffsetForLeaderEpoch",
    "DeleteRecords",
    "WriteTxnMarkers",
)
#: APIs whose errors come from the group coordinator.
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
    "TxnOffsetCommit",
)
#: APIs whose errors come from the transaction coordinator. InitProducerId and ListTransactions are not
#: listed, because their responses have an error field.
TRANSACTION_APIS = ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "DescribeTransactions")


@contextmanager
def _refusing_keys(log: CoordinatorLog[Any], error: type[BrokerResponseError]) -> Iterator[None]:
    log.refusal = error("injected by a test")
    try:
        yield
    finally:
        log.refusal = None


def _api_key(api: str | None) -> int | None:
    if api is None:
        return None
    if api not in APIS:
        raise ValueError(f"the broker does not serve {api!r}; it serves {', '.join(sorted(APIS))}")
    return int(ApiKey(APIS[api]))
