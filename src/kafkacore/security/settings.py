"""The settings of a client's security: TLS and SASL, and which of them hold a secret.

Names are kafka-python's and librdkafka's; :data:`OTHER_NAMES` has those of Java's clients.
"""

from __future__ import annotations

import ssl
from typing import Final

from kafkacore.security.secret import Secret
from kafkacore.security.tls_contexts import TLS_VERSIONS
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


@checks("str | bytes | Secret | None", kind=SettingType.PASSWORD)
def secret_or_none(name: str, value: object) -> Secret | None:
    """A password, which is not seen any more from here on."""
    if value is None or isinstance(value, Secret):
        return value
    if not isinstance(value, str | bytes):
        raise refuse(name, value, "text, bytes or None")
    return Secret(value)


@checks("ssl.SSLContext | None", kind=SettingType.CLASS)
def ssl_context_or_none(name: str, value: object) -> ssl.SSLContext | None:
    if value is not None and not isinstance(value, ssl.SSLContext):
        raise refuse(name, value, "an ssl.SSLContext or None")
    return value


@checks("Sequence[str] | str | None", " and ".join(TLS_VERSIONS), SettingType.LIST)
def tls_versions_or_none(name: str, value: object) -> tuple[str, ...] | None:
    """A list of names, or text with commas between them, as Java takes it."""
    if value is None:
        return None
    given = value.split(",") if isinstance(value, str) else value
    known = " and ".join(TLS_VERSIONS)
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise refuse(name, value, f"a list of {known}")
    names = tuple(each.strip() for each in given)
    if not names or not set(names) <= TLS_VERSIONS.keys():
        raise refuse(name, value, f"one or both of {known}; older ones are not spoken")
    return names


_TOKENS: Final = anything("TokenProvider | None", SettingType.PASSWORD)

# fmt: off
#: Settings of every client. Times in milliseconds.
SECURITY_SETTINGS: Final = table(
    setting("security_protocol", "PLAINTEXT", one_of(*SECURITY_PROTOCOLS), "Protocol spoken with brokers."),
    setting("ssl_context", None, ssl_context_or_none,
            "TLS context to use instead of the other settings of TLS."),
    setting("ssl_check_hostname", True, boolean, "Whether the broker's certificate must have its host name."),
    setting("ssl_cafile", None, text_or_none,
            "PEM file with the certificates of trusted authorities; the system's if not given."),
    setting("ssl_certfile", None, text_or_none, "PEM file with the client's certificate chain."),
    setting("ssl_keyfile", None, secret_or_none, "PEM file with the client's private key."),
    setting("ssl_crlfile", None, text_or_none, "PEM file with certificates that are revoked."),
    setting("ssl_password", None, secret_or_none, "Password of the private key."),
    setting("ssl_ciphers", None, text_or_none, "Cipher suites of TLS 1.2, by OpenSSL's names."),
    setting("ssl_enabled_protocols", None, tls_versions_or_none, "Versions of TLS; both if not given."),
    setting("sasl_mechanism", None, text_or_none,
            "`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`, `AWS_MSK_IAM`, or one that "
            "was registered."),
    setting("sasl_plain_username", None, text_or_none, "User of PLAIN and SCRAM."),
    setting("sasl_plain_password", None, secret_or_none, "Password of PLAIN and SCRAM."),
    setting("sasl_allow_plain_over_plaintext", False, boolean,
            "Whether PLAIN may send a password without encryption."),
    setting("sasl_kerberos_name", None, anything("object"),
            "Service name of the broker as a `gssapi.Name`, instead of the next two settings."),
    setting("sasl_kerberos_service_name", "kafka", text, "First part of the broker's Kerberos principal."),
    setting("sasl_kerberos_domain_name", None, text_or_none,
            "Host in the broker's Kerberos principal; the one connected to if not given."),
    setting("sasl_kerberos_principal", None, text_or_none,
            "The client's Kerberos principal; that of the ticket cache if not given."),
    setting("sasl_kerberos_keytab", None, text_or_none, "Key table to get tickets with."),
    setting("sasl_aws_region", None, text_or_none,
            "Region of AWS_MSK_IAM; taken from the broker's host name if not given."),
    setting("sasl_oauth_token_provider", None, _TOKENS,
            "Object whose method `token()` returns a token of OAUTHBEARER."),
    # KIP-768, KIP-1139
    setting("sasl_oauthbearer_token_endpoint_url", None, text_or_none,
            "HTTPS address that issues tokens for the client's credentials (KIP-768)."),
    setting("sasl_oauthbearer_client_credentials_client_id", None, text_or_none,
            "The client's id at that address (KIP-1139)."),
    setting("sasl_oauthbearer_client_credentials_client_secret", None, secret_or_none,
            "The client's secret at that address."),
    setting("sasl_oauthbearer_scope", None, text_or_none, "Scope that the client asks for."),
    setting("sasl_oauthbearer_header_urlencode", False, boolean,
            "Whether id and secret are URL-encoded in the header, as RFC 6749 demands."),
    setting("sasl_oauthbearer_https_cafile", None, text_or_none,
            "PEM file with the authorities trusted for that address; the system's if not given."),
    setting("sasl_login_connect_timeout_ms", 10_000, finite(1),
            "How long a connection to that address may take."),
    setting("sasl_login_read_timeout_ms", 10_000, finite(1), "How long that address may take to answer."),
    setting("sasl_login_retry_backoff_ms", 100, finite(0),
            "Pause before the first retry of a request for a token."),
    setting("sasl_login_retry_backoff_max_ms", 10_000, finite(0), "Longest pause before such a retry."),
    setting("sasl_login_refresh_window_factor", 0.8, between(0.5, 1.0),
            "Part of a token's lifetime after which it is renewed."),
    setting("sasl_login_refresh_window_jitter", 0.05, between(0.0, 0.25),
            "Largest random part of the lifetime added to that."),
    setting("sasl_login_refresh_min_period_seconds", 60, between(0, 900),
            "Shortest time between two renewals, in seconds."),
    setting("sasl_login_refresh_buffer_seconds", 300, between(0, 3600),
            "Time before a token expires that is kept free for its renewal, in seconds."),
)
# fmt: on
#: The arguments of a client that hold a secret.
SECRET_SETTINGS: Final = frozenset(name for name, row in SECURITY_SETTINGS.items() if row.is_secret)
#: Names of Java's clients and of librdkafka that are not an argument of ours with dots.
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
