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

@final
class Selector:
    """The sockets of a client or of a broker.

    Parameters
    ----------
    clock:
        For idle connections. The wait itself is the operating system's.
    max_receive_size:
        Bytes of a frame, without its size; a larger one closes its channel. -1 for no limit but the format's.
    connections_max_idle_ms:
        A connection on which nothing has happened for longer is closed; ``None`` for never.
    memory_pool:
        Bounds the frames that have been received and are still held; ``None`` for no bound.
    backend:
        ``"epoll"``, ``"poll"``, or ``None`` for the best that this system has.
    socket_options:
        Arguments of ``setsockopt`` for the connections that are opened here; ``None`` for ``TCP_NODELAY``.
    setup_timeout_ms:
        Time from :meth:`register` until the handshake and the authentication are over, and from the first
        byte of the first frame to its last; ``None`` for no limit.

    Attributes
    ----------
    connected:
        Ids of the connections that the last :meth:`poll` has seen become ready, and not end: connected, and
        where they are to be, by TLS and authenticated.
    completed_sends, completed_receives:
        Frames written whole and read whole, in order by channel.
    disconnected:
        Id → :class:`ChannelState` of what has ended, other than by :meth:`close`.
    accepted:
        ``(listener id, socket, address)``; to be registered or closed.
    waited_ms:
        How long all polls have waited, together.
    is_interrupted:
        The last poll has raised (Ctrl-C): the next one tells what it had found out, with its own.
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
    ) -> Self: ...
    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
    ) -> None:
        """Begin to connect; the outcome is in ``connected`` or ``disconnected`` after a later poll.

        Parameters
        ----------
        connection_id:
            A name that no other connection has.
        address:
            ``(IP address, port)``.
        send_buffer_bytes, receive_buffer_bytes:
            Of the socket; -1 leaves them to the operating system.
        builder:
            Its ``build(sock, host)`` gives the transport and the authenticator; see
            :class:`~kafkacore.network.ChannelBuilder`. ``None``: bytes as they are, and nobody asks.
        host:
            Whom we want to talk to, for the builder.

        Raises
        ------
        IllegalStateError
            When the id is in use.
        OSError
            When the address is none, or there is no socket to be had; then nothing is registered.
        KafkaError
            What the builder raises, such as for certificates that cannot be read; nothing is registered.
        """
    def register(
        self, connection_id: str, sock: socket.socket, builder: ChannelBuilder | None = None, host: str = ""
    ) -> None:
        """Take over a connected socket, one that was accepted; only with a ``builder``, as of
        :meth:`connect`, is it reported in ``connected``. What that raises leaves the socket to the caller.

        Raises
        ------
        IllegalStateError
            When the id is in use; the socket stays the caller's.
        """
    def reauthenticate(self, connection_id: str, payload: memoryview) -> None:
        """Authenticate a peer anew, who has asked for it by ``payload`` (SaslHandshake). Until that is over
        its frames go to the channel's authenticator, which there must be; failure ends the connection.
        """
    def register_listener(self, listener_id: str, sock: socket.socket) -> None:
        """Watch a listening socket, which stays the caller's; see ``accepted``."""
    def unregister_listener(self, listener_id: str) -> None:
        """Watch a listening socket no longer, before its owner closes it; an unknown id is nothing to do."""
    def is_channel_ready(self, connection_id: str) -> bool:
        """Whether frames can be sent to this connection."""
    def channel(self, connection_id: str) -> KafkaChannel | None:
        """The :class:`KafkaChannel`, or ``None``."""
    def channel_ids(self) -> list[str]:
        """Ids of all open connections."""
    def attach_heartbeat(self, connection_id: str, heartbeat: NativeHeartbeat) -> bool:
        """Have ``line`` write on this connection, and on no other, until it ends; ``False`` if there is none,
        or its bytes do not travel as they are.
        """
    def mute(self, connection_id: str) -> None:
        """Read nothing from this connection until :meth:`unmute`."""
    def unmute(self, connection_id: str) -> None: ...
    def close(self, connection_id: str) -> None:
        """Close one connection, without a report in ``disconnected``; an unknown id is nothing to do."""
    def close_all(self) -> None:
        """Close every connection and the Selector, once; a forked child leaves the parent's alone."""
    def wakeup(self) -> None:
        """End the poll that runs, or the next one, at once. From any thread."""
    def send(self, send: NetworkSend) -> None:
        """Hand over a frame; it is written by later polls.

        Raises
        ------
        IllegalStateError
            When there is no such connection, or its last frame is not yet written whole.
        """
    def send_now(self, send: NetworkSend) -> bool:
        """As :meth:`send`, but write at once: whether all is out, of which no poll tells; else polls do."""
    def poll(self, timeout_ms: float, tell_sends: bool = True) -> None:
        """Do all the I/O there is to do, and wait for some if there is none.

        Parameters
        ----------
        timeout_ms:
            The longest wait. A :meth:`wakeup` or a signal may end it early.
        tell_sends:
            Do not wait after a frame has been written whole: somebody wants to know.

        Raises
        ------
        IllegalStateError
            In a forked child, or after :meth:`close_all`. What goes wrong with a connection is never raised.
        """
