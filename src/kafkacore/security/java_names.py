"""Translation of the security settings of Kafka's Java clients, ``ssl.*`` and ``sasl.*``.

The settings become arguments of kafkacore's clients. Login modules are recognized by name: a class that a
configuration names is never loaded (CVE-2025-27818). librdkafka's names of the same settings are accepted,
too.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.jaas import JaasEntry, parse_jaas
from kafkacore.security.references import REFERENCE, refuse_reference
from kafkacore.security.settings import OTHER_NAMES, SECRET_SETTINGS, TLS_VERSION_NAMES

if TYPE_CHECKING:
    from kafkacore.security.sasl.unsecured_tokens import UnsecuredTokenProvider

#: Function ``(value, name)`` that returns the value of the setting ``name`` with its references replaced.
Lookup = Callable[[str, str], str]

#: Prefixes of the names of security settings.
PREFIXES: Final = ("security.protocol", "ssl.", "sasl.")
#: Settings that matter only to Java or to brokers. They are accepted and have no effect.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor",
        "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name", "ssl.keymanager.algorithm",
        "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
        "ssl.truststore.password",
    }
)  # fmt: skip
#: Settings whose value is the name of a Java class. For each setting, the listed classes are accepted and
#: ignored, because kafkacore has the same function built in. The list omits the packages of the classes.
_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.client.callback.handler.class": ("IAMClientCallbackHandler",),
    "sasl.login.callback.handler.class": ("OAuthBearerLoginCallbackHandler",),
    "sasl.login.class": (),
    "sasl.oauthbearer.jwt.retriever.class": ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever"),
    "sasl.oauthbearer.jwt.validator.class": ("DefaultJwtValidator", "ClientJwtValidator"),
    "ssl.engine.factory.class": ("DefaultSslEngineFactory",),
}


class _Module(NamedTuple):
    """The mechanisms, options and mandatory options of a login module.

    ``options`` maps each option to kafkacore's client argument.
    """

    mechanisms: tuple[str, ...]
    options: Mapping[str, str]
    needed: tuple[str, ...] = ()


_PASSWORDS: Final = {"username": "sasl_plain_username", "password": "sasl_plain_password"}
#: Options for Java's Kerberos implementation that the system's Kerberos library does not need. They are
#: ignored.
_KERBEROS_OPTIONS: Final = ("debug", "doNotPrompt", "renewTicket", "storeKey", "useKeyTab", "useTicketCache")
_SUBJECT: Final = "unsecuredLoginStringClaim_sub"
_MODULES: Final = {
    "PlainLoginModule": _Module(("PLAIN",), _PASSWORDS, ("username", "password")),
    "ScramLoginModule": _Module(("SCRAM-SHA-256", "SCRAM-SHA-512"), _PASSWORDS, ("username", "password")),
    "OAuthBearerLoginModule": _Module(
        ("OAUTHBEARER",),
        {
            "clientId": "sasl_oauthbearer_client_credentials_client_id",
            "clientSecret": "sasl_oauthbearer_client_credentials_client_secret",
            "scope": "sasl_oauthbearer_scope",
            _SUBJECT: "sasl_oauth_token_provider",
        },
    ),
    "Krb5LoginModule": _Module(
        ("GSSAPI",),
        {
            "serviceName": "sasl_kerberos_service_name",
            "principal": "sasl_kerberos_principal",
            "keyTab": "sasl_kerberos_keytab",
            **dict.fromkeys(_KERBEROS_OPTIONS, ""),
        },
    ),
    "IAMLoginModule": _Module(("AWS_MSK_IAM",), {}),
}
#: Supported names, for suggestions in error messages.
JAVA_NAMES: Final = (
    *OTHER_NAMES, *_CLASSES, "security.protocol", "sasl.jaas.config", "sasl.kerberos.service.name",
    "sasl.mechanism", "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url", "ssl.cipher.suites", "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.certificates",
    "ssl.truststore.location", "ssl.truststore.type",
)  # fmt: skip
#: A PEM block. The blocks of old encrypted keys do not match, because they contain headers.
_BLOCK: Final = re.compile(r"(-----BEGIN [A-Z0-9 ]+-----)([A-Za-z0-9+/=\s]*)(-----END [A-Z0-9 ]+-----)\s*")
_TO_PEM: Final = (
    "kafkacore reads only PEM. To convert a store: keytool -importkeystore -srckeystore STORE -destkeystore "
    "store.p12 -deststoretype PKCS12, then openssl pkcs12 -in store.p12 -out store.pem -nodes"
)
_PEM_ENDINGS: Final = (".pem", ".crt", ".cer")


def security_arguments(
    given: Mapping[str, str], lookup: Lookup | None = None, prefix: str = ""
) -> tuple[dict[str, object], list[str]]:
    """Return the arguments of a client, and the names of the given settings that have no effect.

    Parameters
    ----------
    given:
        Values by name with dots. Every name must begin with one of :data:`PREFIXES`.
    lookup:
        Replaces references to secrets. Without it, settings are checked as far as possible without the
        secrets.
    prefix:
        Prefix of the names in messages, such as ``kafka.``.

    Raises
    ------
    KafkaConfigurationError
        A setting is invalid, or not supported and too important to ignore. The message says what to write
        instead and does not contain the value.
    """
    return _Translation(given, lookup, prefix).run()


class _Translation:
    def __init__(self, given: Mapping[str, str], lookup: Lookup | None, prefix: str) -> None:
        self._left = dict(given)
        self._lookup = lookup
        self._prefix = prefix
        self._arguments: dict[str, object] = {}
        self._ignored: list[str] = []

    def run(self) -> tuple[dict[str, object], list[str]]:
        self._protocol()
        self._classes()
        self._jaas()
        self._trust_store()
        self._key_store()
        self._tls()
        for name in list(self._left):
            if name in _WITHOUT_EFFECT:
                self._ignored.append(self._prefix + name)
            else:
                self._arguments[OTHER_NAMES.get(name, name.replace(".", "_"))] = self._value(name)
        return self._arguments, self._ignored

    def _value(self, name: str) -> str:
        text = self._left[name].strip()
        refuse_reference(text, self._prefix + name)
        return text if self._lookup is None else self._lookup(text, self._prefix + name)

    def _take(self, name: str) -> str | None:
        """Remove a setting and return its value, or ``None`` if it was not given."""
        if name not in self._left:
            return None
        value = self._value(name)
        del self._left[name]
        return value

    def _refusal(self, name: str, what: str) -> KafkaConfigurationError:
        return KafkaConfigurationError(f"{self._prefix}{name} {what}")

    # ---- SASL --------------------------------------------------------------------------------------------

    def _protocol(self) -> None:
        if protocol := self._take("security.protocol"):
            self._arguments["security_protocol"] = protocol.upper()

    def _classes(self) -> None:
        for name, known in _CLASSES.items():
            text = self._take(name)
            if text and text.rpartition(".")[2] not in known:
                raise self._refusal(
                    name,
                    "names a Java class, and kafkacore loads no Java classes: remove the setting, or pass a "
                    "Python object to the client instead",
                )

    def _jaas(self) -> None:
        name = "sasl.jaas.config"
        text = self._left.pop(name, None)
        if text is None:
            return
        if REFERENCE.fullmatch(text.strip()):
            if self._lookup is None:
                return
            text = self._lookup(text, self._prefix + name)
        elif not text.strip():
            raise self._refusal(name, "is empty: leave it out")
        entry = parse_jaas(self._prefix + name, text)
        if entry.module not in _MODULES:
            raise self._refusal(name, f"has an unknown login module: use one of {', '.join(_MODULES)}")
        self._check_mechanism(name, entry.module)
        self._login(name, entry, _MODULES[entry.module])

    def _check_mechanism(self, name: str, module: str) -> None:
        mechanism = self._left.get("sasl.mechanism")
        if mechanism is None:
            # GSSAPI is Java's default.
            if module == "Krb5LoginModule":
                self._arguments["sasl_mechanism"] = "GSSAPI"
            return
        expected = next((each for each, known in _MODULES.items() if mechanism in known.mechanisms), module)
        if expected != module:
            raise self._refusal(name, f"has {module}, but {self._prefix}sasl.mechanism needs {expected}")

    def _login(self, name: str, entry: JaasEntry, module: _Module) -> None:
        for option, value in entry.options.items():
            if option not in module.options:
                raise self._refusal(name, _unknown_option(entry.module, option, module))
            argument = module.options[option]
            if argument not in SECRET_SETTINGS:
                refuse_reference(value.text(), f"{option} in {self._prefix}{name}")
            # The text is not stripped, because a password may begin or end with a space.
            text = value.text() if self._lookup is None else self._lookup(value.text(), self._prefix + name)
            if option == _SUBJECT:
                self._arguments[argument] = _unsecured(text)
            elif argument:
                self._arguments[argument] = text
        if missing := [option for option in module.needed if option not in entry.options]:
            raise self._refusal(name, f'lacks the option {missing[0]}="…" of {entry.module}')

    # ---- TLS ---------------------------------------------------------------------------------------------

    def _trust_store(self) -> None:
        kind = self._take("ssl.truststore.type")
        certificates = self._take("ssl.truststore.certificates")
        location = self._take("ssl.truststore.location")
        self._check_pem("ssl.truststore.type", kind, location)
        if certificates is not None or location is not None:
            self._arguments["ssl_cafile"] = location if certificates is None else _pem(certificates)

    def _key_store(self) -> None:
        kind = self._take("ssl.keystore.type")
        chain, key = self._take("ssl.keystore.certificate.chain"), self._take("ssl.keystore.key")
        location, password = self._take("ssl.keystore.location"), self._take("ssl.keystore.password")
        self._check_pem("ssl.keystore.type", kind, location)
        if password is not None:
            raise self._refusal(
                "ssl.keystore.password",
                f"does not apply to PEM files: use {self._prefix}ssl.key.password instead",
            )
        if (chain is None) != (key is None):
            raise self._refusal(
                "ssl.keystore.certificate.chain",
                f"and {self._prefix}ssl.keystore.key must be given together",
            )
        if chain is not None and key is not None:
            self._arguments |= {"ssl_certfile": _pem(chain), "ssl_keyfile": _pem(key)}
        elif location is not None:
            # A PEM store has the key and the certificates in one file.
            self._arguments["ssl_certfile"] = location

    def _check_pem(self, name: str, kind: str | None, location: str | None) -> None:
        if kind is None and (location is None or location.lower().endswith(_PEM_ENDINGS)):
            return
        if kind is not None and kind.upper() == "PEM":
            return
        if kind is None:
            raise self._refusal(
                name, f"is missing, which means JKS: set it to PEM if the store is a PEM file. {_TO_PEM}"
            )
        raise self._refusal(name, f"must be PEM. {_TO_PEM}")

    def _tls(self) -> None:
        algorithm = self._take("ssl.endpoint.identification.algorithm")
        if algorithm is not None:
            if algorithm.lower() not in ("https", "none", ""):
                raise self._refusal("ssl.endpoint.identification.algorithm", "must be https, or empty")
            self._arguments["ssl_check_hostname"] = str(algorithm.lower() == "https").lower()
        protocols = self._take("ssl.enabled.protocols")
        if protocols is not None:
            # Lists that were written for old Java clients also contain older TLS versions, which are ignored.
            supported = [each.strip() for each in protocols.split(",") if each.strip() in TLS_VERSION_NAMES]
            if not supported:
                raise self._refusal("ssl.enabled.protocols", f"must contain {' or '.join(TLS_VERSION_NAMES)}")
            self._arguments["ssl_enabled_protocols"] = ",".join(supported)
        suites = self._take("ssl.cipher.suites")
        if suites is not None:
            if "_WITH_" in suites or "," in suites:
                raise self._refusal(
                    "ssl.cipher.suites",
                    f"contains Java's names of cipher suites: use {self._prefix}ssl.ciphers with OpenSSL's "
                    f"names, separated by colons",
                )
            self._arguments["ssl_ciphers"] = suites


def _pem(text: str) -> str:
    """Break PEM text into lines, because Java accepts it in a single line and OpenSSL does not."""
    return _BLOCK.sub(
        lambda block: "\n".join([block[1], *textwrap.wrap("".join(block[2].split()), 64), block[3], ""]), text
    )


def _unknown_option(name: str, option: str, module: _Module) -> str:
    known = ", ".join(module.options) or "none"
    return f"has an unknown option of {name}: {option}; known options: {known}"


@functools.cache
def _unsecured(subject: str) -> UnsecuredTokenProvider:
    """Return the token provider of ``subject``. It is cached, so that equal settings compare equal."""
    # Imported here, because few processes need it, and the import takes a twentieth of their start.
    from kafkacore.security.sasl.unsecured_tokens import UnsecuredTokenProvider

    return UnsecuredTokenProvider(subject)
