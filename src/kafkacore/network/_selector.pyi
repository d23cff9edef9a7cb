import socket
from collections.abc import Sequence
from typing import Any, Self, final

from kafkacore.clock import Clock
from kafkacore.network._channel import KafkaChannel
from kafkacore.network._memory import MemoryPool
from kafkacore.network._native_heartbeat import NativeHeartbeat
from kafkacore.network._poller import Poller
from kafkacore.network._receive import NetworkReceive
from kafkacore.network._send import NetworkSend
from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, OnAuthenticated
from kafkacore.network.tunnel import Tunnel

@final
class Selector:
    """The connections of a client or a broker, served by one thread.

    Parameters
    ----------
    clock:
        Clock for idle connections and setup deadlines. The wait for events uses the system's clock.
    max_receive_size:
        Maximum bytes of a frame, without its size field; -1 for the protocol's limit of 2 GiB - 1. A larger
        frame closes its connection.
    connections_max_idle_ms:
        Milliseconds without activity after which a connection is closed; ``None`` for never.
    memory_pool:
        Pool that limits the memory of frames that have been received and are still referenced; ``None`` for
        no limit.
    backend:
        System call to wait with: ``"epoll"`` (Linux), ``"kqueue"`` (macOS and BSD), or ``"poll"``. ``None``
        selects epoll or kqueue.
    socket_options:
        Arguments of ``setsockopt`` for outgoing connections; ``None`` for ``TCP_NODELAY``.
    setup_timeout_ms:
        Maximum milliseconds from :meth:`register` until TLS handshake and authentication are complete. The
        same limit applies from the first to the last byte of the first frame. ``None`` for no limit.
    busy_poll_ms:
        Milliseconds for which each wait looks for events without sleeping.

    Attributes
    ----------
    connected:
        Ids of the connections that became ready in the last :meth:`poll` and are still open. A connection is
        ready once it is connected and, if configured, has completed TLS handshake and authentication.
    completed_sends, completed_receives:
        Frames completely written and completely received in the last poll, in order per connection.
    disconnected:
        Id → :class:`ChannelState` of closed connections. Connections closed by :meth:`close` are not
        included.
    accepted:
        New connections as ``(listener id, socket, address)``. The caller must register or close each socket.
    waited_ms:
        Total milliseconds that all polls have waited.
    is_interrupted:
        Whether the results of the last poll were not reported, because an exception such as
        KeyboardInterrupt ended it, or those of :meth:`flush`. The next poll then also reports them.
    """

    connected: list[str]
    completed_sends: list[NetworkSend]
    completed_receives: list[NetworkReceive]
    disconnected: dict[str, ChannelState]
    accepted: list[tuple[str, socket.socket, Any]]
    poller: Poller
    waited_ms: float
    is_interrupted: bool
    on_authenticated: OnAuthenticated | None
    def __new__(
        cls,
        clock: Clock,
        *,
        max_receive_size: int = -1,
        connections_max_idle_ms: float | None = None,
        memory_pool: MemoryPool | None = None,
        backend: str | None = None,
        socket_options: Sequence[tuple[int, int, int | bytes]] | None = None,
        setup_timeout_ms: float | None = None,
        busy_poll_ms: float = 0.0,
    ) -> Self: ...
    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
        tunnel: Tunnel | None = None,
    ) -> None:
        """Start a connection; a later poll reports the result in ``connected`` or ``disconnected``.

        Parameters
        ----------
        connection_id:
            Unique name of the connection.
        address:
            ``(IP address, port)``.
        send_buffer_bytes, receive_buffer_bytes:
            Sizes of the socket's buffers in bytes; -1 for the operating system's default.
        builder:
            A :class:`~kafkacore.network.ChannelBuilder`, whose ``build(sock, host)`` creates the transport
            and the authenticator. ``None`` for plaintext without authentication.
        host:
            Host name of the peer, for the builder.
        tunnel:
            A :class:`~kafkacore.network.Tunnel` through the proxy at ``address``. Its handshake precedes TLS.
            ``None`` without a proxy.

        Raises
        ------
        IllegalStateError
            If the id is in use.
        OSError
            If the address is invalid or no socket can be created. Nothing is registered.
        KafkaError
            If the builder fails, for example on an unreadable certificate. Nothing is registered.
        """
    def register(
        self, connection_id: str, sock: socket.socket, builder: ChannelBuilder | None = None, host: str = ""
    ) -> None:
        """Take ownership of an accepted socket.

        A poll reports the connection in ``connected`` only if ``builder`` is given. If this method raises an
        exception, the caller still owns the socket.

        Parameters
        ----------
        connection_id:
            Unique name of the connection.
        sock:
            A connected socket.
        builder, host:
            See :meth:`connect`.

        Raises
        ------
        IllegalStateError
            If the id is in use.
        """
    def reauthenticate(self, connection_id: str, payload: memoryview) -> None:
        """Reauthenticate a peer that requested it with the SaslHandshake request in ``payload`` (KIP-368).

        The channel must have an authenticator, which receives the peer's frames until the reauthentication is
        complete. If reauthentication fails, the connection is closed.
        """
    def register_listener(self, listener_id: str, sock: socket.socket) -> None:
        """Accept connections from a listening socket; see ``accepted``. The caller still owns the socket."""
    def unregister_listener(self, listener_id: str) -> None:
        """Stop watching a listening socket. Call this before closing the socket. An unknown id is ignored."""
    def is_channel_ready(self, connection_id: str) -> bool:
        """Whether frames can be sent on this connection."""
    def channel(self, connection_id: str) -> KafkaChannel | None:
        """Return the :class:`KafkaChannel` with this id, or ``None``."""
    def channel_ids(self) -> list[str]:
        """Return the ids of all open connections."""
    def attach_heartbeat(self, connection_id: str, heartbeat: NativeHeartbeat) -> bool:
        """Let ``heartbeat`` write on this connection until the connection is closed.

        The heartbeat is detached from any other connection.

        Returns
        -------
        bool
            Whether the heartbeat was attached. ``False`` if the connection does not exist, uses TLS, or has
            an authenticator.
        """
    def mute(self, connection_id: str) -> None:
        """Stop reading from this connection until :meth:`unmute`."""
    def unmute(self, connection_id: str) -> None:
        """Resume reading from this connection."""
    def close(self, connection_id: str) -> None:
        """Close a connection without reporting it in ``disconnected``. An unknown id is ignored."""
    def close_all(self) -> None:
        """Close all connections and the selector. In a forked child, the parent's connections stay open."""
    def wakeup(self) -> None:
        """Make the current poll, or else the next poll, return immediately. Any thread may call this."""
    def send(self, send: NetworkSend) -> None:
        """Queue a frame, which later polls write.

        If the connection has been closed, but no poll has reported the close yet, the frame is dropped.

        Raises
        ------
        IllegalStateError
            If the connection does not exist, or its previous frame is not yet completely written.
        """
    def send_now(self, send: NetworkSend) -> bool:
        """Send a frame like :meth:`send`, but try to write it immediately.

        Returns
        -------
        bool
            Whether the frame was completely written. If so, no poll reports it in ``completed_sends``. If
            not, later polls write the remaining bytes.
        """
    def flush(self) -> None:
        """Try to write the queued frames, without waiting for events. The next poll reports the results."""
    def can_send_now(self, connection_id: str) -> bool:
        """Return whether :meth:`send_now` may be used for a connection.

        It may not if the connection uses TLS or SASL, or if its previous frame is not written yet.
        """
    def borrow(self, connection_id: str) -> bool:
        """Let the calling thread send a frame by :meth:`send_now` while another thread polls.

        The caller then calls :meth:`give_back`, and in between only compiled functions; see
        :meth:`Poller.borrow`.

        Returns
        -------
        bool
            ``False`` if no thread waits in a poll, or if :meth:`can_send_now` is false.
        """
    def give_back(self) -> None:
        """Let the polling thread continue after :meth:`borrow`."""
    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        """Perform all possible I/O. If no I/O is possible, wait until I/O is possible.

        Errors of connections are not raised, but reported in ``disconnected``.

        Parameters
        ----------
        timeout_ms:
            Maximum milliseconds to wait. :meth:`wakeup` or a signal may end the wait early.
        return_on_completed_sends:
            Whether to return without waiting if a frame has been completely written.

        Raises
        ------
        IllegalStateError
            If the method is called in a forked child or after :meth:`close_all`.
        """
    def has_only_received(self) -> bool:
        """Return whether the last poll has received frames, and the next one would wait for events."""
    def poll_events(self, timeout_ms: float, return_on_completed_sends: bool = True) -> float:
        """Do what :meth:`poll` does without waiting, for a caller that itself waits for events.

        The caller waits until ``poller.fd`` is readable, and then calls this method again. An event loop can
        watch this descriptor.

        Parameters
        ----------
        timeout_ms, return_on_completed_sends:
            See :meth:`poll`.

        Returns
        -------
        float
            Maximum milliseconds until the next call, at most ``timeout_ms``. Negative if a poll would return
            now, because it has something to report or because of :meth:`wakeup`.
        """
