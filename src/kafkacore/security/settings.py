"""The TLS, SASL and proxy settings of all clients.

The names are kafka-python's, or Kafka's in snake case. :data:`OTHER_NAMES` has further names of Kafka's Java
clients and of librdkafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.secret import Secret
from kafkacore.settings import SECURITY_PROTOCOLS, SettingType, table
from kafkacore.settings.checks import (
    anything,
    between,
    boolean,
    checks,
    finite,
    one_of,
    refuse,
    setting,
    text,
    text_or_none,
)

if TYPE_CHECKING:
    import ssl

_PROXY_EXAMPLE: Final = "socks5h://user:password@proxy.example.com:1080"
#: Names of the supported versions of TLS.
TLS_VERSION_NAMES: Final = ("TLSv1.2", "TLSv1.3")


@checks("str | bytes | Secret | None", kind=SettingType.PASSWORD)
def secret_or_none(name: str, value: object) -> Secret | None:
    """Wrap a password in a Secret, so that logs and messages do not show it."""
    if value is None or isinstance(value, Secret):
        return value
    if not isinstance(value, str | bytes):
        raise refuse(name, value, "text, bytes or None")
    return Secret(value)


@checks("str | Secret | None", f"such as `{_PROXY_EXAMPLE}`", SettingType.PASSWORD)
def proxy_url_or_none(name: str, value: object) -> Secret | None:
    """Accept the URL of a proxy, and hide it because it may contain a password."""
    if value is None:
        return None
    if not isinstance(value, str | Secret):
        raise refuse(name, value, "text or None")
    # Few clients use a proxy, and each program would import this module.
    from kafkacore.security.proxy_url import parse_proxy_url

    url = Secret(value)
    try:
        parse_proxy_url(url.text())
    except ValueError as error:
        raise KafkaConfigurationError(
            f"{name} is not the URL of a proxy, such as {_PROXY_EXAMPLE}: {error}"
        ) from None
    return url


@checks("ssl.SSLContext | None", kind=SettingType.CLASS)
def ssl_context_or_none(name: str, value: object) -> ssl.SSLContext | None:
    if value is None:
        return None
    import ssl

    if not isinstance(value, ssl.SSLContext):
        raise refuse(name, value, "an ssl.SSLContext or None")
    return value


@checks("Sequence[str] | str | None", " and ".join(TLS_VERSION_NAMES), SettingType.LIST)
def tls_versions_or_none(name: str, value: object) -> tuple[str, ...] | None:
    """Accept a list of versions, or text with commas between them as Java's clients do."""
    if value is None:
        return None
    given = value.split(",") if isinstance(value, str) else value
    known = " and ".join(TLS_VERSION_NAMES)
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise refuse(name, value, f"a list of {known}")
    names = tuple(each.strip() for each in given)
    if not names or not set(names).issubset(TLS_VERSION_NAMES):
        raise refuse(name, value, f"one or both of {known}; older versions are not supported")
    return names


_TOKENS: Final = anything("TokenProvider | None", SettingType.PASSWORD)

# fmt: off
#: Settings that every client has.
SECURITY_SETTINGS: Final = table(
    setting("security_protocol", "PLAINTEXT", one_of(*SECURITY_PROTOCOLS),
            "How the client connects to brokers. `SSL` and `SASL_SSL` encrypt the connection with TLS. "
            "`SASL_PLAINTEXT` and `SASL_SSL` authenticate the client with `sasl_mechanism`."),
    setting("ssl_context", None, ssl_context_or_none,
            "`ssl.SSLContext` to use for TLS connections. The other `ssl_` settings must then be left out; "
            "`ssl_check_hostname` has no effect."),
    setting("ssl_check_hostname", True, boolean,
            "Whether the broker's certificate must be valid for the host that the client connects to. "
            "`False` accepts any host name, but still verifies who issued the certificate."),
    setting("ssl_cafile", None, text_or_none,
            "PEM file with the certificates of the authorities that the client trusts, or the PEM text "
            "itself. By default the client trusts the authorities that the operating system trusts."),
    setting("ssl_certfile", None, text_or_none,
            "PEM file with the client's certificate and its chain, or the PEM text itself. It is only needed "
            "if the brokers authenticate clients by certificate (mutual TLS)."),
    setting("ssl_keyfile", None, secret_or_none,
            "PEM file with the private key of the client's certificate, or the PEM text itself. It may be "
            "left out if `ssl_certfile` also contains the key."),
    setting("ssl_crlfile", None, text_or_none,
            "PEM file with a certificate revocation list, or the PEM text itself. The client rejects a "
            "broker whose certificate is on the list."),
    setting("ssl_password", None, secret_or_none, "Password of the private key, if the key is encrypted."),
    setting("ssl_ciphers", None, text_or_none,
            "Cipher suites for TLS 1.2 in OpenSSL's syntax, such as `ECDHE+AESGCM`. Python's "
            "selection is the default. Cipher suites of TLS 1.3 cannot be configured."),
    setting("ssl_enabled_protocols", None, tls_versions_or_none,
            "Versions of TLS that the client may use: `TLSv1.2`, `TLSv1.3` or both, as a list or as text "
            "with commas. By default both may be used."),
    setting("sasl_mechanism", None, text_or_none,
            "Mechanism that authenticates the client: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, "
            "`OAUTHBEARER`, `GSSAPI`, `AWS_MSK_IAM`, or one registered with `register_sasl_mechanism`. "
            "It is required with `SASL_PLAINTEXT` and `SASL_SSL`."),
    setting("sasl_plain_username", None, text_or_none, "User name for PLAIN and SCRAM."),
    setting("sasl_plain_password", None, secret_or_none, "Password for PLAIN and SCRAM."),
    setting("sasl_allow_plain_over_plaintext", False, boolean,
            "Whether PLAIN may send the password over an unencrypted connection (`SASL_PLAINTEXT`). Anyone "
            "who can read the network traffic then learns the password."),
    setting("sasl_kerberos_name", None, anything("object"),
            "Kerberos name of the broker for GSSAPI, as a `gssapi.Name` or as text such as "
            "`kafka@broker.example.com`. It replaces `sasl_kerberos_service_name` and "
            "`sasl_kerberos_domain_name`."),
    setting("sasl_kerberos_service_name", "kafka", text,
            "Service part of the broker's Kerberos principal: `kafka` in "
            "`kafka/broker.example.com@EXAMPLE.COM`."),
    setting("sasl_kerberos_domain_name", None, text_or_none,
            "Host part of the broker's Kerberos principal. The default is the host name that the client "
            "connects to."),
    setting("sasl_kerberos_principal", None, text_or_none,
            "Kerberos principal of the client, such as `alice@EXAMPLE.COM`. The default is the principal of "
            "the ticket cache or of the keytab."),
    setting("sasl_kerberos_keytab", None, text_or_none,
            "Path of a keytab with the client's key. The client gets and renews its tickets with that key. "
            "By default it uses the tickets of the process, such as those of `kinit`."),
    setting("sasl_aws_region", None, text_or_none,
            "AWS region of the cluster, for AWS_MSK_IAM. The default is the region in the broker's host "
            "name, or else the region in the AWS configuration."),
    setting("sasl_oauth_token_provider", None, _TOKENS,
            "Object whose method `token()` returns a token for OAUTHBEARER as text. Do not combine it with "
            "`sasl_oauthbearer_token_endpoint_url`."),
    setting("sasl_oauthbearer_token_endpoint_url", None, text_or_none,
            "HTTPS URL of the token endpoint, which issues tokens for OAUTHBEARER in exchange for client "
            "credentials (KIP-768). The environment variable `KAFKACORE_SASL_OAUTHBEARER_ALLOWED_URLS` "
            "must contain the URL."),
    setting("sasl_oauthbearer_client_credentials_client_id", None, text_or_none,
            "Client id to send to the token endpoint (KIP-1139)."),
    setting("sasl_oauthbearer_client_credentials_client_secret", None, secret_or_none,
            "Client secret to send to the token endpoint (KIP-1139)."),
    setting("sasl_oauthbearer_scope", None, text_or_none,
            "Scope to request from the token endpoint. By default none is requested."),
    setting("sasl_oauthbearer_header_urlencode", False, boolean,
            "Whether client id and client secret are URL-encoded in the `Authorization` header, as RFC 6749 "
            "requires. By default they are not encoded."),
    setting("sasl_oauthbearer_https_cafile", None, text_or_none,
            "PEM file with the certificates of the authorities that are trusted for the token endpoint. By "
            "default the client trusts the authorities that the operating system trusts."),
    setting("sasl_login_connect_timeout_ms", 10_000, finite(1),
            "How long connecting to the token endpoint may take, in milliseconds."),
    setting("sasl_login_read_timeout_ms", 10_000, finite(1),
            "How long the client waits for the response of the token endpoint, in milliseconds."),
    setting("sasl_login_retry_backoff_ms", 100, finite(0),
            "Pause before the first retry of a token request, in milliseconds. It doubles with each further "
            "retry."),
    setting("sasl_login_retry_backoff_max_ms", 10_000, finite(0),
            "How long a token request is retried after its first attempt, in milliseconds."),
    setting("sasl_login_refresh_window_factor", 0.8, between(0.5, 1.0),
            "Fraction of a token's lifetime after which the client refreshes the token."),
    setting("sasl_login_refresh_window_jitter", 0.05, between(0.0, 0.25),
            "Largest random fraction of a token's lifetime that is added to "
            "`sasl_login_refresh_window_factor`, so that clients do not refresh at the same time."),
    setting("sasl_login_refresh_min_period_seconds", 60, between(0, 900),
            "Shortest time between two refreshes of a token, in seconds. Ignored if a token is valid for "
            "less than the sum of this setting and `sasl_login_refresh_buffer_seconds`."),
    setting("sasl_login_refresh_buffer_seconds", 300, between(0, 3600),
            "Shortest time between the refresh of a token and its expiry, in seconds. Ignored if a token is "
            "valid for less than the sum of this setting and `sasl_login_refresh_min_period_seconds`."),
    setting("proxy_url", None, proxy_url_or_none,
            "Proxy through which the client connects to brokers, such as `socks5h://proxy.example.com:1080`. "
            "If the proxy authenticates clients, write `user:password@` before the host. With `socks5h` and "
            "`http` (CONNECT), the proxy resolves the host names of brokers; with `socks5` the client does. "
            "TLS and SASL work through the proxy, and the client also fetches tokens through the proxy. This "
            "setting needs the extra `proxy`."),
    setting("socks5_proxy", None, proxy_url_or_none,
            "Earlier name of `proxy_url`, which is used if `proxy_url` is not given."),
)
# fmt: on
#: Names of the settings whose value is a secret.
SECRET_SETTINGS: Final = frozenset(name for name, row in SECURITY_SETTINGS.items() if row.is_secret)
#: Settings whose name in Java's clients or librdkafka is not simply kafkacore's name with dots.
OTHER_NAMES: Final = {
    "ssl.key.password": "ssl_password",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.ca.pem": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.certificate.pem": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.pem": "ssl_keyfile",
    "ssl.crl.location": "ssl_crlfile",
}
