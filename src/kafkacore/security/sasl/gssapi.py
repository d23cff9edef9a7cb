"""GSSAPI, the client's side: a Kerberos ticket for the broker (RFC 4752). Needs the extra ``[gssapi]``.

In: the broker's host and the settings ``sasl_kerberos_*``. Out: tokens of the system's Kerberos. Does not
know: frames.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafkacore.errors import (
    CredentialsUnavailableError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafkacore.security.sasl.bounded_call import BoundedCalls
from kafkacore.security.sasl.gssapi_layers import answer_to_offer
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism

if TYPE_CHECKING:
    import gssapi as gss

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
    login: KerberosLogin = config.login
    gss = login.gss
    target = config.kerberos_name
    if target is None:
        target = f"{config.kerberos_service_name}@{config.kerberos_domain_name or host}"
    if isinstance(target, str):
        target = gss.Name(target, gss.NameType.hostbased_service)
    return GssapiMechanism(login, target)
