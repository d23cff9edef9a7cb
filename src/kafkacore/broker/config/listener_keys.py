"""The table of listener settings. The prefix ``listener.name.<name>.`` limits a setting to one listener.

The module also lists the listener settings of Kafka that this broker ignores or rejects. Names are those of
Kafka's ``BrokerSecurityConfigs``, ``SslConfigs`` and ``SaslConfigs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkacore.settings import SettingType, table
from kafkacore.settings.setting import Setting
from kafkacore.structs import INT32_MAX, INT64_MAX

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
#: SASL mechanisms that clients may use.
MECHANISMS: Final = (*SCRAM_MECHANISMS, "PLAIN", "OAUTHBEARER", "GSSAPI")
#: Kafka's default of ``listener.security.protocol.map``: a listener named after a protocol uses that
#: protocol.
DEFAULT_PROTOCOL_MAP: Final = ",".join(
    f"{each}:{each}" for each in ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")
)
#: Prefix of settings for one listener: ``listener.name.<name>.<setting>``.
LISTENER_PREFIX: Final = "listener.name."
#: Prefix of a setting with a user's password, which is valid for every mechanism that uses passwords.
USER_PREFIX: Final = "sasl.user."
JAAS: Final = "sasl.jaas.config"
CLIENT_AUTH: Final = "ssl.client.auth"


@dataclass(frozen=True, slots=True)
class ListenerSetting(Setting):
    """A setting of a listener. Its default is text. A dynamic setting can be changed at run time."""

    default: str | None = None


def _key(
    name: str,
    kind: SettingType,
    documentation: str,
    default: str | None = None,
    choices: tuple[str, ...] = (),
    low: int | None = None,
    high: int | None = None,
    *,
    is_dynamic: bool = False,
) -> ListenerSetting:
    return ListenerSetting(name, kind, default, documentation, low, high, choices, is_dynamic=is_dynamic)


_S, _I, _L, _P = SettingType.STRING, SettingType.INT, SettingType.LONG, SettingType.PASSWORD
_LIST = SettingType.LIST
_STORES: Final = ("PEM", "PKCS12")

# fmt: off
LISTENER_KEYS: Final = table(
    _key("ssl.keystore.location", _S, "PEM or PKCS12 file with the broker's private key and its "
         "certificate chain.", is_dynamic=True),
    _key("ssl.keystore.type", _S, "Format of the key store file. If not set, the broker detects it. "
         "`PKCS12` requires the package `cryptography`.", choices=_STORES, is_dynamic=True),
    _key("ssl.keystore.password", _P, "Password of a PKCS12 key store.", is_dynamic=True),
    _key("ssl.keystore.key", _P, "Private key in PEM format, as an alternative to "
         "`ssl.keystore.location`.", is_dynamic=True),
    _key("ssl.keystore.certificate.chain", _P, "Certificate chain in PEM format, with the broker's "
         "certificate first. It is set together with `ssl.keystore.key`.", is_dynamic=True),
    _key("ssl.key.password", _P, "Password of the private key.", is_dynamic=True),
    _key("ssl.truststore.location", _S, "PEM or PKCS12 file with the certificates of the authorities that "
         "sign client certificates.", is_dynamic=True),
    _key("ssl.truststore.type", _S, "Format of the trust store file. If not set, the broker detects it.",
         choices=_STORES, is_dynamic=True),
    _key("ssl.truststore.password", _P, "Password of a PKCS12 trust store.", is_dynamic=True),
    _key("ssl.truststore.certificates", _P, "Trusted certificates in PEM format, as an alternative to "
         "`ssl.truststore.location`.", is_dynamic=True),
    _key(CLIENT_AUTH, _S, "Whether clients must present a certificate: `required`, `requested` (optional) "
         "or `none`. Without a prefix it applies to SSL listeners only; for a SASL_SSL listener set "
         "`listener.name.<name>.ssl.client.auth`.", "none",
         ("required", "requested", "none")),
    _key("ssl.enabled.protocols", _LIST, "TLS versions that clients may use: `TLSv1.2`, `TLSv1.3`.",
         "TLSv1.2,TLSv1.3"),
    _key("ssl.cipher.suites", _LIST, "Cipher suites of TLS 1.2, by OpenSSL's names. If empty, OpenSSL's "
         "defaults apply.", ""),
    _key("ssl.principal.mapping.rules", _S, "Rules that map the subject of a client certificate to a user "
         "name: `RULE:pattern/replacement/[LU]` or `DEFAULT` (the whole subject). The first matching rule "
         "applies.", "DEFAULT"),
    _key("sasl.enabled.mechanisms", _LIST, "SASL mechanisms that clients may use: `PLAIN`, "
         "`SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`. If not set, both SCRAM mechanisms are "
         "enabled, and with TLS also `PLAIN`."),
    _key(JAAS, _P, "Login module of one mechanism and its options, in Kafka's JAAS syntax. It must have "
         "the prefix `listener.name.<name>.<mechanism>.`."),
    _key("sasl.server.max.receive.size", _I, "Maximum size in bytes of a request from a client that has "
         "not authenticated yet.",
         "524288", (), 1, INT32_MAX),
    _key("connections.max.reauth.ms", _L, "Time in milliseconds after which a client must re-authenticate "
         "on the same connection. 0 disables re-authentication.", "0", (), 0, INT64_MAX),
    _key("max.connection.creation.rate", _I, "Maximum number of new connections per second. Further "
         "connections wait to be accepted.", str(INT32_MAX), (), 0, INT32_MAX, is_dynamic=True),
    _key("max.connections", _I, "Maximum number of connections to this listener. The broker closes further "
         "connections immediately.",
         None, (), 1, INT32_MAX, is_dynamic=True),
    _key("sasl.kerberos.service.name", _S, "Service name of the broker's Kerberos principal. It must be "
         "the first part of the principal in `sasl.jaas.config`."),
    _key("sasl.kerberos.principal.to.local.rules", _LIST, "Rules that map a Kerberos principal to a user "
         "name. The first matching rule applies.", "DEFAULT"),
    _key("sasl.oauthbearer.jwks.endpoint.url", _S, "URL of the JSON Web Key Set that verifies the "
         "signatures of tokens. Required for OAUTHBEARER."),
    _key("sasl.oauthbearer.jwks.endpoint.cafile", _S, "PEM file with the certificate authorities for "
         "`sasl.oauthbearer.jwks.endpoint.url`. If not set, the system's authorities are trusted."),
    _key("sasl.oauthbearer.expected.audience", _LIST, "Audiences (claim `aud`) of which a token must have "
         "at least one. Required for OAUTHBEARER.", ""),
    _key("sasl.oauthbearer.expected.issuer", _S, "Issuer (claim `iss`) that a token must have. Required "
         "for OAUTHBEARER."),
    _key("sasl.oauthbearer.clock.skew.seconds", _I, "Maximum difference in seconds between the clocks of "
         "the broker and the token's issuer.", "30", (), 0,
         INT32_MAX),
    _key("sasl.oauthbearer.allowed.algorithms", _LIST, "Signature algorithms that tokens may use, for "
         "example `RS256,ES256`. If not set, all supported algorithms are allowed."),
    _key("sasl.oauthbearer.required.scope", _LIST, "Scopes that a token must include."),
    _key("sasl.server.callback.handler.class", SettingType.CLASS, "Validator of OAUTHBEARER tokens. The "
         "only valid value is Kafka's `OAuthBearerUnsecuredValidatorCallbackHandler` with its package "
         "name, which accepts unsigned tokens. Use it for development only."),
    _key("sasl.oauthbearer.scope.claim.name", _S, "Name of the token's claim that lists its scopes.",
         "scope"),
    _key("sasl.oauthbearer.sub.claim.name", _S, "Name of the token's claim that contains the user name.",
         "sub"),
    _key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _L, "Interval in milliseconds at which the broker "
         "reloads the keys from `sasl.oauthbearer.jwks.endpoint.url`.", "3600000", (), 0, INT64_MAX),
)
# fmt: on

#: Setting of Kafka that this broker rejects → end of the error message.
REFUSED: Final = {
    name: why
    for why, names in {
        "it loads a Java class, and this broker does not run Java. Remove it": (
            "principal.builder.class",
            "security.providers",
            "ssl.engine.factory.class",
            "sasl.oauthbearer.jwt.validator.class",
        ),
        "this broker always uses Python's TLS with OpenSSL. Remove it": ("ssl.provider",),
    }.items()
    for name in names
}

#: Settings of Kafka, or prefixes of them, that are ignored: they configure inter-broker connections or Java.
WITHOUT_EFFECT_HERE: Final = (
    "ssl.protocol",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "ssl.endpoint.identification.algorithm",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.mechanism.controller.protocol",
    "sasl.client.callback.handler.class",
    "sasl.login.",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.ticket.renew.",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.oauthbearer.",
)


def is_listener_property(name: str) -> bool:
    """Whether a property is a listener setting of this broker or of Kafka."""
    return name in LISTENER_KEYS or name in REFUSED or name.startswith(("ssl.", "sasl.", LISTENER_PREFIX))
