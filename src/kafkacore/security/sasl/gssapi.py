"""GSSAPI (RFC 4752): Kerberos tickets. Needs the extra ``[gssapi]`` at either end.

No security layer is agreed on, because Kafka's frames have none: TLS encrypts.
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
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.server_mechanism import SaslServerMechanism
from kafkacore.text import shown

if TYPE_CHECKING:
    import gssapi as gss

# ---- Layers: what both ends say once Kerberos has introduced them ---------------------------------------

#: Authentication alone; the other bits are integrity and confidentiality.
NO_LAYER: Final = 0x01
#: The layer, and the longest message that is taken, which is 0 without one.
OFFER: Final = bytes([NO_LAYER, 0, 0, 0])


def answer_to_offer(offer: bytes, authorization_id: str) -> bytes:
    """The client's choice among the layers that the server offers."""
    if len(offer) != 4 or not offer[0] & NO_LAYER:
        raise SaslAuthenticationFailedError(
            "the broker insists on a security layer, which Kafka does not have"
        )
    return OFFER + authorization_id.encode("utf-8")


def check_choice(choice: bytes) -> None:
    """The server's look at it. Whom the client wants to be is not: like Kafka, it is who its ticket says."""
    if len(choice) < 4 or choice[0] != NO_LAYER:
        raise SaslAuthenticationFailedError("the client wants a security layer, which Kafka does not have")


# ---- The client's side ----------------------------------------------------------------------------------

GSSAPI: Final = "GSSAPI"
#: Minor codes of MIT Kerberos that may pass: no KDC could be reached, or one said to come again.
_MAY_PASS: Final = frozenset({2529639068, 2529638972})


class KerberosLogin:
    """What the mechanisms of one client have in common: its credentials.

    With ``sasl_kerberos_keytab`` they are of that file, and renewed by the library; without, they are those
    of the process (``kinit``, ``KRB5CCNAME``, ``KRB5_CLIENT_KTNAME``).
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
            # Not the process' own, so that its clients can be several principals; those of one share tickets.
            whose = f"{config.kerberos_principal}\0{config.kerberos_keytab}".encode()
            self._store = {
                "client_keytab": config.kerberos_keytab,
                "ccache": f"MEMORY:kafkacore-{hashlib.sha256(whose).hexdigest()}",
            }

    def credentials(self) -> gss.Credentials:
        """May ask a KDC, and take long."""
        import gssapi as gss

        name = None
        if self._principal is not None:
            name = gss.Name(self._principal, gss.NameType.kerberos_principal)
        return gss.Credentials(name=name, usage="initiate", mechs=[gss.MechType.kerberos], store=self._store)

    def close(self) -> None:
        """Nothing runs for it."""


class GssapiMechanism(SaslMechanism):
    """One authentication."""

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
            message = f"Kerberos, for {self._target}: {error}"
            if getattr(error, "min_code", 0) in _MAY_PASS:
                raise CredentialsUnavailableError(message) from error
            raise SaslAuthenticationFailedError(message) from error

    def _step(self, challenge: bytes | None) -> bytes | None:
        context = self._context
        if context is None:
            # Tickets are kept by the library: a call that comes too late has not been for nothing.
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
            raise SaslAuthenticationFailedError("the broker goes on where GSSAPI has ended")
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
        """Whether the broker has shown who it is."""
        if not actual_flags & self._login.gss.RequirementFlag.mutual_authentication:
            raise SaslAuthenticationFailedError("the broker did not show who it is")


def log_in(config: SaslConfig) -> SaslConfig:
    """The settings with a :class:`KerberosLogin`, whose credentials are there.

    Raises
    ------
    KafkaConfigurationError
        There is no library, or it has no credentials.
    """
    login = KerberosLogin(config)
    try:
        # Acquired whatever they are: a principal without a ticket is told here, not at the first connect.
        login.credentials().name  # noqa: B018
    except login.gss.raw.misc.GSSError as error:
        raise KafkaConfigurationError(
            f"sasl_mechanism='GSSAPI': {error}; run kinit, or set sasl_kerberos_keytab"
        ) from error
    return replace(config, login=login)


def gssapi_client(config: SaslConfig, host: str) -> SaslMechanism:
    """For settings that :func:`log_in` gave."""
    login = cast(KerberosLogin, config.login)
    gss = login.gss
    target = config.kerberos_name
    if target is None:
        target = f"{config.kerberos_service_name}@{config.kerberos_domain_name or host}"
    if isinstance(target, str):
        target = gss.Name(target, gss.NameType.hostbased_service)
    return GssapiMechanism(login, target)


# ---- The broker's side ----------------------------------------------------------------------------------


class GssapiServerMechanism(SaslServerMechanism):
    """One authentication."""

    name = GSSAPI

    def __init__(self, server: GssapiServer) -> None:
        self._server = server
        self._context = server.new_context()
        self._has_offered = False

    def step(self, response: bytes) -> bytes:
        try:
            return self._step(response)
        except self._server.gss.raw.misc.GSSError as error:
            raise SaslAuthenticationFailedError(f"Kerberos: {shown(str(error))}") from error

    def _step(self, response: bytes) -> bytes:
        context = self._context
        if not context.complete:
            token = context.step(response)
            if token or not context.complete:
                return token or b""
            response = b""
        if not self._has_offered:
            if response:
                raise SaslAuthenticationFailedError("the client speaks where the layers are to be offered")
            self._has_offered = True
            return context.wrap(OFFER, False).message
        check_choice(context.unwrap(response).message)
        self.authorization_id = self._server.names.of(str(context.initiator_name))
        self.is_complete = True
        return b""


class GssapiServer:
    """What GSSAPI needs on a listener: made once; a factory of mechanisms.

    Parameters
    ----------
    principal:
        The broker's, as ``kafka/host.example@REALM``.
    keytab:
        Path of the file with its key.
    rules:
        The property ``sasl.kerberos.principal.to.local.rules``.

    Raises
    ------
    KafkaConfigurationError
        There is no library, or the file does not have the key.
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
            raise KafkaConfigurationError(f"the key of {principal} is not in {keytab}: {error}") from error

    def __call__(self) -> SaslServerMechanism:
        return GssapiServerMechanism(self)

    def new_context(self) -> gss.SecurityContext:
        """Of one client's authentication."""
        context: Any = self.gss.SecurityContext(creds=self._credentials, usage="accept")
        # Else an error is told one step later, and a token of it is sent first.
        context.__DEFER_STEP_ERRORS__ = False
        return cast("gss.SecurityContext", context)

    def close(self) -> None:
        """Nothing runs for it."""
