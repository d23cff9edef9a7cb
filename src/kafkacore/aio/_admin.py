"""The admin client for asyncio.

:class:`AIOKafkaAdminClient` runs the methods of the synchronous :class:`~kafkacore.KafkaAdminClient` in
greenlets.
"""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar, Unpack

from kafkacore.admin.config_types import AdminConfig
from kafkacore.admin.kafka_admin_client import KafkaAdminClient
from kafkacore.aio import _greenlets
from kafkacore.aio._loop_resolver import loop_resolver
from kafkacore.aio._loop_wait import LoopWait, close_in_loop
from kafkacore.aio._settings import DEFAULTS
from kafkacore.aio._token_provider import TokenProviderCaller
from kafkacore.client.config import refuse_positional, resolve, servers_text
from kafkacore.errors import IllegalStateError
from kafkacore.network import Selector
from kafkacore.security.first_fetch import Fetch, fetching_by
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.wire.copying import refuse_copy

P = ParamSpec("P")
T = TypeVar("T")


def _coroutine(
    method: Callable[Concatenate[KafkaAdminClient, P], T],
) -> Callable[Concatenate[AIOKafkaAdminClient, P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that does what a method of the synchronous client does."""

    @functools.wraps(method)
    async def call(self: AIOKafkaAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(method, *args, **kwargs)

    call.__doc__ = f"Do what :meth:`kafkacore.KafkaAdminClient.{method.__name__}` does."
    return call


class AIOKafkaAdminClient:
    """A client that manages the topics, groups, configurations and brokers of a cluster in an event loop.

    It has the methods of :class:`~kafkacore.KafkaAdminClient` as coroutines, with the same arguments and
    results, and three more methods of aiokafka 0.14. All tasks of one event loop may use it; their calls run
    one after the other. :doc:`/guides/asyncio` lists what differs from aiokafka.

    Parameters
    ----------
    loop:
        Deprecated and ignored. The client uses the loop in which :meth:`start` runs.
    **configs:
        The settings of :class:`~kafkacore.KafkaAdminClient`.

    Raises
    ------
    KafkaConfigurationError
        A setting is unknown or has an invalid value.

    Notes
    -----
    The constructor does not connect and needs no running event loop. No thread is started, but asyncio itself
    uses a thread to look up host names.
    """

    def __init__(
        self,
        *positional: object,
        loop: asyncio.AbstractEventLoop | None = None,
        **configs: Unpack[AdminConfig],
    ) -> None:
        self._admin: KafkaAdminClient | None = None
        refuse_positional(type(self).__name__, positional)
        if loop is not None:
            warnings.warn("the argument loop is deprecated and ignored", DeprecationWarning, stacklevel=2)
        settings: dict[str, Any] = DEFAULTS | dict(configs)
        settings.pop("api_version", None)
        self.config = resolve({}, settings)
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        #: Held by the call that uses the connections.
        self._turn = asyncio.Lock()

    # ---- Life cycle --------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Connect to the cluster. After an error or a cancellation, the method can be called again.

        With ``bootstrap_timeout_ms=0``, the method does not connect, and the first call does.

        Raises
        ------
        NoBrokersAvailable
            None of ``bootstrap_servers`` responded within ``bootstrap_timeout_ms``.
        AuthenticationFailedError
            The broker rejected the client's credentials, or the broker's certificate is not valid.
        IllegalStateError
            The client has been started or closed before.
        """
        if self._is_closed:
            raise IllegalStateError("this AIOKafkaAdminClient is closed; create a new one")
        if self._admin is not None:
            raise IllegalStateError("start() was called twice")
        self._loop = loop = asyncio.get_running_loop()
        settings = {**self._settings, "bootstrap_timeout_ms": 0}
        TokenProviderCaller.wrap(settings, loop)
        fetches: list[Fetch] = []
        with fetching_by(fetches.append):
            self._admin = admin = KafkaAdminClient(**settings)
        client = admin._requester.client
        assert isinstance(client.selector, Selector)
        client.event_wait = LoopWait(client.selector, loop)
        client.states.resolver = loop_resolver(loop)
        try:
            for fetch in fetches:
                await loop.run_in_executor(None, fetch)
            timeout_ms = self.config["bootstrap_timeout_ms"]
            if timeout_ms > 0:
                await self._call(lambda admin: admin._requester.await_bootstrap(timeout_ms))
        except BaseException:
            self._disconnect()
            raise

    async def close(self) -> None:
        """Close the connections. A call that waits for a broker raises ``IllegalStateError``."""
        self._is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        admin = getattr(self, "_admin", None)
        if admin is None:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        close_in_loop(self._loop, admin.close)

    def __reduce__(self) -> NoReturn:
        refuse_copy(self, "its connections belong to this process; create one in each process")

    def __repr__(self) -> str:
        servers = servers_text(self.config)
        return f"<AIOKafkaAdminClient client_id={self.config['client_id']!r} servers={servers}>"

    async def _call(
        self, method: Callable[Concatenate[KafkaAdminClient, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async with self._turn:
            admin = self._admin
            if admin is None:
                state = "closed; create a new one" if self._is_closed else "not started: await start()"
                raise IllegalStateError(f"this AIOKafkaAdminClient is {state}")
            return await _greenlets.run(method, admin, *args, **kwargs)

    def metrics(self, raw: bool = False) -> Any:
        """Return the current metrics, as :meth:`kafkacore.KafkaAdminClient.metrics` does."""
        return None if self._admin is None else self._admin.metrics(raw)

    # ---- Topics ------------------------------------------------------------------------------------------
    list_topics = _coroutine(KafkaAdminClient.list_topics)
    describe_topics = _coroutine(KafkaAdminClient.describe_topics)
    describe_topic_partitions = _coroutine(KafkaAdminClient.describe_topic_partitions)
    create_topics = _coroutine(KafkaAdminClient.create_topics)
    delete_topics = _coroutine(KafkaAdminClient.delete_topics)
    wait_for_topics = _coroutine(KafkaAdminClient.wait_for_topics)
    create_partitions = _coroutine(KafkaAdminClient.create_partitions)
    delete_records = _coroutine(KafkaAdminClient.delete_records)
    list_partition_offsets = _coroutine(KafkaAdminClient.list_partition_offsets)
    elect_leaders = _coroutine(KafkaAdminClient.elect_leaders)
    alter_partition_reassignments = _coroutine(KafkaAdminClient.alter_partition_reassignments)
    list_partition_reassignments = _coroutine(KafkaAdminClient.list_partition_reassignments)

    # ---- Configurations ----------------------------------------------------------------------------------
    describe_configs = _coroutine(KafkaAdminClient.describe_configs)
    alter_configs = _coroutine(KafkaAdminClient.alter_configs)
    reset_configs = _coroutine(KafkaAdminClient.reset_configs)
    list_config_resources = _coroutine(KafkaAdminClient.list_config_resources)
    list_client_metrics_resources = _coroutine(KafkaAdminClient.list_client_metrics_resources)

    # ---- Groups ------------------------------------------------------------------------------------------
    list_groups = _coroutine(KafkaAdminClient.list_groups)
    describe_groups = _coroutine(KafkaAdminClient.describe_groups)
    delete_groups = _coroutine(KafkaAdminClient.delete_groups)
    remove_group_members = _coroutine(KafkaAdminClient.remove_group_members)
    list_group_offsets = _coroutine(KafkaAdminClient.list_group_offsets)
    alter_group_offsets = _coroutine(KafkaAdminClient.alter_group_offsets)
    reset_group_offsets = _coroutine(KafkaAdminClient.reset_group_offsets)
    delete_group_offsets = _coroutine(KafkaAdminClient.delete_group_offsets)
    describe_consumer_groups = describe_groups

    async def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """Return the id and the protocol type of every group, as aiokafka does. See :meth:`list_groups`."""
        listed = await self.list_groups(broker_ids)
        return [(group["group_id"], group["protocol_type"]) for group in listed]

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, as aiokafka does. See :meth:`list_group_offsets`.

        Parameters
        ----------
        group_id:
            Name of the group.
        group_coordinator_id:
            Ignored, because the client finds the coordinator.
        partitions:
            Partitions to return; ``None`` for all partitions with a committed offset.
        """
        return (await self.list_group_offsets({group_id: partitions}))[group_id]

    # ---- Transactions ------------------------------------------------------------------------------------
    list_transactions = _coroutine(KafkaAdminClient.list_transactions)
    describe_transactions = _coroutine(KafkaAdminClient.describe_transactions)
    find_hanging_transactions = _coroutine(KafkaAdminClient.find_hanging_transactions)
    describe_producers = _coroutine(KafkaAdminClient.describe_producers)
    abort_transaction = _coroutine(KafkaAdminClient.abort_transaction)
    fence_producers = _coroutine(KafkaAdminClient.fence_producers)

    # ---- Cluster -----------------------------------------------------------------------------------------
    describe_cluster = _coroutine(KafkaAdminClient.describe_cluster)
    describe_log_dirs = _coroutine(KafkaAdminClient.describe_log_dirs)
    alter_replica_log_dirs = _coroutine(KafkaAdminClient.alter_replica_log_dirs)
    describe_metadata_quorum = _coroutine(KafkaAdminClient.describe_metadata_quorum)
    describe_features = _coroutine(KafkaAdminClient.describe_features)
    update_features = _coroutine(KafkaAdminClient.update_features)
    api_versions = _coroutine(KafkaAdminClient.api_versions)
    get_broker_version_data = _coroutine(KafkaAdminClient.get_broker_version_data)

    # ---- Users and access control ------------------------------------------------------------------------
    create_delegation_token = _coroutine(KafkaAdminClient.create_delegation_token)
    renew_delegation_token = _coroutine(KafkaAdminClient.renew_delegation_token)
    expire_delegation_token = _coroutine(KafkaAdminClient.expire_delegation_token)
    describe_delegation_tokens = _coroutine(KafkaAdminClient.describe_delegation_tokens)
    describe_acls = _coroutine(KafkaAdminClient.describe_acls)
    create_acls = _coroutine(KafkaAdminClient.create_acls)
    delete_acls = _coroutine(KafkaAdminClient.delete_acls)
    alter_user_scram_credentials = _coroutine(KafkaAdminClient.alter_user_scram_credentials)
    describe_user_scram_credentials = _coroutine(KafkaAdminClient.describe_user_scram_credentials)
    describe_client_quotas = _coroutine(KafkaAdminClient.describe_client_quotas)
    alter_client_quotas = _coroutine(KafkaAdminClient.alter_client_quotas)
