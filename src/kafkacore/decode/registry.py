"""Read schemas by id from a schema registry over HTTP, and cache them for the life of the process.

A schema id always refers to the same schema, so a schema is cached without expiry. A missing id is cached for
:data:`ABSENT_MS`. The number of missing ids requested in that time is limited, so that malicious values
cannot cause a flood of requests. The registry's responses are not trusted: their size, form and number of
references are checked. Redirects are not followed, because they would send the password to another server.

The API is Confluent's Schema Registry API, which Apicurio, Redpanda, and Karapace offer too.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.decode.avro_schema import AvroSchemaError, AvroType, parse_schema
from kafkacore.decode.decoder import quoted
from kafkacore.errors import KafkaConfigurationError, SchemaRegistryError
from kafkacore.logs import logger_of
from kafkacore.security.proxy_url import parse_proxy_url
from kafkacore.security.settings import proxy_url_or_none

if TYPE_CHECKING:
    from kafkacore.client.proxy import Proxy

logger = logger_of(__name__)

#: Option with the URL of the proxy. The default is the proxy of the Kafka clients.
PROXY_OPTION = "schema.registry.proxy.url"
#: Timeout in seconds to connect, and to receive each part of a response.
TIMEOUT_S = 10.0
#: Maximum time in milliseconds to receive a complete response.
ANSWER_MS = 30_000.0
#: Number of attempts for each address.
ATTEMPTS = 3
#: Backoff in milliseconds before the second attempt. The backoff doubles for each further attempt.
RETRY_MS = 200.0
#: Maximum size of a response, in bytes.
MAX_ANSWER_BYTES = 8 * 1024 * 1024
#: How long, in milliseconds, a missing schema is cached.
ABSENT_MS = 30_000.0
#: Maximum number of missing ids requested within :data:`ABSENT_MS`. Once this number is reached, values with
#: another unknown id count as malformed, and no request is sent.
MAX_ABSENT = 100
#: OpenSSL's verification error code → what the user can do about the untrusted certificate.
_REMEDIES = {
    9: "correct the clock of this machine, or renew the certificate",
    10: "renew the certificate",
    62: "set schema.registry.url to a host name in the certificate",
    64: "set schema.registry.url to an IP address in the certificate",
}
_UNKNOWN_ISSUER = "set schema.registry.ssl.cafile to a PEM file with the certificate of the issuer"
#: Maximum number of schemas that one schema may refer to, directly or indirectly.
MAX_REFERENCES = 100


@dataclass(frozen=True)
class RegistryOptions:
    """Address and credentials of a schema registry.

    Parameters
    ----------
    urls:
        Addresses of the registry. They are tried in order.
    auth:
        ``user:password`` for HTTP basic authentication. Messages never contain this text.
    cafile:
        PEM file with the certificates to trust. ``None`` means the system's certificates.
    proxy_url:
        Proxy through which to connect, as in the client setting ``proxy_url``. ``None`` means the proxy of
        the environment variables ``http_proxy`` and ``https_proxy``, if they are set.
    """

    urls: tuple[str, ...]
    auth: str | None = field(default=None, repr=False)
    cafile: str | None = None
    proxy_url: str | None = field(default=None, repr=False)


def registry_options(given: Mapping[str, str]) -> RegistryOptions | None:
    """Return the registry options in ``given``, or ``None`` if no registry is configured.

    Parameters
    ----------
    given:
        Options by lower-case name. Other options are ignored.

    Raises
    ------
    KafkaConfigurationError
        An address is not an http or https URL, or the address of the proxy is invalid.
    """
    text = given.get("schema.registry.url")
    if text is None:
        return None
    urls = []
    auth = given.get("schema.registry.auth")
    for each in text.split(","):
        try:
            parts = urllib.parse.urlsplit(each.strip())
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            sound = False
        if not sound:
            raise KafkaConfigurationError(
                "schema.registry.url must be an address such as https://registry:8081, or a list of them "
                "separated by commas"
            )
        if parts.username is not None:
            auth = auth or urllib.parse.unquote(f"{parts.username}:{parts.password or ''}")
        # Remove the credentials, because the address appears in messages.
        urls.append(
            parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
        )
    proxy_url = given.get(PROXY_OPTION) or None
    proxy_url_or_none(PROXY_OPTION, proxy_url)
    return RegistryOptions(tuple(urls), auth, given.get("schema.registry.ssl.cafile"), proxy_url)


_shared: dict[RegistryOptions, SchemaRegistry] = {}
_shared_lock = threading.Lock()


def shared_registry(options: RegistryOptions) -> SchemaRegistry:
    """Return the registry client for these options, which all decoders of this process share."""
    with _shared_lock:
        return _shared.setdefault(options, SchemaRegistry(options))


def _proxy(url: str | None) -> Proxy | None:
    """Return the proxy with this URL. Import the network code of the clients only if there is a proxy."""
    if url is None:
        return None
    from kafkacore.client.addresses import resolve_host
    from kafkacore.client.proxy import Proxy

    return Proxy(parse_proxy_url(url), resolve_host, SYSTEM_CLOCK)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


class _HttpThroughProxy(urllib.request.HTTPHandler):
    """Opens ``http`` URLs through a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__()
        self._proxy = proxy

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_ProxiedHttp, self._proxy), req)


class _HttpsThroughProxy(urllib.request.HTTPSHandler):
    """Opens ``https`` URLs through a proxy."""

    def __init__(self, proxy: Proxy, tls: ssl.SSLContext) -> None:
        super().__init__(context=tls)
        self._proxy = proxy
        self._tls = tls

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_ProxiedHttps, self._proxy, self._tls), req)


class _ProxiedHttp(HTTPConnection):
    def __init__(self, proxy: Proxy, host: str, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self._proxy = proxy

    def connect(self) -> None:
        self.sock = self._proxy.connect(self.host, self.port, TIMEOUT_S)


class _ProxiedHttps(HTTPSConnection):
    def __init__(self, proxy: Proxy, tls: ssl.SSLContext, host: str, timeout: float) -> None:
        super().__init__(host, timeout=timeout, context=tls)
        self._proxy = proxy
        self._tls = tls

    def connect(self) -> None:
        sock = self._proxy.connect(self.host, self.port, TIMEOUT_S)
        try:
            self.sock = self._tls.wrap_socket(sock, server_hostname=self.host)
        except OSError:
            sock.close()
            raise


class SchemaRegistry:
    """Thread-safe client of a schema registry, which caches schemas.

    Parameters
    ----------
    options:
        Address and credentials of the registry.
    clock:
        Clock for backoff, for timeouts, and for the expiry of cached missing ids.
    """

    def __init__(self, options: RegistryOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        self._proxy = _proxy(options.proxy_url)
        self._lock = threading.Lock()
        self._found: dict[int, AvroType] = {}
        self._absent: dict[int, tuple[float, str]] = {}

    def schema(self, schema_id: int) -> tuple[AvroType | None, str]:
        """Return the schema with an id.

        Returns
        -------
        tuple
            The schema and an empty string. If the schema cannot be used, ``None`` and the reason.

        Raises
        ------
        SchemaRegistryError
            The request failed.
        KafkaConfigurationError
            The certificate file cannot be read.
        """
        with self._lock:
            if schema_id in self._found:
                return self._found[schema_id], ""
            now_ms = self._clock.monotonic_ms()
            self._absent = {n: kept for n, kept in self._absent.items() if now_ms - kept[0] < ABSENT_MS}
            if schema_id in self._absent:
                return None, self._absent[schema_id][1]
            if len(self._absent) >= MAX_ABSENT:
                return None, (
                    f"schema {schema_id} was not requested, because {MAX_ABSENT} other ids were unknown in "
                    f"the last {ABSENT_MS / 1000:.0f} s"
                )
            try:
                answer = self._get(f"/schemas/ids/{schema_id}")
                if answer is None:
                    reason = f"schema {schema_id} is not in the registry"
                else:
                    self._found[schema_id] = self._parse(answer)
                    return self._found[schema_id], ""
            except AvroSchemaError as error:
                reason = f"schema {schema_id}: {error}"
            self._absent[schema_id] = (now_ms, reason)
            return None, reason

    def latest(self, subject: str) -> AvroType:
        """Return the latest schema of a subject.

        Raises
        ------
        KafkaConfigurationError
            The subject does not exist, its schema is not an Avro schema, or the certificate file cannot be
            read.
        SchemaRegistryError
            The request failed.
        """
        with self._lock:
            answer = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
            if answer is None:
                raise KafkaConfigurationError(
                    f"the schema registry has no subject {subject!r}: set value.subject (or key.subject), or "
                    f"choose the columns with a schema"
                )
            try:
                return self._parse(answer)
            except AvroSchemaError as error:
                raise KafkaConfigurationError(f"the latest schema of subject {subject!r}: {error}") from error

    # ---- Responses ---------------------------------------------------------------------------------------

    def _parse(self, answer: Mapping[str, object]) -> AvroType:
        names: dict[str, AvroType] = {}
        self._refer(answer, names, set())
        return parse_schema(_text_of(answer), names)

    def _refer(
        self, answer: Mapping[str, object], names: dict[str, AvroType], known: set[tuple[str, int]]
    ) -> None:
        """Parse the schemas that a response refers to, directly or indirectly, and add them to ``names``."""
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise AvroSchemaError("the 'references' property of the schema is not a list")
        for reference in references:
            subject = reference.get("subject") if isinstance(reference, dict) else None
            version = reference.get("version") if isinstance(reference, dict) else None
            if not isinstance(subject, str) or not isinstance(version, int):
                raise AvroSchemaError("a reference of the schema has no subject or no version")
            if (subject, version) in known:
                continue
            known.add((subject, version))
            if len(known) > MAX_REFERENCES:
                raise AvroSchemaError(f"the schema refers to more than {MAX_REFERENCES} other schemas")
            referred = self._get(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}")
            if referred is None:
                raise AvroSchemaError(
                    f"the schema refers to version {version} of subject {quoted(subject)!r}, which does not "
                    "exist"
                )
            self._refer(referred, names, known)
            parse_schema(_text_of(referred), names)

    # ---- Requests ---------------------------------------------------------------------------------------

    def _get(self, path: str) -> Mapping[str, object] | None:
        """Return the registry's response, or ``None`` if the registry reports a missing resource."""
        trouble = "no address"
        wait_ms = RETRY_MS
        for attempt in range(ATTEMPTS):
            if attempt:
                self._clock.sleep_ms(wait_ms)
                wait_ms *= 2
            for url in self._options.urls:
                try:
                    return self._request(url + path)
                except urllib.error.HTTPError as error:
                    is_absent = error.code == 404 and _is_registrys(error)
                    error.close()
                    if is_absent:
                        return None
                    if error.code in (401, 403):
                        raise SchemaRegistryError(
                            f"the schema registry {url} answered {error.code}: check schema.registry.auth"
                        ) from None
                    trouble = f"{url} answered {error.code}"
                    if error.code == 404:
                        raise SchemaRegistryError(
                            f"{trouble}, but it is not a schema registry: check schema.registry.url"
                        ) from None
                    if 300 <= error.code < 500 and error.code not in (408, 429):
                        raise SchemaRegistryError(f"the schema registry {trouble}") from None
                except (OSError, HTTPException, ValueError) as error:
                    reason = getattr(error, "reason", error)
                    if isinstance(reason, ssl.SSLCertVerificationError):
                        raise SchemaRegistryError(
                            f"the certificate of the schema registry {url} is not trusted "
                            f"({reason.verify_message}): {_REMEDIES.get(reason.verify_code, _UNKNOWN_ISSUER)}"
                        ) from None
                    trouble = f"{url}: {quoted(reason)}"
                logger.info("the schema registry did not answer: %s", trouble)
        raise SchemaRegistryError(f"the schema registry did not answer in {ATTEMPTS} attempts: {trouble}")

    def _request(self, url: str) -> Mapping[str, object]:
        request = urllib.request.Request(url)  # noqa: S310 - http or https, by registry_options
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        if self._options.auth is not None:
            token = base64.b64encode(self._options.auth.encode()).decode("ascii")
            request.add_header("Authorization", f"Basic {token}")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self._proxy is not None:
            # Ignore the proxies of the environment.
            handlers += [urllib.request.ProxyHandler({}), _HttpThroughProxy(self._proxy)]
        if url.startswith("https:"):
            handlers.append(
                urllib.request.HTTPSHandler(context=self._tls())
                if self._proxy is None
                else _HttpsThroughProxy(self._proxy, self._tls())
            )
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as response:
            raw = self._read(response)
        if len(raw) > MAX_ANSWER_BYTES:
            raise ValueError(f"the response exceeds {MAX_ANSWER_BYTES} bytes")
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ValueError("the response is not a JSON object")
        return answer

    def _tls(self) -> ssl.SSLContext:
        cafile = self._options.cafile
        try:
            return ssl.create_default_context(cafile=cafile)
        except OSError as error:
            raise KafkaConfigurationError(
                f"schema.registry.ssl.cafile is not a readable PEM file with certificates: {cafile} "
                f"({error.strerror or error})"
            ) from error

    def _read(self, response: HTTPResponse) -> bytes:
        """Read a complete response, within the limits of size and time."""
        raw = bytearray()
        until_ms = self._clock.monotonic_ms() + ANSWER_MS
        while len(raw) <= MAX_ANSWER_BYTES:
            piece = response.read1(MAX_ANSWER_BYTES + 1 - len(raw))
            if not piece:
                break
            raw += piece
            if self._clock.monotonic_ms() > until_ms:
                raise ValueError(f"the response took longer than {ANSWER_MS / 1000:.0f} s")
        return bytes(raw)


def _is_registrys(error: urllib.error.HTTPError) -> bool:
    """Return whether an error response comes from a registry, and not from a proxy or another server."""
    try:
        answer = json.loads(error.read(MAX_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and isinstance(answer.get("error_code"), int)


def _text_of(answer: Mapping[str, object]) -> str:
    kind = answer.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise AvroSchemaError(f"the schemaType is {quoted(kind)}, not AVRO")
    text = answer.get("schema")
    if not isinstance(text, str):
        raise AvroSchemaError("the registry's response has no 'schema' property")
    return text
