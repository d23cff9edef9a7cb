"""The properties that a listener has: of all listeners, or behind ``listener.name.<name>.`` of one.

Data alone: names, types, limits, what they mean, and which Kafka has and this broker not. Source of the
names: Kafka's ``BrokerSecurityConfigs``, ``SslConfigs`` and ``SaslConfigs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkacore.settings import Setting, SettingType, table
from kafkacore.structs import INT32_MAX, INT64_MAX

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
#: What clients may authenticate by.
MECHANISMS: Final = (*SCRAM_MECHANISMS, "PLAIN", "OAUTHBEARER", "GSSAPI")
#: What is spoken on listeners that have the name of it, as Kafka says it.
DEFAULT_PROTOCOL_MAP: Final = ",".join(
    f"{each}:{each}" for each in ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")
)
#: Before the name of a listener, and a dot, and a property of it alone.
LISTENER_PREFIX: Final = "listener.name."
#: Before the name of a user: a password, for every mechanism that has passwords.
USER_PREFIX: Final = "sasl.user."
JAAS: Final = "sasl.jaas.config"
CLIENT_AUTH: Final = "ssl.client.auth"


@dataclass(frozen=True, slots=True)
class ListenerSetting(Setting):
    """A property of a listener. Its default is a text; a dynamic one can be changed for one listener."""

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
    _key("ssl.keystore.location", _S, "A file with the broker's private key and its certificate, with "
         "those of the authorities that lead to the root, in PEM or PKCS12.", is_dynamic=True),
    _key("ssl.keystore.type", _S, "`PEM` or `PKCS12` (that needs the package cryptography); what the "
         "file is, if not given.", choices=_STORES, is_dynamic=True),
    _key("ssl.keystore.password", _P, "Of a key store in PKCS12.", is_dynamic=True),
    _key("ssl.keystore.key", _P, "The private key itself, in PEM, instead of a file.",
         is_dynamic=True),
    _key("ssl.keystore.certificate.chain", _P, "The certificates themselves, in PEM, instead of a "
         "file; the broker's first.", is_dynamic=True),
    _key("ssl.key.password", _P, "Of the private key.", is_dynamic=True),
    _key("ssl.truststore.location", _S, "A file with the certificates of the authorities whose "
         "clients are believed, in PEM or PKCS12.", is_dynamic=True),
    _key("ssl.truststore.type", _S, "`PEM` or `PKCS12`; what the file is, if not given.",
         choices=_STORES, is_dynamic=True),
    _key("ssl.truststore.password", _P, "Of a trust store in PKCS12.", is_dynamic=True),
    _key("ssl.truststore.certificates", _P, "Those certificates themselves, in PEM, instead of a "
         "file.", is_dynamic=True),
    _key(CLIENT_AUTH, _S, "Whether clients show a certificate: `required`, `requested` (those "
         "that have one), `none`. Without a prefix it applies to SSL listeners alone; for a SASL_SSL "
         "listener give `listener.name.<name>.ssl.client.auth`.", "none",
         ("required", "requested", "none")),
    _key("ssl.enabled.protocols", _LIST, "Versions of TLS: `TLSv1.2`, `TLSv1.3`.", "TLSv1.2,TLSv1.3"),
    _key("ssl.cipher.suites", _LIST, "Cipher suites of TLS 1.2, by OpenSSL's names; its own choice if "
         "not given.", ""),
    _key("ssl.principal.mapping.rules", _S, "How a certificate's name becomes a user's: the first "
         "rule that fits, `RULE:pattern/replacement/[LU]` or `DEFAULT` (the whole name).", "DEFAULT"),
    _key("sasl.enabled.mechanisms", _LIST, "Mechanisms that clients may authenticate by: `PLAIN`, "
         "`SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`. If not given: the two SCRAMs, "
         "and with TLS `PLAIN`."),
    _key(JAAS, _P, "Of one mechanism of one listener, `listener.name.<name>.<mechanism>.` before it: "
         "a login module of Kafka and its options, as text."),
    _key("sasl.server.max.receive.size", _I, "The largest request before a client is authenticated.",
         "524288", (), 1, INT32_MAX),
    _key("connections.max.reauth.ms", _L, "After so long a client has to authenticate again on the "
         "same connection; 0 for never.", "0", (), 0, INT64_MAX),
    _key("max.connection.creation.rate", _I, "Connections that are accepted in a second; those beyond "
         "wait to be accepted.", str(INT32_MAX), (), 0, INT32_MAX, is_dynamic=True),
    _key("max.connections", _I, "Of one listener: connections at a time; one more is closed at once.",
         None, (), 1, INT32_MAX, is_dynamic=True),
    _key("sasl.kerberos.service.name", _S, "The first part of the broker's Kerberos principal, "
         "which `sasl.jaas.config` names."),
    _key("sasl.kerberos.principal.to.local.rules", _LIST, "How a Kerberos principal becomes a user's "
         "name: the first rule that fits.", "DEFAULT"),
    _key("sasl.oauthbearer.jwks.endpoint.url", _S, "Where the keys are that tokens are signed with."),
    _key("sasl.oauthbearer.jwks.endpoint.cafile", _S, "The authorities whose word counts for that "
         "address, in PEM; the system's if not given."),
    _key("sasl.oauthbearer.expected.audience", _LIST, "For whom a token must be.", ""),
    _key("sasl.oauthbearer.expected.issuer", _S, "From whom a token must be."),
    _key("sasl.oauthbearer.clock.skew.seconds", _I, "By how much clocks may differ.", "30", (), 0,
         INT32_MAX),
    _key("sasl.oauthbearer.allowed.algorithms", _LIST, "What a token may be signed by."),
    _key("sasl.oauthbearer.required.scope", _LIST, "What a token's scope must have."),
    _key("sasl.server.callback.handler.class", SettingType.CLASS, "Of OAUTHBEARER alone, and for "
         "development alone: Kafka's name of the handler that believes unsigned tokens, which loads "
         "no class."),
    _key("sasl.oauthbearer.scope.claim.name", _S, "The claim of a token that has its scope.", "scope"),
    _key("sasl.oauthbearer.sub.claim.name", _S, "The claim of a token that has the user.", "sub"),
    _key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _L, "How often the keys are fetched again.",
         "3600000", (), 0, INT64_MAX),
)
# fmt: on

#: Properties of Kafka that ask for what this broker does not do; the sentence ends here.
REFUSED: Final = {
    name: why
    for why, names in {
        "it loads a class, and this broker has no Java; leave it out": (
            "principal.builder.class",
            "security.providers",
            "ssl.engine.factory.class",
            "sasl.oauthbearer.jwt.validator.class",
        ),
        "TLS is Python's, with OpenSSL; leave it out": ("ssl.provider",),
    }.items()
    for name in names
}

#: Properties of Kafka that change nothing here: they are of a broker as a client of others, or of its Java.
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


def is_of_a_listener(name: str) -> bool:
    """Whether a property is one of those that this module, or Kafka, has for listeners."""
    return name in LISTENER_KEYS or name in REFUSED or name.startswith(("ssl.", "sasl.", LISTENER_PREFIX))
