"""Types of the settings of the client; written by tools/settings.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    import selectors
    import ssl
    from collections.abc import Callable, Sequence

    from kafkacore.security import Secret
    from kafkacore.settings.protocols import TokenProvider


class ClientConfig(TypedDict, total=False):
    """Keyword arguments of the client; the reference has their defaults."""

    bootstrap_servers: str | Sequence[str]
    """Brokers to connect to first, as `host:port`: a list, or one text with commas. The client learns all
    other brokers from them, so two or three are enough. The port is 9092 if it is not given."""

    client_id: str | None
    """Name of the client in the logs, metrics and quotas of the brokers."""

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    """How to use the addresses of a host name. `use_all_dns_ips` tries them one after another.
    `resolve_canonical_bootstrap_servers_only` replaces each bootstrap server by its canonical names, which
    Kerberos may need."""

    request_timeout_ms: float
    """How long the client waits for the response to a request, in milliseconds. After that time it closes
    the connection and retries the request where that is safe."""

    retry_backoff_ms: float
    """Pause before the first retry of a request, in milliseconds. It doubles with each further retry up to
    `retry_backoff_max_ms`."""

    retry_backoff_max_ms: float
    """Longest pause between two retries of a request, in milliseconds (KIP-580)."""

    reconnect_backoff_ms: float
    """Pause before the first attempt to reconnect to a broker, in milliseconds. It doubles with each
    further attempt up to `reconnect_backoff_max_ms`."""

    reconnect_backoff_max_ms: float
    """Longest pause between two attempts to reconnect to a broker, in milliseconds."""

    socket_connection_setup_timeout_ms: float
    """How long the first attempt to connect to a broker may take, in milliseconds. It doubles with each
    further attempt up to `socket_connection_setup_timeout_max_ms` (KIP-601)."""

    socket_connection_setup_timeout_max_ms: float
    """Longest time that an attempt to connect may take, in milliseconds (KIP-601)."""

    connections_max_idle_ms: float
    """Time without traffic, in milliseconds, after which the client closes a connection. `math.inf` keeps
    connections open."""

    max_in_flight_requests_per_connection: float
    """How many requests may be in flight on one connection. A producer with idempotence allows at most 5.
    Without idempotence a value above 1 can reorder records when a request is retried."""

    metadata_max_age_ms: float
    """Age of the metadata, in milliseconds, after which the client fetches it again. This is how new
    partitions and brokers are found when no error reports them."""

    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    """What the client does when it can reach none of the known brokers. `rebootstrap` connects to
    `bootstrap_servers` again (KIP-899); `none` keeps trying the known brokers."""

    metadata_recovery_rebootstrap_trigger_ms: float
    """How long all known brokers may be out of reach, in milliseconds, before the client connects to
    `bootstrap_servers` again (KIP-1102)."""

    bootstrap_timeout_ms: float
    """How long the client tries to reach a first broker, in milliseconds, before it raises
    `NoBrokersAvailable`."""

    receive_message_max_bytes: float
    """Largest response, in bytes. A larger one closes the connection."""

    receive_buffer_bytes: int | None
    """Size of the socket's receive buffer (`SO_RCVBUF`), in bytes. -1 leaves it to the operating system."""

    send_buffer_bytes: int | None
    """Size of the socket's send buffer (`SO_SNDBUF`), in bytes. -1 leaves it to the operating system."""

    api_version: tuple[int, ...] | list[int] | str | None
    """Version of the brokers. The client negotiates versions with each broker anyway. If a version is
    given, the constructor does not wait for a broker."""

    metric_reporters: Sequence[Callable[[], object]]
    """Classes that are notified when metrics are added or removed. Each is created without arguments: see
    `MetricsReporter`."""

    metrics_enabled: bool
    """Whether the client measures anything. Without metrics `metrics()` returns nothing, and the client is
    slightly faster."""

    metrics_num_samples: int
    """Number of samples from which averages, maxima and rates are computed."""

    metrics_sample_window_ms: float
    """Length of one sample, in milliseconds. With the defaults, a rate covers the last minute."""

    metric_group_prefix: str | None
    """First word of the names of metric groups, such as `producer` in `producer-metrics`."""

    selector: type[selectors.BaseSelector] | None
    """System call with which the client waits for sockets: `selectors.EpollSelector` or
    `selectors.PollSelector`. By default the better one that the system has."""

    kafka_client: object
    """Accepted so that programs for kafka-python run. It has no effect."""

    socket_options: Sequence[tuple[int, int, int | bytes]]
    """Options that are set on every socket, as arguments of `socket.setsockopt`. The default switches
    Nagle's algorithm off (`TCP_NODELAY`)."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """Protocol spoken with brokers."""

    ssl_context: ssl.SSLContext | None
    """TLS context to use instead of the other settings of TLS."""

    ssl_check_hostname: bool
    """Whether the broker's certificate must have its host name."""

    ssl_cafile: str | None
    """PEM file with the certificates of trusted authorities; the system's if not given."""

    ssl_certfile: str | None
    """PEM file with the client's certificate chain."""

    ssl_keyfile: str | bytes | Secret | None
    """PEM file with the client's private key."""

    ssl_crlfile: str | None
    """PEM file with certificates that are revoked."""

    ssl_password: str | bytes | Secret | None
    """Password of the private key."""

    ssl_ciphers: str | None
    """Cipher suites of TLS 1.2, by OpenSSL's names."""

    ssl_enabled_protocols: Sequence[str] | str | None
    """Versions of TLS; both if not given."""

    sasl_mechanism: str | None
    """`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`, `AWS_MSK_IAM`, or one that was
    registered."""

    sasl_plain_username: str | None
    """User of PLAIN and SCRAM."""

    sasl_plain_password: str | bytes | Secret | None
    """Password of PLAIN and SCRAM."""

    sasl_allow_plain_over_plaintext: bool
    """Whether PLAIN may send a password without encryption."""

    sasl_kerberos_name: object
    """Service name of the broker as a `gssapi.Name`, instead of the next two settings."""

    sasl_kerberos_service_name: str
    """First part of the broker's Kerberos principal."""

    sasl_kerberos_domain_name: str | None
    """Host in the broker's Kerberos principal; the one connected to if not given."""

    sasl_kerberos_principal: str | None
    """The client's Kerberos principal; that of the ticket cache if not given."""

    sasl_kerberos_keytab: str | None
    """Key table to get tickets with."""

    sasl_aws_region: str | None
    """Region of AWS_MSK_IAM; taken from the broker's host name if not given."""

    sasl_oauth_token_provider: TokenProvider | None
    """Object whose method `token()` returns a token of OAUTHBEARER."""

    sasl_oauthbearer_token_endpoint_url: str | None
    """HTTPS address that issues tokens for the client's credentials (KIP-768)."""

    sasl_oauthbearer_client_credentials_client_id: str | None
    """The client's id at that address (KIP-1139)."""

    sasl_oauthbearer_client_credentials_client_secret: str | bytes | Secret | None
    """The client's secret at that address."""

    sasl_oauthbearer_scope: str | None
    """Scope that the client asks for."""

    sasl_oauthbearer_header_urlencode: bool
    """Whether id and secret are URL-encoded in the header, as RFC 6749 demands."""

    sasl_oauthbearer_https_cafile: str | None
    """PEM file with the authorities trusted for that address; the system's if not given."""

    sasl_login_connect_timeout_ms: float
    """How long a connection to that address may take."""

    sasl_login_read_timeout_ms: float
    """How long that address may take to answer."""

    sasl_login_retry_backoff_ms: float
    """Pause before the first retry of a request for a token."""

    sasl_login_retry_backoff_max_ms: float
    """Longest pause before such a retry."""

    sasl_login_refresh_window_factor: float
    """Part of a token's lifetime after which it is renewed."""

    sasl_login_refresh_window_jitter: float
    """Largest random part of the lifetime added to that."""

    sasl_login_refresh_min_period_seconds: float
    """Shortest time between two renewals, in seconds."""

    sasl_login_refresh_buffer_seconds: float
    """Time before a token expires that is kept free for its renewal, in seconds."""

    proxy_url: None
    """Not supported."""

    socks5_proxy: None
    """Not supported."""
