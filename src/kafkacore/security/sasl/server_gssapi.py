"""GSSAPI, the broker's side: a client's Kerberos ticket in, who it is out. Needs the extra ``[gssapi]``.

Does not know: frames, where the keytab is configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.escaping import shown
from kafkacore.security.sasl.gssapi_layers import OFFER, check_choice
from kafkacore.security.sasl.kerberos_names import ShortNames, split_rules
from kafkacore.security.server_mechanism import SaslServerMechanism

if TYPE_CHECKING:
    import gssapi as gss

GSSAPI: Final = "GSSAPI"


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
