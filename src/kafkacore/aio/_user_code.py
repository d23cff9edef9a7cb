"""Call rebalance listeners and interceptors, whose methods may be coroutines."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Protocol

from kafkacore.aio._calls import EngineCalls
from kafkacore.consumer import ConsumerInterceptor, ConsumerRebalanceListener
from kafkacore.consumer.interceptors import Records
from kafkacore.record import RecordColumns
from kafkacore.structs import OffsetAndMetadata, TopicPartition


class AnyRebalanceListener(Protocol):
    """A rebalance listener of the application; its methods are functions or coroutines."""

    def on_partitions_revoked(self, revoked: Any, /) -> Awaitable[None] | None: ...

    def on_partitions_assigned(self, assigned: Any, /) -> Awaitable[None] | None: ...


class ListenerCaller(ConsumerRebalanceListener):
    """The listener that the engine calls. It calls the application's listener, and awaits its coroutines.

    Parameters
    ----------
    listener:
        The application's listener. Without a method ``on_partitions_lost``, as in aiokafka,
        ``on_partitions_revoked`` is called.
    """

    def __init__(self, listener: AnyRebalanceListener) -> None:
        self._listener = listener
        #: Calls of the consumer; ``None`` before it is started.
        self.calls: EngineCalls | None = None

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """See ``ConsumerRebalanceListener``."""
        self._await(self._listener.on_partitions_revoked(set(revoked)))

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """See ``ConsumerRebalanceListener``."""
        self._await(self._listener.on_partitions_assigned(set(assigned)))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """See ``ConsumerRebalanceListener``."""
        method = getattr(self._listener, "on_partitions_lost", self._listener.on_partitions_revoked)
        self._await(method(set(lost)))

    def _await(self, outcome: Awaitable[None] | None) -> None:
        if inspect.isawaitable(outcome):
            assert self.calls is not None
            self.calls.await_listener(outcome)


class InterceptorCaller(ConsumerInterceptor):
    """The interceptor that the engine calls. It calls the application's, and awaits its coroutines.

    Parameters
    ----------
    interceptor:
        Object with the methods of ``ConsumerInterceptor``, as functions or coroutines.
    """

    def __init__(self, interceptor: Any) -> None:
        self._interceptor = interceptor
        #: Calls of the consumer; ``None`` before it is started.
        self.calls: EngineCalls | None = None

    def __repr__(self) -> str:
        return repr(self._interceptor)

    def on_poll(self) -> None:
        """See ``ConsumerInterceptor``."""
        if hasattr(self._interceptor, "on_poll"):
            self._await(self._interceptor.on_poll())

    def on_consume(self, records: Records) -> Records:
        """See ``ConsumerInterceptor``."""
        made: Records = self._await(self._interceptor.on_consume(records))
        return made

    def on_consume_columns(self, columns: Mapping[TopicPartition, RecordColumns]) -> None:
        """See ``ConsumerInterceptor``."""
        if hasattr(self._interceptor, "on_consume_columns"):
            self._await(self._interceptor.on_consume_columns(columns))

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """See ``ConsumerInterceptor``."""
        self._await(self._interceptor.on_commit(offsets))

    def close(self) -> None:
        """See ``ConsumerInterceptor``."""
        self._await(self._interceptor.close())

    def _await(self, outcome: Any) -> Any:
        if not inspect.isawaitable(outcome):
            return outcome
        assert self.calls is not None
        return self.calls.await_interceptor(outcome)
