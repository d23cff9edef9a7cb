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

    bootstrap_servers: str | Sequence[str] | set[str] | frozenset[str]
    """Brokers to connect to first, as `host:port`: a list, tuple or set, or one text with commas. The
    client learns all other brokers from them, so two or three are enough. The port is 9092 if it is not
    given. The security protocol may precede the host, as in `SSL://host:port`, and must equal
    `security_protocol`."""

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
    """How the client recovers when it cannot reach any known broker. `rebootstrap` connects to
    `bootstrap_servers` again (KIP-899). `none` keeps trying the known brokers."""

    metadata_recovery_rebootstrap_trigger_ms: float
    """How long all known brokers may be out of reach, in milliseconds, before the client connects to
    `bootstrap_servers` again (KIP-1102)."""

    bootstrap_timeout_ms: float
    """How long the constructor tries to reach a first broker, in milliseconds, before it raises
    `NoBrokersAvailable`. The constructor of a consumer or producer does not wait if this is 0, or if
    `api_version` is given."""

    receive_message_max_bytes: float
    """Maximum size of a response, in bytes. The client closes the connection if a response is larger."""

    receive_buffer_bytes: int | None
    """Size of the socket's receive buffer (`SO_RCVBUF`), in bytes. With -1, the operating system chooses
    the size."""

    send_buffer_bytes: int | None
    """Size of the socket's send buffer (`SO_SNDBUF`), in bytes. With -1, the operating system chooses the
    size."""

    api_version: tuple[int, ...] | list[int] | str | None
    """Version of the brokers. The client negotiates versions with each broker anyway. If a version is
    given, the constructor does not wait for a broker. If none is given, `client.config["api_version"]`
    holds the version of the first connected broker, such as `(4, 3)`."""

    metric_reporters: Sequence[Callable[[], object]]
    """Classes that are notified when metrics are added or removed. Each is created without arguments: see
    `MetricsReporter`."""

    metrics_enabled: bool
    """Whether the client records metrics. Without them the client is slightly faster, and `metrics()`
    returns nothing."""

    metrics_num_samples: int
    """Number of samples from which averages, maxima and rates are computed."""

    metrics_sample_window_ms: float
    """Length of one sample, in milliseconds. With the defaults, a rate covers the last minute."""

    metric_group_prefix: str | None
    """First word of the names of metric groups, such as `producer` in `producer-metrics`."""

    selector: type[selectors.BaseSelector] | None
    """System call with which the client waits for sockets: `selectors.EpollSelector`,
    `selectors.KqueueSelector`, or `selectors.PollSelector`. The default is epoll on Linux and kqueue on
    macOS."""

    kafka_client: object
    """Accepted so that programs for kafka-python run. It has no effect."""

    socket_options: Sequence[tuple[int, int, int | bytes]]
    """Options that are set on every socket, as arguments of `socket.setsockopt`. The default switches
    Nagle's algorithm off (`TCP_NODELAY`)."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """How the client connects to brokers. `SSL` and `SASL_SSL` encrypt the connection with TLS.
    `SASL_PLAINTEXT` and `SASL_SSL` authenticate the client with `sasl_mechanism`."""

    ssl_context: ssl.SSLContext | None
    """`ssl.SSLContext` to use for TLS connections. The other `ssl_` settings must then be left out;
    `ssl_check_hostname` has no effect."""

    ssl_check_hostname: bool
    """Whether the broker's certificate must be valid for the host that the client connects to. `False`
    accepts any host name, but still verifies who issued the certificate."""

    ssl_cafile: str | None
    """PEM file with the certificates of the authorities that the client trusts, or the PEM text itself. By
    default the client trusts the authorities that the operating system trusts."""

    ssl_certfile: str | None
    """PEM file with the client's certificate and its chain, or the PEM text itself. It is only needed if
    the brokers authenticate clients by certificate (mutual TLS)."""

    ssl_keyfile: str | bytes | Secret | None
    """PEM file with the private key of the client's certificate, or the PEM text itself. It may be left out
    if `ssl_certfile` also contains the key."""

    ssl_crlfile: str | None
    """PEM file with a certificate revocation list, or the PEM text itself. The client rejects a broker
    whose certificate is on the list."""

    ssl_password: str | bytes | Secret | None
    """Password of the private key, if the key is encrypted."""

    ssl_ciphers: str | None
    """Cipher suites for TLS 1.2 in OpenSSL's syntax, such as `ECDHE+AESGCM`. Python's selection is the
    default. Cipher suites of TLS 1.3 cannot be configured."""

    ssl_enabled_protocols: Sequence[str] | str | None
    """Versions of TLS that the client may use: `TLSv1.2`, `TLSv1.3` or both, as a list or as text with
    commas. By default both may be used."""

    sasl_mechanism: str | None
    """Mechanism that authenticates the client: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`,
    `GSSAPI`, `AWS_MSK_IAM`, or one registered with `register_sasl_mechanism`. It is required with
    `SASL_PLAINTEXT` and `SASL_SSL`."""

    sasl_plain_username: str | None
    """User name for PLAIN and SCRAM."""

    sasl_plain_password: str | bytes | Secret | None
    """Password for PLAIN and SCRAM."""

    sasl_allow_plain_over_plaintext: bool
    """Whether PLAIN may send the password over an unencrypted connection (`SASL_PLAINTEXT`). Anyone who can
    read the network traffic then learns the password."""

    sasl_kerberos_name: object
    """Kerberos name of the broker for GSSAPI, as a `gssapi.Name` or as text such as
    `kafka@broker.example.com`. It replaces `sasl_kerberos_service_name` and `sasl_kerberos_domain_name`."""

    sasl_kerberos_service_name: str
    """Service part of the broker's Kerberos principal: `kafka` in
    `kafka/broker.example.com@EXAMPLE.COM`."""

    sasl_kerberos_domain_name: str | None
    """Host part of the broker's Kerberos principal. The default is the host name that the client connects
    to."""

    sasl_kerberos_principal: str | None
    """Kerberos principal of the client, such as `alice@EXAMPLE.COM`. The default is the principal of the
    ticket cache or of the keytab."""

    sasl_kerberos_keytab: str | None
    """Path of a keytab with the client's key. The client gets and renews its tickets with that key. By
    default it uses the tickets of the process, such as those of `kinit`."""

    sasl_aws_region: str | None
    """AWS region of the cluster, for AWS_MSK_IAM. The default is the region in the broker's host name, or
    else the region in the AWS configuration."""

    sasl_oauth_token_provider: TokenProvider | None
    """Object whose method `token()` returns a token for OAUTHBEARER as text. Do not combine it with
    `sasl_oauthbearer_token_endpoint_url`."""

    sasl_oauthbearer_token_endpoint_url: str | None
    """HTTPS URL of the token endpoint, which issues tokens for OAUTHBEARER in exchange for client
    credentials (KIP-768). The environment variable `KAFKACORE_SASL_OAUTHBEARER_ALLOWED_URLS` must contain
    the URL."""

    sasl_oauthbearer_client_credentials_client_id: str | None
    """Client id to send to the token endpoint (KIP-1139)."""

    sasl_oauthbearer_client_credentials_client_secret: str | bytes | Secret | None
    """Client secret to send to the token endpoint (KIP-1139)."""

    sasl_oauthbearer_scope: str | None
    """Scope to request from the token endpoint. By default none is requested."""

    sasl_oauthbearer_header_urlencode: bool
    """Whether client id and client secret are URL-encoded in the `Authorization` header, as RFC 6749
    requires. By default they are not encoded."""

    sasl_oauthbearer_https_cafile: str | None
    """PEM file with the certificates of the authorities that are trusted for the token endpoint. By default
    the client trusts the authorities that the operating system trusts."""

    sasl_login_connect_timeout_ms: float
    """How long connecting to the token endpoint may take, in milliseconds."""

    sasl_login_read_timeout_ms: float
    """How long the client waits for the response of the token endpoint, in milliseconds."""

    sasl_login_retry_backoff_ms: float
    """Pause before the first retry of a token request, in milliseconds. It doubles with each further
    retry."""

    sasl_login_retry_backoff_max_ms: float
    """How long a token request is retried after its first attempt, in milliseconds."""

    sasl_login_refresh_window_factor: float
    """Fraction of a token's lifetime after which the client refreshes the token."""

    sasl_login_refresh_window_jitter: float
    """Largest random fraction of a token's lifetime that is added to `sasl_login_refresh_window_factor`, so
    that clients do not refresh at the same time."""

    sasl_login_refresh_min_period_seconds: float
    """Shortest time between two refreshes of a token, in seconds. Ignored if a token is valid for less than
    the sum of this setting and `sasl_login_refresh_buffer_seconds`."""

    sasl_login_refresh_buffer_seconds: float
    """Shortest time between the refresh of a token and its expiry, in seconds. Ignored if a token is valid
    for less than the sum of this setting and `sasl_login_refresh_min_period_seconds`."""

    proxy_url: str | Secret | None
    """Proxy through which the client connects to brokers, such as `socks5h://proxy.example.com:1080`. If
    the proxy authenticates clients, write `user:password@` before the host. With `socks5h` and `http`
    (CONNECT), the proxy resolves the host names of brokers; with `socks5` the client does. TLS and SASL
    work through the proxy, and the client also fetches tokens through the proxy. This setting needs the
    extra `proxy`."""

    socks5_proxy: str | Secret | None
    """Earlier name of `proxy_url`, which is used if `proxy_url` is not given."""
