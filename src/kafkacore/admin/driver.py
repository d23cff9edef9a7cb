"""Carry out an operation on many items: find the broker of each item, send the requests, and retry.

The behaviour is that of Kafka's ``AdminApiDriver`` and its lookup strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from kafkacore.admin.requester import ANY, CONTROLLER, Requester
from kafkacore.client.cluster import is_address
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.client.find_coordinator import BATCHED_LOOKUP_FROM, GROUP, TRANSACTION
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedLeaderEpochError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MalformedMessageError,
    NotControllerError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol import Request, RequestBuilder
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.structs import Node, TopicPartition, partition_name

logger = logger_of(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

#: Errors of an item after which its broker is looked up again.
MOVED_ERRORS: Final = (
    CoordinatorNotAvailableError,
    FencedLeaderEpochError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NotControllerError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
)
#: Errors of an item after which the same broker is asked again.
BUSY_ERRORS: Final = (CoordinatorLoadInProgressError,)


class Lookup(Protocol[K_contra]):
    """A strategy that finds the broker of each item."""

    #: Whether the broker of an item never changes. A retry then goes to the same broker.
    is_fixed: bool

    def __call__(
        self, requester: Requester, keys: Sequence[K_contra], deadline_ms: float
    ) -> Mapping[Any, int | KafkaError]:
        """Return the id of the broker for each item, or an error."""


class _Fixed:
    """A lookup that sends no request: ``destination`` returns a broker's id, ``ANY`` or ``CONTROLLER``."""

    is_fixed = True

    def __init__(self, destination: Callable[[Any], int]) -> None:
        self._destination = destination

    def __call__(
        self, requester: Requester, keys: Sequence[Any], deadline_ms: float
    ) -> Mapping[Any, int | KafkaError]:
        return {key: self._destination(key) for key in keys}


#: Lookup for requests that any broker can answer.
ANY_BROKER: Final = _Fixed(lambda key: ANY)
#: Lookup for requests to the controller. Other brokers may forward such requests to the controller.
TO_CONTROLLER: Final = _Fixed(lambda key: CONTROLLER)
#: Lookup for items that are the ids of brokers.
BY_BROKER_ID: Final = _Fixed(lambda key: int(key))


def to_destination(destination: Callable[[Any], int]) -> Lookup[Any]:
    """Return a lookup that sends each item to the broker that ``destination`` returns for it."""
    return _Fixed(destination)


def to_broker(broker_id: int) -> Lookup[Any]:
    """Return a lookup that sends all items to one broker."""
    return _Fixed(lambda key: broker_id)


class Coordinators:
    """Finds the coordinators of group ids or transactional ids."""

    is_fixed = False

    def __init__(self, key_type: int) -> None:
        self._key_type = key_type

    def __call__(
        self, requester: Requester, keys: Sequence[str], deadline_ms: float
    ) -> Mapping[Any, int | KafkaError]:
        requests = [(ANY, self._request(keys))]
        outcomes = requester.send_all(requests, deadline_ms)
        asked: list[Sequence[str]] = [keys]
        if len(keys) > 1 and isinstance(outcomes[0], UnsupportedVersionError):
            asked = [[key] for key in keys]
            outcomes = requester.send_all([(ANY, self._request(each)) for each in asked], deadline_ms)
        found: dict[str, int | KafkaError] = {}
        for each, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, KafkaError):
                found.update(dict.fromkeys(each, outcome))
                continue
            message: Any = outcome
            for entry in message.coordinators or [message]:
                key = entry.key if message.coordinators else each[0]
                found[key] = self._node_id(requester, key, entry)
        return found

    def _request(self, keys: Sequence[str]) -> Request[Any]:
        return RequestBuilder(FindCoordinatorRequest, partial(self._build, keys))

    def _build(self, keys: Sequence[str], version: int) -> FindCoordinatorRequest:
        if version >= BATCHED_LOOKUP_FROM:
            return FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=list(keys))
        if len(keys) > 1:
            raise UnsupportedVersionError(f"FindCoordinator has one key before version {BATCHED_LOOKUP_FROM}")
        return FindCoordinatorRequest(key=keys[0], key_type=self._key_type)

    @staticmethod
    def _node_id(requester: Requester, key: str, entry: Any) -> int | KafkaError:
        if entry.error_code:
            return for_code(entry.error_code)(entry.error_message or f"coordinator of {key!r}")
        if not is_address(entry.node_id, entry.host, entry.port):
            return MalformedMessageError(
                f"invalid coordinator: node {entry.node_id} at {entry.host!r}:{entry.port} for {key!r}"
            )
        requester.learn(Node(entry.node_id, entry.host, entry.port))
        return int(entry.node_id)


#: Lookups for items that are group ids, and for items that are transactional ids.
GROUP_COORDINATORS: Final = Coordinators(GROUP)
TRANSACTION_COORDINATORS: Final = Coordinators(TRANSACTION)


class Leaders:
    """Finds the leaders of partitions."""

    is_fixed = False

    def __call__(
        self, requester: Requester, keys: Sequence[TopicPartition], deadline_ms: float
    ) -> Mapping[Any, int | KafkaError]:
        topics = sorted({tp.topic for tp in keys})
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=False,
        )
        outcome = requester.send_all([(ANY, request)], deadline_ms)[0]
        if isinstance(outcome, KafkaError):
            return dict.fromkeys(keys, outcome)
        message: Any = outcome
        for broker in message.brokers:
            if is_address(broker.node_id, broker.host, broker.port):
                requester.learn(Node(broker.node_id, broker.host, broker.port, broker.rack))
        found: dict[TopicPartition, int | KafkaError] = {}
        for topic in message.topics:
            if topic.name is None:
                # A topic has no name if the request asked for it by id. This request contains only names.
                continue
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                found[tp] = (
                    partition.leader_id
                    if partition.leader_id >= 0
                    else LeaderNotAvailableError(f"partition {partition_name(tp)} has no leader")
                )
            if topic.error_code:
                error = for_code(topic.error_code)(f"topic {topic.name!r}")
                found.update({tp: error for tp in keys if tp.topic == topic.name})
        for tp in keys:
            if tp not in found:
                found[tp] = UnknownTopicOrPartitionError(f"partition {partition_name(tp)} does not exist")
        return found


#: Lookup for items that are partitions.
LEADERS: Final = Leaders()


class Driver:
    """Carries out operations on items. Each item succeeds or fails independently.

    Parameters
    ----------
    requester:
        Sends the requests.
    backoff:
        Determines the wait before a retry.
    """

    def __init__(self, requester: Requester, backoff: ExponentialBackoff) -> None:
        self.requester = requester
        self._backoff = backoff

    def run(
        self,
        lookup: Lookup[K],
        keys: Iterable[K],
        build: Callable[[Sequence[K]], Request[Any]],
        read: Callable[[Any, Sequence[K]], Iterable[tuple[K, V | KafkaError]]],
        timeout_ms: float,
        *,
        retried: tuple[type[KafkaError], ...] = (),
    ) -> dict[K, V | KafkaError]:
        """Send the items to their brokers until each has a value or an error.

        Parameters
        ----------
        lookup:
            Finds the broker of each item.
        keys:
            The items.
        build:
            Returns a request for items of the same broker. If ``build`` raises ``UnsupportedVersionError``
            for the broker's version, each item gets a request of its own.
        read:
            Returns the value or the error of each item from a response. If ``read`` raises an error, every
            item of the request gets this error.
        timeout_ms:
            Time limit in milliseconds.
        retried:
            Further errors after which the same broker is asked again.

        Returns
        -------
        dict
            The value or the error of each item, in the order of ``keys``.
        """
        wanted = list(dict.fromkeys(keys))
        clock = self.requester.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        done: dict[K, V | KafkaError] = {}
        last: dict[K, KafkaError] = {}
        nodes: dict[K, int] = {}
        attempt = 0
        while pending := [key for key in wanted if key not in done]:
            self._look_up(
                lookup, [key for key in pending if key not in nodes], nodes, done, last, deadline_ms
            )
            for key, outcome in self._ask(lookup, nodes, pending, build, read, deadline_ms):
                if not isinstance(outcome, KafkaError):
                    done[key] = outcome
                elif isinstance(outcome, MOVED_ERRORS):
                    last[key] = outcome
                    nodes.pop(key, None)
                elif isinstance(outcome, BUSY_ERRORS + retried):
                    last[key] = outcome
                else:
                    done[key] = outcome
            pending = [key for key in wanted if key not in done]
            if not pending:
                break
            wait_ms = self._backoff.backoff_ms(attempt)
            attempt += 1
            if clock.monotonic_ms() + wait_ms >= deadline_ms:
                for key in pending:
                    done[key] = _at_the_time_limit(key, last.get(key), timeout_ms)
                break
            logger.debug("retrying %d of %d items", len(pending), len(wanted))
            if lookup.is_fixed and any(isinstance(last.get(key), NotControllerError) for key in pending):
                self.requester.refresh(deadline_ms)
            self.requester.pause(wait_ms)
        return {key: done[key] for key in wanted}

    def _look_up(
        self,
        lookup: Lookup[K],
        keys: Sequence[K],
        nodes: dict[K, int],
        done: dict[K, V | KafkaError],
        last: dict[K, KafkaError],
        deadline_ms: float,
    ) -> None:
        if not keys:
            return
        found = lookup(self.requester, keys, deadline_ms)
        for key in keys:
            node = found.get(key, MalformedMessageError(f"the response names no broker for {key!r}"))
            if not isinstance(node, KafkaError):
                nodes[key] = node
            elif isinstance(node, MOVED_ERRORS + BUSY_ERRORS):
                last[key] = node
            else:
                done[key] = node

    def _ask(
        self,
        lookup: Lookup[K],
        nodes: Mapping[K, int],
        pending: Sequence[K],
        build: Callable[[Sequence[K]], Request[Any]],
        read: Callable[[Any, Sequence[K]], Iterable[tuple[K, V | KafkaError]]],
        deadline_ms: float,
    ) -> list[tuple[K, V | KafkaError]]:
        """Send one request per broker, and return the outcome of every item that was sent."""
        by_node: dict[int, list[K]] = {}
        for key in pending:
            if key in nodes:
                by_node.setdefault(nodes[key], []).append(key)
        groups = list(by_node.items())
        outcomes: list[tuple[K, V | KafkaError]] = []
        while groups:
            responses = self.requester.send_all(
                [(node, build(keys)) for node, keys in groups], deadline_ms, is_resent=lookup.is_fixed
            )
            singles: list[tuple[int, list[K]]] = []
            for (node, keys), response in zip(groups, responses, strict=True):
                if isinstance(response, UnsupportedVersionError) and len(keys) > 1:
                    singles += [(node, [key]) for key in keys]
                elif isinstance(response, KafkaError):
                    outcomes += [(key, response) for key in keys]
                else:
                    outcomes += _read(read, response, keys)
            groups = singles
        return outcomes


def _at_the_time_limit(key: object, last: KafkaError | None, timeout_ms: float) -> KafkaError:
    """Return the error of an item that has no value at the time limit."""
    if last is not None and not isinstance(last, KafkaConnectionError):
        return last
    reason = "" if last is None else f": {last}"
    name = repr(partition_name(key) if isinstance(key, TopicPartition) else key)
    return KafkaTimeoutError(f"{name}: no response within {timeout_ms:.0f} ms{reason}")


def _read(
    read: Callable[[Any, Sequence[K]], Iterable[tuple[K, V | KafkaError]]], response: Any, keys: Sequence[K]
) -> list[tuple[K, V | KafkaError]]:
    try:
        results: dict[K, V | KafkaError] = dict(read(response, keys))
    except KafkaError as error:
        return [(key, error) for key in keys]
    missing = [key for key in keys if key not in results]
    return [(key, results[key]) for key in keys if key in results] + [
        (key, MalformedMessageError(f"the result of {key!r} is missing from the response")) for key in missing
    ]


def raised_first(results: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Return the values, or raise the first error."""
    values: dict[K, V] = {}
    for key, result in results.items():
        if isinstance(result, KafkaError):
            raise result
        values[key] = result
    return values
