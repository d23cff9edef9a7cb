"""A TCP proxy that injects network faults: delays, limited rates, lost bytes, cut and reset connections.

It runs on loopback and needs no privileges.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import IllegalStateError
from kafkacore.logs import logger_of
from kafkacore.testing.proxy_connection import Direction, Ending, Link, ProxyConnection, RequestCut, Target
from kafkacore.testing.proxy_frames import RequestSeen

logger = logger_of(__name__)

LISTEN_BACKLOG: Final = 128
REQUESTS_REMEMBERED: Final = 10_000
CLOSE_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True)
class ProxyCounters:
    """Counters of a :class:`FaultProxy` since its start.

    Attributes
    ----------
    connections, open_connections:
        Number of accepted connections, and number of connections that are still open.
    bytes_to_broker, bytes_to_client:
        Bytes written to the sockets of each side.
    cuts:
        Number of connections that a fault, or a reset by one side, has ended.
    cut_frames:
        Number of connections that :meth:`FaultProxy.cut_request` or :meth:`FaultProxy.cut_response` has cut.
    """

    connections: int
    open_connections: int
    bytes_to_broker: int
    bytes_to_client: int
    cuts: int
    cut_frames: int


@dataclass(eq=False)
class _ConnectionCut:
    direction: Direction
    after: int
    number: int | None
    ending: Ending
    seen: int = 0


class FaultProxy:
    """A proxy in front of a broker. Faults can be set and removed while it runs.

    A Kafka client connects to the advertised addresses of brokers, so the broker must advertise the proxy::

        with FaultProxy() as proxy, EmbeddedBroker(advertised_port=proxy.port) as broker:
            proxy.target = broker.bootstrap_servers
            producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
            proxy.set_delay(100.0)
            proxy.cut_response(api_key=0, after=7)  # the next Produce is written, but its response is lost

    For Apache Kafka, set ``advertised.listeners=PLAINTEXT://127.0.0.1:<proxy.port>``. The proxy listens as
    soon as the object exists. A fault is active when the method that sets it returns. ``direction=None``
    means both directions. The methods raise ``ValueError`` for an invalid number, and ``IllegalStateError``
    after :meth:`close`.

    Parameters
    ----------
    target:
        ``host:port`` of the broker. It may be set later; until then, connections are reset.
    host, port:
        Address to listen on. Port 0 selects a free port.
    seed:
        Seed of the jitter.
    frames:
        Whether to find Kafka's frames in the streams, which :meth:`cut_request`, :meth:`cut_response` and
        :attr:`requests` need. Other streams, such as TLS, are forwarded in any case.
    queue_bytes:
        Maximum bytes queued per connection and direction. The proxy stops reading when the queue is full.
    clock:
        Clock for the delays.
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int = 0,
        frames: bool = True,
        queue_bytes: int = 256 * 1024,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._frames = frames
        self._queue_bytes = queue_bytes
        chance = Clock(seed).random.random
        self._links = {direction: Link(chance) for direction in Direction}
        self._target: str | None = None
        self._address: Target | None = None
        self.target = target
        self._connections: list[ProxyConnection] = []
        self._accepted = self._cut_count = self._cut_frame_count = 0
        self._connection_cuts: list[_ConnectionCut] = []
        self._request_cuts: list[RequestCut] = []
        self._requests: deque[RequestSeen] = deque(maxlen=REQUESTS_REMEMBERED)
        self._is_refusing = self._is_closed = False
        self._changed = threading.Condition()
        self._commands: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._listener = _bound(host, port)
        #: Address of the proxy.
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self._listener.listen(LISTEN_BACKLOG)
        self._waker, self._woken = socket.socketpair()
        for each in (self._waker, self._woken):
            each.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=f"fault-proxy-{self.port}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<FaultProxy {self.bootstrap_servers} in front of {self.target}>"

    # ---- Addresses -----------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of the proxy, for the clients' ``bootstrap_servers``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def target(self) -> str | None:
        """``host:port`` of the broker for new connections."""
        return self._target

    @target.setter
    def target(self, target: str | None) -> None:
        address = None
        if target is not None:
            host, _, port = target.rpartition(":")
            # The name is resolved on the caller's thread, because this may take time and the caller must get
            # the error.
            found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
            address = (found[0][0], found[0][4])
        self._target, self._address = target, address

    # ---- Faults --------------------------------------------------------------------------------------------

    def set_delay(
        self, delay_ms: float, jitter_ms: float = 0.0, *, direction: Direction | None = None
    ) -> None:
        """Delay new bytes by ``delay_ms`` to ``delay_ms + jitter_ms`` milliseconds; 0 removes the delay.

        The order stays the same. Bytes that are already queued keep their previous delay. Connecting is not
        delayed, because the operating system completes the handshake.
        """
        _check(
            min(delay_ms, jitter_ms) >= 0, f"delay_ms={delay_ms}, jitter_ms={jitter_ms}: must not be negative"
        )

        def set_it(link: Link) -> None:
            link.delay_ms, link.jitter_ms = delay_ms, jitter_ms

        self._for_links(direction, set_it)

    def set_rate(self, bytes_per_s: float | None, *, direction: Direction | None = None) -> None:
        """Limit all connections together to ``bytes_per_s`` per direction; ``None`` removes the limit."""
        _check(bytes_per_s is None or bytes_per_s > 0, f"bytes_per_s={bytes_per_s} must be more than 0")

        def set_it(link: Link) -> None:
            link.bytes_per_s, link.free_at_ms = bytes_per_s, 0.0

        self._for_links(direction, set_it)

    def set_stalled(self, is_stalled: bool = True, *, direction: Direction | None = None) -> None:
        """Forward neither bytes nor disconnects, as on a half-open connection. ``False`` ends this state."""

        def set_it(link: Link) -> None:
            link.is_stalled = is_stalled

        self._for_links(direction, set_it)

    def set_black_hole(self, is_black_hole: bool = True, *, direction: Direction | None = None) -> None:
        """Discard all bytes, and do not forward disconnects.

        ``False`` forwards bytes again, and resets the connections on which bytes were discarded.
        """

        def set_it(link: Link) -> None:
            link.is_black_hole = is_black_hole

        self._for_links(direction, set_it)

    def set_refusing(self, is_refusing: bool = True) -> None:
        """Refuse new connections, as a closed port does. Open connections stay open."""
        self._do(lambda: self._refuse(is_refusing))

    def cut(
        self,
        direction: Direction,
        after: int,
        *,
        connection: int | None = None,
        ending: Ending = Ending.FIN,
    ) -> None:
        """Cut connections on both sides after ``after`` more bytes in one direction.

        With ``Ending.RST``, the receiver may lose bytes that it has not read, as with every reset.

        Parameters
        ----------
        after:
            Number of further bytes that pass.
        connection:
            Number of the connection to cut once. The next accepted connection is 1, and the connection after
            it is 2. ``None`` cuts all open and all new connections until :meth:`lift`.
        ending:
            How both sides see the end of the connection.
        """
        _check(after >= 0, f"after={after} must be 0 or more")
        _check(connection is None or connection > 0, f"connection={connection} must be 1 or more")

        def set_it() -> None:
            self._connection_cuts.append(_ConnectionCut(direction, after, connection, ending))
            for each in self._connections if connection is None else []:
                each.cut_after(direction, after, ending)

        self._do(set_it)

    def cut_request(self, api_key: int, after: int, *, number: int = 1, ending: Ending = Ending.FIN) -> None:
        """Cut a connection once, within the ``number``-th request of an API from now.

        Parameters
        ----------
        api_key:
            Kafka's key of the API; Produce is 0.
        after:
            Bytes of the request that reach the broker, including the four bytes of its size. A larger number
            than the size of the request lets the whole request pass.
        number:
            Which of the next requests to cut; 1 is the next request.
        ending:
            How both sides see the end of the connection.
        """
        self._cut_frame(RequestCut(Direction.TO_BROKER, api_key, after, number, ending))

    def cut_response(self, api_key: int, after: int, *, number: int = 1, ending: Ending = Ending.FIN) -> None:
        """Cut a connection once, within the response to the ``number``-th request of an API from now.

        The broker has executed the request, but the client does not get the whole response. Parameters are
        those of :meth:`cut_request`.
        """
        self._cut_frame(RequestCut(Direction.TO_CLIENT, api_key, after, number, ending))

    def reset_connections(self, ending: Ending = Ending.RST) -> None:
        """End all open connections now."""

        def end_all() -> None:
            for connection in self._connections:
                connection.end(ending)

        self._do(end_all)

    def lift(self) -> None:
        """Remove all faults and pending cuts. Connections cut with ``Ending.SILENCE`` stay silent."""

        def lift_all() -> None:
            self._connection_cuts.clear()
            self._request_cuts.clear()
            for connection in self._connections:
                connection.lift_cuts()
            for link in self._links.values():
                link.delay_ms = link.jitter_ms = link.free_at_ms = 0.0
                link.bytes_per_s = None
                link.is_stalled = link.is_black_hole = False
            self._end_gaps()
            self._refuse(False)

        self._do(lift_all)

    # ---- Counters and requests -----------------------------------------------------------------------------

    @property
    def counters(self) -> ProxyCounters:
        """The current counters."""
        with self._changed:
            return ProxyCounters(
                connections=self._accepted,
                open_connections=sum(each.cut_by is None for each in self._connections),
                bytes_to_broker=self._links[Direction.TO_BROKER].forwarded_bytes,
                bytes_to_client=self._links[Direction.TO_CLIENT].forwarded_bytes,
                cuts=self._cut_count,
                cut_frames=self._cut_frame_count,
            )

    @property
    def requests(self) -> list[RequestSeen]:
        """The last 10,000 requests that reached the proxy, in order."""
        with self._changed:
            return list(self._requests)

    def wait_for(self, condition: Callable[[ProxyCounters], bool], timeout_ms: float) -> bool:
        """Wait until ``condition(counters)`` is true; return ``False`` after ``timeout_ms``."""
        with self._changed:
            return self._clock.wait_for(self._changed, lambda: condition(self.counters), timeout_ms)

    # ---- Between the caller's thread and the proxy's -------------------------------------------------------

    def _for_links(self, direction: Direction | None, set_it: Callable[[Link], None]) -> None:
        def set_all() -> None:
            for each in Direction if direction is None else (direction,):
                set_it(self._links[each])
            self._end_gaps()

        self._do(set_all)

    def _cut_frame(self, cut: RequestCut) -> None:
        if not self._frames:
            raise IllegalStateError(
                "cut_request() and cut_response() need a proxy that was created with frames=True"
            )
        _check(cut.after >= 0, f"after={cut.after} must be 0 or more")
        _check(cut.number > 0, f"number={cut.number} must be 1 or more")
        self._do(lambda: self._request_cuts.append(cut))

    def _do(self, command: Callable[[], None]) -> None:
        """Run a command on the proxy's thread, and return when it has finished."""
        done = False

        def run() -> None:
            nonlocal done
            command()
            done = True

        with self._changed:
            self._commands.append(run)
            self._wake()
            self._changed.wait_for(lambda: done or self._is_closed)
        if not done:
            raise IllegalStateError("the proxy is closed")

    def _wake(self) -> None:
        try:
            self._waker.send(b"w")
        except OSError:
            # Ignore the error. If the socket's buffer is full, earlier bytes will wake the thread. After a
            # close, the waiting caller sees that the thread has ended.
            return

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._turn()
        except Exception:
            logger.exception("the fault proxy failed")
        finally:
            self._close_all()

    def _turn(self) -> None:
        with self._changed:
            while self._commands:
                self._commands.popleft()()
            now_ms = self._clock.monotonic_ms()
            for connection in self._connections:
                connection.pass_on(now_ms)
            self._forget_ended()
            self._register()
            self._changed.notify_all()
            timeout_s = self._timeout_s(now_ms)
        events = self._selector.select(timeout_s)
        with self._changed:
            now_ms = self._clock.monotonic_ms()
            for key, mask in events:
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                elif key.fileobj is self._listener:
                    self._accept()
                elif not key.data.is_closed:
                    self._on_event(key, mask, now_ms)

    def _on_event(self, key: selectors.SelectorKey, mask: int, now_ms: float) -> None:
        connection, end = key.data, key.fileobj
        if mask & selectors.EVENT_WRITE:
            connection.on_writable(end)
        if mask & selectors.EVENT_READ and not connection.is_closed:
            connection.on_readable(end, now_ms)

    def _timeout_s(self, now_ms: float) -> float | None:
        if self._is_closed:
            return 0.0
        due = [due for each in self._connections if (due := each.due_ms()) is not None]
        return max(min(due) - now_ms, 0.0) / 1000.0 if due else None

    def _register(self) -> None:
        """Register the sockets for the events that their connections need."""
        known = self._selector.get_map()
        for connection in self._connections:
            for end, reads, writes in connection.wanted():
                mask = selectors.EVENT_READ * reads | selectors.EVENT_WRITE * writes
                if end not in known:
                    if mask:
                        self._selector.register(end, mask, connection)
                elif not mask:
                    self._selector.unregister(end)
                elif known[end].events != mask:
                    self._selector.modify(end, mask, connection)

    def _forget_ended(self) -> None:
        left: list[ProxyConnection] = []
        for connection in self._connections:
            if connection.cut_by is not None and not connection.is_counted:
                connection.is_counted = True
                self._cut_count += 1
                self._cut_frame_count += connection.is_cut_in_frame
            if not connection.is_closed:
                left.append(connection)
        self._connections = left
        closed = [key.fileobj for key in self._selector.get_map().values() if _is_closed(key)]
        for end in closed:
            self._selector.unregister(end)

    # ---- Events --------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            # The client disconnected before the connection was accepted.
            return
        self._accepted += 1
        connection = ProxyConnection(
            self._accepted,
            client,
            self._address,
            self._links,
            queue_bytes=self._queue_bytes,
            frames=self._frames,
            requests=self._requests,
            request_cuts=self._request_cuts,
        )
        self._connections.append(connection)
        for cut in list(self._connection_cuts):
            cut.seen += 1
            if cut.number is None or cut.seen == cut.number:
                connection.cut_after(cut.direction, cut.after, cut.ending)
            if cut.seen == cut.number:
                self._connection_cuts.remove(cut)

    def _end_gaps(self) -> None:
        for connection in self._connections:
            if any(stream.has_gap and not stream.link.is_black_hole for stream in connection.streams):
                connection.end(Ending.RST)

    def _refuse(self, is_refusing: bool) -> None:
        if is_refusing == self._is_refusing:
            return
        self._is_refusing = is_refusing
        if is_refusing:
            self._selector.unregister(self._listener)
            self._listener.close()
            # A socket that is bound but does not listen keeps the port, and the system refuses connections.
            self._listener = _bound(self.host, self.port)
        else:
            self._listener.listen(LISTEN_BACKLOG)
            self._selector.register(self._listener, selectors.EVENT_READ)

    # ---- Close ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Reset all connections and close the port. Further calls do nothing."""
        with self._changed:
            self._is_closed = True
            self._wake()
        self._thread.join(CLOSE_TIMEOUT_S)
        assert not self._thread.is_alive(), "the proxy's thread did not end"
        self._waker.close()

    def _close_all(self) -> None:
        with self._changed:
            self._is_closed = True
            self._selector.close()
            for connection in self._connections:
                connection.end(Ending.RST)
                connection.close()
            self._listener.close()
            self._woken.close()
            self._changed.notify_all()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _check(is_right: bool, sentence: str) -> None:
    if not is_right:
        raise ValueError(sentence)


def _bound(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((host, port))
    except BaseException:
        listener.close()
        raise
    return listener


def _is_closed(key: selectors.SelectorKey) -> bool:
    return isinstance(key.data, ProxyConnection) and key.data.is_closed
