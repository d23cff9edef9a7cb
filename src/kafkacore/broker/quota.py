"""Quotas: limits on bytes produced, bytes fetched, request time, partition changes and new connections.

A request over its quota is not rejected, except for new versions of requests that change partitions. Its
response is sent at once and contains the throttle time. The broker does not read from the connection during
the throttle time (KIP-219). The behaviour is that of Kafka's ``ClientQuotaManager``,
``ClientRequestQuotaManager``, ``ControllerMutationQuotaManager``, ``ConnectionQuotas``, ``Rate`` and
``TokenBucket``. Only the network thread uses this module.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Mapping
from enum import IntEnum
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kafkacore.broker.config.quota_overrides import parse_overrides
from kafkacore.clock import Clock
from kafkacore.errors import ThrottlingQuotaExceededError

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.requests._request import Request

PRODUCE_API_KEY = 0

K = TypeVar("K")


class QuotaKind(IntEnum):
    """Quota types, with the unit of their limits."""

    #: Bytes of Produce requests per second.
    PRODUCE = 0
    #: Bytes of fetched records per second.
    FETCH = 1
    #: Percent of the network thread's time.
    REQUEST = 2
    #: New connections per second.
    CONNECTION = 3
    #: Partitions created or deleted per second.
    CONTROLLER_MUTATION = 4


class QuotaEntity(NamedTuple):
    """The user and client id, or the IP address, to which a quota applies.

    An empty name is the default for all users, client ids or addresses, and ``None`` means that any value
    matches.
    """

    user: str | None
    client_id: str | None
    ip: str | None = None


class WindowedRate:
    """Rate per second over a window of samples.

    As in Kafka, all samples except the newest count as complete.

    Parameters
    ----------
    sample_count:
        Number of samples (``quota.window.num``).
    sample_ms:
        Length of a sample in milliseconds (``quota.window.size.seconds``).
    """

    __slots__ = ("_sample_count", "_sample_ms", "_samples", "used_ms")

    def __init__(self, sample_count: int, sample_ms: float) -> None:
        self._sample_count = sample_count
        self._sample_ms = sample_ms
        # Start time and sum of each sample.
        self._samples: deque[list[float]] = deque()
        self.used_ms = 0.0

    def record(self, amount: float, now_ms: float) -> None:
        self.used_ms = now_ms
        if not self._samples or now_ms - self._samples[-1][0] >= self._sample_ms:
            self._samples.append([now_ms, 0.0])
        self._samples[-1][1] += amount

    def measure(self, now_ms: float) -> tuple[float, float]:
        """Return the rate per second, and the length of its window in milliseconds."""
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._sample_count * self._sample_ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0][0] if samples else 0.0
        missing = self._sample_count - 1 - elapsed_ms // self._sample_ms
        # Until the window is full, add the duration of the samples that do not exist yet. Otherwise the first
        # rates would be too high.
        window_ms = max(elapsed_ms + max(missing, 0) * self._sample_ms, 1.0)
        return sum(amount for _, amount in samples) / window_ms * 1000, window_ms


class _RecentRates(Generic[K]):
    """A rate for each key. The rate of a key that has been inactive for a whole window is removed."""

    def __init__(self, sample_count: int, sample_ms: float) -> None:
        self._sample_count = sample_count
        self._sample_ms = sample_ms
        # The rates by key, least recently used first.
        self._rates: OrderedDict[K, WindowedRate] = OrderedDict()

    def keys(self) -> list[K]:
        """Return the keys with a rate, least recently used first."""
        return list(self._rates)

    def get(self, key: K) -> WindowedRate | None:
        """Return the rate of a key, or ``None`` if it is inactive."""
        return self._rates.get(key)

    def of(self, key: K, now_ms: float) -> WindowedRate:
        """Return or create the rate of a key so that the caller can record into it. Remove inactive rates."""
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = WindowedRate(self._sample_count, self._sample_ms)
        self._rates.move_to_end(key)
        while now_ms - (oldest := next(iter(self._rates.items())))[1].used_ms > self._inactive_ms:
            if oldest[1] is rate:
                break
            del self._rates[oldest[0]]
        return rate

    @property
    def _inactive_ms(self) -> float:
        """Milliseconds after which the rate of an inactive key is 0."""
        return self._sample_count * self._sample_ms


_ANY_CLIENT = QuotaEntity(None, "")


class ClientLimits:
    """The limits of one quota type for all clients.

    As in Kafka, the most specific limit applies. Limits of the named user come before limits of the default
    user, and limits without a user come last. For each user, a limit with the client id comes before a limit
    with the default client id, and a limit without a client id comes last. All clients of a user share the
    limit of the user. A limit set by an API request has precedence over the configuration.

    Parameters
    ----------
    default:
        Limit per second of a client without its own limit; ``None`` for no limit.
    overrides:
        Limits per second by client id.
    """

    def __init__(self, default: float | None = None, overrides: Mapping[str, float] | None = None) -> None:
        self._default = default
        self._overrides = dict(overrides or {})
        self._entities: dict[QuotaEntity, float] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether any client has a limit."""
        return self._default is not None or bool(self._overrides) or bool(self._entities)

    def obeyed(self, client_id: str, user: str) -> tuple[float | None, QuotaEntity]:
        """Return the limit of a client, and the entity whose clients share this limit."""
        entities, shared = self._entities, QuotaEntity(None, client_id)
        if entities:
            for name in (user, ""):
                for client in (client_id, ""):
                    limit = entities.get(QuotaEntity(name, client))
                    if limit is not None:
                        return limit, QuotaEntity(user, client_id)
                limit = entities.get(QuotaEntity(name, None))
                if limit is not None:
                    return limit, QuotaEntity(user, None)
            limit = entities.get(shared)
            if limit is not None:
                return limit, shared
        limit = self._overrides.get(client_id)
        if limit is None:
            limit = entities.get(_ANY_CLIENT, self._default)
        return limit, shared

    def set_entity(self, entity: QuotaEntity, limit: float | None) -> None:
        """Set the limit of an entity; ``None`` removes the limit."""
        if limit is None:
            self._entities.pop(entity, None)
        else:
            self._entities[entity] = limit

    def set_limit(self, client_id: str | None, limit: float | None) -> None:
        """Set the limit of a client id, or the default if ``client_id`` is ``None``.

        A ``limit`` of ``None`` removes the limit.
        """
        if client_id is None:
            self._default = limit
        elif limit is None:
            self._overrides.pop(client_id, None)
        else:
            self._overrides[client_id] = limit


class ClientQuota:
    """Quota of one type for all clients, measured as a rate over a window.

    Parameters
    ----------
    default, overrides:
        See :class:`ClientLimits`.
    sample_count:
        Number of samples (``quota.window.num``).
    sample_ms:
        Length of a sample in milliseconds (``quota.window.size.seconds``).
    max_throttle_ms:
        Maximum throttle time in milliseconds; ``None`` for no maximum.
    """

    def __init__(
        self,
        default: float | None,
        overrides: Mapping[str, float],
        *,
        sample_count: int,
        sample_ms: float,
        max_throttle_ms: float | None = None,
    ) -> None:
        self._limits = ClientLimits(default, overrides)
        self._sample_count = sample_count
        self._sample_ms = sample_ms
        self._max_throttle_ms = max_throttle_ms
        self._rates: _RecentRates[QuotaEntity] = _RecentRates(sample_count, sample_ms)

    @property
    def is_enabled(self) -> bool:
        """Whether any client has a limit."""
        return self._limits.is_enabled

    def limit(self, client_id: str, user: str = "") -> float | None:
        """Return the limit per second of a client, or ``None`` for no limit."""
        return self._limits.obeyed(client_id, user)[0]

    def set_entity(self, entity: QuotaEntity, limit: float | None) -> None:
        """Set the limit of an entity; ``None`` removes it."""
        self._limits.set_entity(entity, limit)

    def set_limit(self, client_id: str | None, limit: float | None) -> None:
        """Set the limit of a client id, or the default. See :meth:`ClientLimits.set_limit`."""
        self._limits.set_limit(client_id, limit)

    def max_in_window(self, client_id: str, user: str = "") -> float | None:
        """Return the largest amount that can be recorded at once without exceeding the limit."""
        limit = self.limit(client_id, user)
        return None if limit is None else limit * (self._sample_count - 1) * self._sample_ms / 1000

    def record_and_get_throttle_ms(
        self, client_id: str, amount: float, now_ms: float, user: str = ""
    ) -> float:
        """Record ``amount``, and return for how many milliseconds to throttle the client."""
        limit, shared = self._limits.obeyed(client_id, user)
        if limit is None:
            return 0.0
        rate = self._rates.of(shared, now_ms)
        rate.record(amount, now_ms)
        observed, window_ms = rate.measure(now_ms)
        if observed <= limit:
            return 0.0
        throttle_ms = float(round((observed - limit) / limit * window_ms))
        return throttle_ms if self._max_throttle_ms is None else min(throttle_ms, self._max_throttle_ms)

    def record(self, client_id: str, amount: float, now_ms: float, user: str = "") -> None:
        """Record ``amount``, which may be negative. It changes the throttle time of the next request."""
        limit, shared = self._limits.obeyed(client_id, user)
        if limit is not None:
            self._rates.of(shared, now_ms).record(amount, now_ms)

    def rate(self, client_id: str, now_ms: float, user: str = "") -> float:
        """Return the current rate per second of a client and of all clients that share its limit."""
        rate = self._rates.get(self._limits.obeyed(client_id, user)[1])
        return 0.0 if rate is None else rate.measure(now_ms)[0]


class TokenBucket:
    """Tokens that are spent at once and refilled at a rate. Their number may be negative.

    Parameters
    ----------
    burst_s:
        Seconds in which an empty bucket becomes full.
    """

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = math.inf
        self._updated_ms = 0.0

    def tokens(self, rate: float, now_ms: float) -> float:
        """Refill the bucket at ``rate`` tokens per second, and return the number of its tokens."""
        refilled = self._tokens + rate * (now_ms - self._updated_ms) / 1000
        self._tokens, self._updated_ms = min(refilled, rate * self._burst_s), now_ms
        return self._tokens

    def spend(self, amount: float, rate: float, now_ms: float) -> float:
        """Remove tokens from the bucket, and return the number of tokens that are left."""
        self._tokens = self.tokens(rate, now_ms) - amount
        return self._tokens

    def is_full(self, rate: float, now_ms: float) -> bool:
        return self.tokens(rate, now_ms) >= rate * self._burst_s


class ControllerMutationQuota:
    """Limits on the number of partitions that clients create and delete per second (KIP-599).

    Parameters
    ----------
    sample_count:
        Number of samples (``controller.quota.window.num``).
    sample_ms:
        Length of a sample in milliseconds (``controller.quota.window.size.seconds``). After ``sample_count``
        idle samples, a client may change at once as many partitions as its limit allows in ``sample_count``
        samples.
    """

    def __init__(self, sample_count: int, sample_ms: float) -> None:
        self._limits = ClientLimits()
        self._burst_s = sample_count * sample_ms / 1000
        self._buckets: dict[QuotaEntity, tuple[TokenBucket, float]] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether any client has a limit."""
        return self._limits.is_enabled

    def set_entity(self, entity: QuotaEntity, limit: float | None) -> None:
        """Set the limit of an entity; ``None`` removes it."""
        self._limits.set_entity(entity, limit)

    def limit(self, client_id: str, user: str = "") -> float | None:
        """Return the limit per second of a client, or ``None`` for no limit."""
        return self._limits.obeyed(client_id, user)[0]

    def throttle_ms(
        self, client_id: str, amount: int, now_ms: float, user: str = "", *, is_strict: bool
    ) -> float:
        """Record a change of partitions, and return for how many milliseconds to throttle the client.

        Parameters
        ----------
        client_id, user:
            The client.
        amount:
            Number of partitions.
        now_ms:
            Monotonic time in milliseconds.
        is_strict:
            Whether the change is rejected, and not recorded, if earlier changes have exceeded the limit. If
            so, a change that is the first to exceed the limit does not throttle the client.
        """
        limit, shared = self._limits.obeyed(client_id, user)
        if limit is None:
            return 0.0
        bucket = self._bucket(shared, limit, now_ms)
        left = bucket.tokens(limit, now_ms)
        if not is_strict or left >= 0:
            spent = bucket.spend(amount, limit, now_ms)
            left = 0.0 if is_strict else spent
        return float(round(max(-left, 0.0) / limit * 1000))

    def _bucket(self, entity: QuotaEntity, limit: float, now_ms: float) -> TokenBucket:
        """Return the bucket of an entity. Before a new bucket is created, remove all full buckets."""
        found = self._buckets.get(entity)
        bucket = TokenBucket(self._burst_s) if found is None else found[0]
        if found is None:
            self._buckets = {
                other: (kept, rate)
                for other, (kept, rate) in self._buckets.items()
                if not kept.is_full(rate, now_ms)
            }
        self._buckets[entity] = bucket, limit
        return bucket


class IpConnectionQuota:
    """Limits on the number of new connections per second from an IP address (KIP-612).

    Parameters
    ----------
    sample_count:
        Number of samples (``quota.window.num``).
    sample_ms:
        Length of a sample in milliseconds (``quota.window.size.seconds``), and the maximum throttle time.
    """

    def __init__(self, sample_count: int, sample_ms: float) -> None:
        self._max_throttle_ms = sample_ms
        self._limits: dict[str, float] = {}
        self._rates: _RecentRates[str] = _RecentRates(sample_count, sample_ms)

    def set_limit(self, ip: str, limit: float | None) -> None:
        """Set the limit of an address; ``None`` removes the limit.

        If ``ip`` is empty, set the default limit of all other addresses.
        """
        if limit is None:
            self._limits.pop(ip, None)
        else:
            self._limits[ip] = limit

    def limit(self, ip: str) -> float | None:
        """Return the limit per second of an address, or ``None`` for no limit."""
        return self._limits.get(ip, self._limits.get(""))

    def count_and_get_throttle_ms(self, host: str, now_ms: float) -> float:
        """Count a new connection and return 0, or return the throttle time in ms if it exceeds the limit.

        As in Kafka, a connection that exceeds the limit does not count.
        """
        if not self._limits:
            return 0.0
        ip = canonical_ip(host)
        limit = self.limit(ip)
        if limit is None:
            return 0.0
        rate = self._rates.of(ip, now_ms)
        rate.record(1, now_ms)
        observed, window_ms = rate.measure(now_ms)
        if observed <= limit:
            return 0.0
        rate.record(-1, now_ms)
        return min(float(round((observed - limit) / limit * window_ms)) or 1.0, self._max_throttle_ms)


def canonical_ip(text: str) -> str:
    """Return an IP address in its shortest form. Convert an IPv4 address in IPv6 notation to IPv4.

    Raises
    ------
    ValueError
        The text is not an IP address.
    """
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


class Quotas:
    """All quotas of a broker.

    Parameters
    ----------
    config:
        Configuration of the broker, with the default quotas.
    clock:
        Source of the monotonic time.
    """

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        sample_ms = config.quota_window_size_seconds * 1000.0
        self._kinds = {
            kind: ClientQuota(
                default,
                parse_overrides(f"quota.{name}.overrides", overrides),
                sample_count=config.quota_window_num,
                sample_ms=sample_ms,
                max_throttle_ms=sample_ms if kind is QuotaKind.REQUEST else None,
            )
            for kind, name, default, overrides in (
                (
                    QuotaKind.PRODUCE,
                    "producer",
                    config.quota_producer_default,
                    config.quota_producer_overrides,
                ),
                (QuotaKind.FETCH, "consumer", config.quota_consumer_default, config.quota_consumer_overrides),
                (QuotaKind.REQUEST, "request", config.quota_request_default, config.quota_request_overrides),
            )
        }
        #: Limits on the number of partitions that clients create and delete.
        self.mutations = ControllerMutationQuota(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000.0
        )
        #: Limits on the number of new connections.
        self.connections = IpConnectionQuota(config.quota_window_num, sample_ms)
        #: Number of responses with a throttle time.
        self.throttled_count = 0
        #: Whether there is a limit of any type for any client.
        self.is_enabled = False
        self._look()

    def _look(self) -> None:
        self.is_enabled = self.mutations.is_enabled or any(each.is_enabled for each in self._kinds.values())

    def of(self, kind: QuotaKind) -> ClientQuota:
        return self._kinds[kind]

    def set_limit(self, kind: QuotaKind, client_id: str | None, limit: float | None) -> None:
        """Set a limit, effective from the next request on. See :meth:`ClientQuota.set_limit`."""
        self._kinds[kind].set_limit(client_id, limit)
        self._look()

    def set_entity(self, kind: QuotaKind, entity: QuotaEntity, limit: float | None) -> None:
        """Set a limit, effective from the next request on. See :meth:`ClientQuota.set_entity`."""
        if kind is QuotaKind.CONNECTION:
            assert entity.ip is not None, "connections are limited by address"
            self.connections.set_limit(entity.ip, limit)
            return
        if kind is QuotaKind.CONTROLLER_MUTATION:
            self.mutations.set_entity(entity, limit)
        else:
            self._kinds[kind].set_entity(entity, limit)
        self._look()

    def record_mutation(self, request: Request, partitions: int, *, strict_since: int) -> None:
        """Record that a request creates or deletes partitions. The response returns the throttle time.

        Parameters
        ----------
        request:
            The request.
        partitions:
            Number of partitions.
        strict_since:
            First version of the API that may return the error.

        Raises
        ------
        ThrottlingQuotaExceededError
            The client had already exceeded its limit, so the change is rejected.
        """
        if not self.mutations.is_enabled:
            return
        now_ms, is_strict = self._clock.monotonic_ms(), request.version >= strict_since
        user = request.context.principal.name
        throttle_ms = self.mutations.throttle_ms(
            request.client_id or "", partitions, now_ms, user, is_strict=is_strict
        )
        if throttle_ms > 0:
            request.throttled_until_ms = now_ms + throttle_ms
            if is_strict:
                raise ThrottlingQuotaExceededError("The throttling quota has been exceeded.")

    def on_response(self, request: Request, response: object) -> None:
        """Record a request and its response, and set the throttle time.

        The throttle time is set in the response, if it has a field for it, and in ``request.throttle_ms``.
        ``response`` is ``None`` if the client does not expect a response (acks=0).
        """
        now_ms = self._clock.monotonic_ms()
        throttle_ms = 0.0
        if request.api_key == PRODUCE_API_KEY:
            throttle_ms = self._kinds[QuotaKind.PRODUCE].record_and_get_throttle_ms(
                request.client_id or "", request.size, now_ms, request.context.principal.name
            )
        if response is not None:
            throttle_ms = max(throttle_ms, self._request_throttle_ms(request, now_ms))
        # A request that exceeded the limit of partition changes may have waited before this response, so only
        # the rest of its throttle time counts.
        throttle_ms = max(throttle_ms, request.throttled_until_ms - now_ms)
        self._pause(request, throttle_ms)
        if hasattr(response, "throttle_time_ms"):
            # Set the field even if the time is 0, because a response object may be reused.
            response.throttle_time_ms = int(throttle_ms)

    def fetch_throttle_ms(self, request: Request, size: int) -> int:
        """Return 0 if a Fetch may return ``size`` bytes of records.

        Otherwise return the throttle time in milliseconds; the response must then contain no records.
        """
        now_ms = self._clock.monotonic_ms()
        client_id, user = request.client_id or "", request.context.principal.name
        fetch = self._kinds[QuotaKind.FETCH]
        throttle_ms = fetch.record_and_get_throttle_ms(client_id, size, now_ms, user)
        throttle_ms = max(throttle_ms, self._request_throttle_ms(request, now_ms))
        if throttle_ms > 0:
            fetch.record(client_id, -size, now_ms, user)
        self._pause(request, throttle_ms)
        return int(throttle_ms)

    def _request_throttle_ms(self, request: Request, now_ms: float) -> float:
        # The time that the request spent waiting in a purgatory does not count.
        worked_ms = (request.waits_since_ms or now_ms) - request.began_ms
        return self._kinds[QuotaKind.REQUEST].record_and_get_throttle_ms(
            request.client_id or "", worked_ms / 10, now_ms, request.context.principal.name
        )

    def _pause(self, request: Request, throttle_ms: float) -> None:
        request.quotas = None
        request.throttle_ms = throttle_ms
        self.throttled_count += throttle_ms > 0

    def max_fetch_bytes(self, request: Request) -> float | None:
        """Return the largest size of a Fetch response that the quota can ever allow, in bytes."""
        user = request.context.principal.name
        return self._kinds[QuotaKind.FETCH].max_in_window(request.client_id or "", user)
