"""GSSAPI (RFC 4752), which authenticates by Kerberos tickets and needs the extra ``[gssapi]``.

Client and broker always choose to have no SASL security layer, because Kafka's protocol does not support such
layers. Use TLS to encrypt.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from kafkacore.errors import (
    CredentialsUnavailableError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafkacore.security.sasl.bounded_call import BoundedCalls
from kafkacore.security.sasl.kerberos_names import ShortNames, split_rules
from kafkacore.security.sasl.mechanism import ClientMechanism, SaslConfig, SaslMechanism
from kafkacore.security.server_mechanism import SaslServerMechanism
from kafkacore.text import shown

if TYPE_CHECKING:
    import gssapi as gss

# ---- Security layers, which are negotiated after the exchange of Kerberos tokens ------------------------

#: Bit for "no layer". The other bits stand for integrity and confidentiality.
NO_LAYER: Final = 0x01
#: The offered layers, and the maximum message size, which is 0 without a layer.
OFFER: Final = bytes([NO_LAYER, 0, 0, 0])


def answer_to_offer(offer: bytes, authorization_id: str) -> bytes:
    """Return the client's answer to the security layers that the server offers."""
    if len(offer) != 4 or not offer[0] & NO_LAYER:
        raise SaslAuthenticationFailedError(
            "the broker requires a SASL security layer, which Kafka's protocol does not support"
        )
    return OFFER + authorization_id.encode("utf-8")


def check_choice(choice: bytes) -> None:
    """Check that the client has chosen no security layer.

    The authorization id after the choice is ignored: as in Kafka, the user is that of the Kerberos ticket.
    """
    if len(choice) < 4 or choice[0] != NO_LAYER:
        raise SaslAuthenticationFailedError(
            "the client requested a SASL security layer, which Kafka's protocol does not support"
        )


# ---- The client's side ----------------------------------------------------------------------------------

GSSAPI: Final = "GSSAPI"
#: Minor codes of MIT Kerberos for errors that are retried: KRB5_KDC_UNREACH and KRB5KRB_ERR_GENERIC.
_RETRIABLE_ERRORS: Final = frozenset({2529639068, 2529638972})


class KerberosLogin:
    """The Kerberos credentials that all authentications of one client share.

    With ``sasl_kerberos_keytab``, the credentials come from that file, and the library renews them. Otherwise
    the credentials of the process are used (``kinit``, ``KRB5CCNAME``, ``KRB5_CLIENT_KTNAME``).
    """

    def __init__(self, config: SaslConfig) -> None:
        try:
            import gssapi as gss
        except (ImportError, OSError) as error:
            raise KafkaConfigurationError(
                f"sasl_mechanism='GSSAPI' needs Kerberos: install kafkacore[gssapi] ({error})"
            ) from error
        self.gss = gss
        self.calls = BoundedCalls("the Kerberos ticket")
        self._principal = config.kerberos_principal
        self._store: dict[bytes | str, bytes | str] | None = None
        if config.kerberos_keytab is not None:
            # Each principal and keytab has its own ticket cache, so that clients of a process can use
            # different credentials.
            identity = f"{config.kerberos_principal}\0{config.kerberos_keytab}".encode()
            self._store = {
                "client_keytab": config.kerberos_keytab,
                "ccache": f"MEMORY:kafkacore-{hashlib.sha256(identity).hexdigest()}",
            }

    def credentials(self) -> gss.Credentials:
        """Return the credentials. This may contact a KDC and block."""
        import gssapi as gss

        name = None
        if self._principal is not None:
            name = gss.Name(self._principal, gss.NameType.kerberos_principal)
        return gss.Credentials(name=name, usage="initiate", mechs=[gss.MechType.kerberos], store=self._store)

    def close(self) -> None:
        """Do nothing: this login has no background work."""


class GssapiMechanism(SaslMechanism):
    """One authentication by GSSAPI, on the client."""

    name = GSSAPI

    def __init__(self, login: KerberosLogin, target: gss.Name) -> None:
        self._login = login
        self._target = target
        self._context: gss.SecurityContext | None = None
        self._has_chosen = False

    def step(self, challenge: bytes | None) -> bytes | None:
        error_of_gss = self._login.gss.raw.misc.GSSError
        try:
            return self._step(challenge)
        except error_of_gss as error:
            message = f"Kerberos authentication to {self._target} failed: {error}"
            if getattr(error, "min_code", 0) in _RETRIABLE_ERRORS:
                raise CredentialsUnavailableError(message) from error
            raise SaslAuthenticationFailedError(message) from error

    def _step(self, challenge: bytes | None) -> bytes | None:
        context = self._context
        if context is None:
            # The library caches tickets, so a call that finishes too late speeds up the next attempt.
            self._context, token = self._login.calls.call(self._begin)
            return token
        if not context.complete:
            token = context.step(challenge or b"")
            if context.complete:
                self.check(context.actual_flags)
            return token or b""
        if not self._has_chosen:
            self._has_chosen = True
            offer = context.unwrap(challenge or b"").message
            return context.wrap(answer_to_offer(offer, str(context.initiator_name)), False).message
        if challenge:
            raise SaslAuthenticationFailedError("the broker sent a message after GSSAPI was complete")
        self.is_complete = True
        return None

    def _begin(self) -> tuple[gss.SecurityContext, bytes]:
        gss = self._login.gss
        flags = gss.RequirementFlag
        context = gss.SecurityContext(
            name=self._target,
            creds=self._login.credentials(),
            mech=gss.MechType.kerberos,
            usage="initiate",
            flags=flags.mutual_authentication | flags.integrity | flags.out_of_sequence_detection,
        )
        return context, context.step() or b""

    def check(self, actual_flags: int) -> None:
        """Check that the broker has authenticated itself to the client."""
        if not actual_flags & self._login.gss.RequirementFlag.mutual_authentication:
            raise SaslAuthenticationFailedError("the broker did not authenticate itself to the client")


def log_in(config: SaslConfig) -> SaslConfig:
    """Return the settings with a :class:`KerberosLogin` that has credentials.

    Raises
    ------
    KafkaConfigurationError
        The Kerberos library is missing, or there are no credentials.
    """
    login = KerberosLogin(config)
    try:
        # Reading the name acquires the credentials, so a missing ticket raises an error here, before the
        # client connects.
        login.credentials().name  # noqa: B018
    except login.gss.raw.misc.GSSError as error:
        raise KafkaConfigurationError(
            f"sasl_mechanism='GSSAPI': {error}; run kinit, or set sasl_kerberos_keytab"
        ) from error
    return replace(config, login=login)


def gssapi_client(config: SaslConfig, host: str) -> SaslMechanism:
    """Create the mechanism from settings that :func:`log_in` has returned."""
    login = cast(KerberosLogin, config.login)
    gss = login.gss
    target = config.kerberos_name
    if target is None:
        target = f"{config.kerberos_service_name}@{config.kerberos_domain_name or host}"
    if isinstance(target, str):
        target = gss.Name(target, gss.NameType.hostbased_service)
    return GssapiMechanism(login, target)


CLIENT: Final = ClientMechanism(gssapi_client, prepare=log_in)

# ---- The broker's side ----------------------------------------------------------------------------------


class GssapiServerMechanism(SaslServerMechanism):
    """One authentication by GSSAPI, on the broker."""

    name = GSSAPI

    def __init__(self, server: GssapiServer) -> None:
        self._server = server
        self._context = server.new_context()
        self._has_offered = False

    def step(self, response: bytes) -> bytes:
        try:
            return self._step(response)
        except self._server.gss.raw.misc.GSSError as error:
            message = f"Kerberos authentication failed: {shown(str(error))}"
            raise SaslAuthenticationFailedError(message) from error

    def _step(self, response: bytes) -> bytes:
        context = self._context
        if not context.complete:
            token = context.step(response)
            if token or not context.complete:
                return token or b""
            response = b""
        if not self._has_offered:
            if response:
                raise SaslAuthenticationFailedError(
                    "the client sent data when the broker had to offer the security layers"
                )
            self._has_offered = True
            return context.wrap(OFFER, False).message
        check_choice(context.unwrap(response).message)
        self.authorization_id = self._server.names.of(str(context.initiator_name))
        self.is_complete = True
        return b""


class GssapiServer:
    """A factory of GSSAPI mechanisms for one listener.

    Parameters
    ----------
    principal:
        Kerberos principal of the broker, such as ``kafka/host.example@REALM``.
    keytab:
        Path of the keytab with the principal's key.
    rules:
        Value of the property ``sasl.kerberos.principal.to.local.rules``.

    Raises
    ------
    KafkaConfigurationError
        The Kerberos library is missing, or the keytab does not contain the key.
    """

    def __init__(self, principal: str, keytab: str, rules: str = "DEFAULT") -> None:
        try:
            import gssapi as gss
        except (ImportError, OSError) as error:
            raise KafkaConfigurationError(
                f"GSSAPI on a broker needs Kerberos: install kafkacore[gssapi] ({error})"
            ) from error
        self.gss = gss
        realm = principal.rpartition("@")[2] if "@" in principal else ""
        if not realm:
            raise KafkaConfigurationError(
                f"principal={principal!r} must have a realm: kafka/host.example@REALM"
            )
        self.names = ShortNames(split_rules(rules), realm)
        try:
            self._credentials = gss.Credentials(
                name=gss.Name(principal, gss.NameType.kerberos_principal),
                usage="accept",
                mechs=[gss.MechType.kerberos],
                store={"keytab": keytab},
            )
        except gss.raw.misc.GSSError as error:
            message = f"cannot load the key of {principal} from {keytab}: {error}"
            raise KafkaConfigurationError(message) from error

    def __call__(self) -> SaslServerMechanism:
        return GssapiServerMechanism(self)

    def new_context(self) -> gss.SecurityContext:
        """Return the security context for the authentication of one client."""
        context: Any = self.gss.SecurityContext(creds=self._credentials, usage="accept")
        # Raise an error at once. By default, the library returns a token that reports the error, and raises
        # the error in the next step.
        context.__DEFER_STEP_ERRORS__ = False
        return cast("gss.SecurityContext", context)

    def close(self) -> None:
        """Do nothing: this login has no background work."""
