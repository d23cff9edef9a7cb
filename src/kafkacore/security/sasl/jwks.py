"""The keys that a broker believes tokens by: a JWKS (RFC 7517) in a file or at an HTTPS address.

In: where it is. Out: public keys by their ids. Does not know: tokens. Needs the extra ``[oauth]``.

A key of a token's own choice is never used, nor a symmetric one: who can check with it can sign with it.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.security.https import HttpsOptions, checked_url, fetch
from kafkacore.security.sasl.oauth_token import json_object

logger = logging.getLogger(__name__)

#: Broker property; where the keys are.
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
#: Ids that the set does not have are kept, so that a stranger's tokens have it fetched only once.
MAX_MISSING_IDS: Final = 1000
MISSING_FOR_MS: Final = 60_000.0
#: And however many ids there are, the set is not asked for more often than this because of them.
MIN_EXPEDITED_MS: Final = 10_000.0
MAX_KEY_ID_CHARS: Final = 1000
#: Whether a file has changed is looked at once in this time.
FILE_LOOK_MS: Final = 1000.0
MIN_RSA_BITS: Final = 2048
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
_KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})


class VerificationKey(NamedTuple):
    """A public key; ``algorithm`` is the only one that it is for, if its owner said so."""

    jwk: jwt.PyJWK
    algorithm: str | None

    def fits(self, algorithm: str) -> bool:
        """Whether a signature by this algorithm may be checked with it."""
        if self.algorithm is not None:
            return self.algorithm == algorithm
        if self.jwk.key_type == "RSA":
            return algorithm[:2] in ("RS", "PS")
        return self.jwk.algorithm_name == algorithm


class KeySet:
    """Keys that are there now."""

    def __init__(self, keys: list[VerificationKey]) -> None:
        self._by_id = {entry.jwk.key_id: entry for entry in keys if entry.jwk.key_id}
        self._only = keys[0] if len(keys) == 1 else None

    @classmethod
    def parse(cls, document: bytes, source: str) -> KeySet:
        """The set of a document; keys for something else, or of a kind that is not known, are left out.

        Raises
        ------
        KafkaError
            It is no set, or none of its keys can be used.
        """
        try:
            listed = json_object(document).get("keys")
        except ValueError as error:
            raise KafkaError(f"{source} is no JSON Web Key Set: {error}") from None
        keys = [key for entry in (listed if isinstance(listed, list) else []) if (key := _usable(entry))]
        if not keys:
            raise KafkaError(f"{source} has no key that signatures can be checked by")
        return cls(keys)

    def key(self, key_id: str | None) -> VerificationKey | None:
        """Of a token that names none only a lone key can be meant."""
        return self._only if key_id is None else self._by_id.get(key_id)


def _usable(entry: object) -> VerificationKey | None:
    if not isinstance(entry, dict) or entry.get("kty") not in _KEY_TYPES or entry.get("use", "sig") != "sig":
        return None
    # What a private key adds is not wanted, should somebody have published it.
    public = {name: value for name, value in entry.items() if name not in _PRIVATE}
    try:
        key = jwt.PyJWK(public)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        logger.warning("a key of the set cannot be used: %s", type(error).__name__)
        return None
    weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS
    return None if weak else VerificationKey(key, entry.get("alg"))


class KeySource(ABC):
    """Where keys come from. It is closed when its broker is."""

    @abstractmethod
    def key(self, key_id: str | None) -> VerificationKey | None:
        """At once, from memory; ``None`` if it is not there, or not yet."""

    def close(self) -> None:  # noqa: B027
        """End what runs for it."""


class FileKeys(KeySource):
    """The set of a file, read again when the file has changed; unusable, the old one stays."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._seen = self._identity()
        self._looked_at_ms = clock.monotonic_ms()
        self._keys = self._read()

    def key(self, key_id: str | None) -> VerificationKey | None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_at_ms >= FILE_LOOK_MS:
            self._looked_at_ms = now_ms
            self._look()
        return self._keys.key(key_id)

    def _look(self) -> None:
        try:
            seen = self._identity()
            if seen != self._seen:
                self._seen = seen
                self._keys = self._read()
        except KafkaError as error:
            logger.error("the keys stay as they were: %s", error)

    def _identity(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise KafkaConfigurationError(f"{JWKS_URL}: {error}") from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> KeySet:
        try:
            document = self._path.read_bytes()
        except OSError as error:
            raise KafkaConfigurationError(f"{JWKS_URL}: {error}") from error
        return KeySet.parse(document, str(self._path))


class RefreshTimes(NamedTuple):
    """Milliseconds: between two fetches of a set, and after the first failure and after many."""

    refresh_ms: float = 3_600_000.0
    retry_ms: float = 100.0
    retry_max_ms: float = 10_000.0


class HttpsKeys(KeySource):
    """The set of an address, fetched before the broker serves, and again from time to time and when a token
    names a key that it does not have, by a thread of its own. (Kafka's ``RefreshingHttpsJwks``.)"""

    def __init__(self, get: Callable[[], bytes], source: str, times: RefreshTimes, clock: Clock) -> None:
        self._get = get
        self._source = source
        self._times = times
        self._clock = clock
        self._failures = 0
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._condition = threading.Condition(threading.RLock())
        self._wanted = self._closed = False
        self._keys = KeySet.parse(get(), source)
        self._fetched_at_ms = clock.monotonic_ms()
        self._thread = threading.Thread(target=self._run, name="kafka-jwks-refresh", daemon=True)
        self._thread.start()

    def key(self, key_id: str | None) -> VerificationKey | None:
        found = self._keys.key(key_id)
        if found is None and key_id is not None and len(key_id) <= MAX_KEY_ID_CHARS:
            self._expedite(key_id)
        return found

    def _expedite(self, key_id: str) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._condition:
            if now_ms < self._missing.get(key_id, 0.0) or now_ms < self._fetched_at_ms + MIN_EXPEDITED_MS:
                return
            self._missing[key_id] = now_ms + MISSING_FOR_MS
            self._missing.move_to_end(key_id)
            if len(self._missing) > MAX_MISSING_IDS:
                self._missing.popitem(last=False)
            self._wanted = True
            self._condition.notify_all()

    def refresh(self) -> float:
        """Fetch the set now; if there is none the old one stays. When to come again, in ms."""
        times = self._times
        try:
            self._keys = KeySet.parse(self._get(), self._source)
            self._failures = 0
            next_ms = times.refresh_ms
        except KafkaError as error:
            next_ms = min(times.retry_ms * 2.0 ** min(self._failures, 32), times.retry_max_ms)
            self._failures += 1
            logger.warning("the keys stay as they were, trying again in %.0f ms: %s", next_ms, error)
        self._fetched_at_ms = self._clock.monotonic_ms()
        return next_ms

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        # It may be waiting for an answer, and ends by itself then.
        self._thread.join(1.0)

    def _run(self) -> None:
        next_ms = self._times.refresh_ms
        while True:
            with self._condition:
                self._clock.wait_for(self._condition, lambda: self._closed or self._wanted, next_ms)
                if self._closed:
                    return
                self._wanted = False
            next_ms = self.refresh()


def key_source(url: str, options: HttpsOptions, times: RefreshTimes, clock: Clock) -> KeySource:
    """Of the broker property ``sasl.oauthbearer.jwks.endpoint.url``; blocks until the keys are there.

    Raises
    ------
    KafkaConfigurationError
        The address is not allowed, or the file cannot be read.
    KafkaError
        The set could not be had, or is none.
    """
    checked_url(url, JWKS_URL, ("https", "file"))
    if url.startswith("file:"):
        return FileKeys(Path(unquote(urlsplit(url).path)), clock)
    return HttpsKeys(lambda: fetch(url, options, clock=clock), url, times, clock)
