"""The broker's side of OAUTHBEARER, as Kafka's ``OAuthBearerSaslServer``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.logs import logger_of
from kafkacore.security.https import HttpsOptions
from kafkacore.security.sasl.oauth_messages import ERROR_ACKNOWLEDGED, parse_initial_response
from kafkacore.security.sasl.token_rules import TokenRefusedError, ValidToken
from kafkacore.security.sasl.unsecured_tokens import UNSECURED_VALIDATOR, UnsecuredValidator
from kafkacore.security.server_mechanism import SaslServerMechanism

logger = logger_of(__name__)

OAUTHBEARER: Final = "OAUTHBEARER"
HANDLER: Final = "sasl.server.callback.handler.class"
#: Properties that determine how often keys are fetched, with Kafka's defaults.
_TIMES: Final = {
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "3600000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "100",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "10000",
}
_CAFILE: Final = "sasl.oauthbearer.jwks.endpoint.cafile"
#: Values of the handler property with which the broker validates signed tokens. These values are the empty
#: default and the names of Kafka's two validator classes.
_VALIDATORS: Final = frozenset(
    {
        "",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    }
)


class TokenValidator(Protocol):
    """Checks tokens."""

    def validate(self, token: str) -> ValidToken:
        """Return the relevant claims of a token, or raise TokenRefusedError. No other error may be raised."""

    def close(self) -> None:
        """Stop background work."""


class OAuthBearerServerMechanism(SaslServerMechanism):
    """One authentication by OAUTHBEARER, on the broker."""

    name = OAUTHBEARER

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._refusal: TokenRefusedError | None = None

    def step(self, response: bytes) -> bytes:
        if self._refusal is not None:
            # The error has been sent to the client. The exchange has failed, whatever the client replies.
            reply = "" if response == ERROR_ACKNOWLEDGED else "; the client did not acknowledge the error"
            raise SaslAuthenticationFailedError(f"the token was rejected: {self._refusal}{reply}")
        message = parse_initial_response(response)
        try:
            token = self._validator.validate(message.token.text())
        except TokenRefusedError as error:
            self._refusal = error
            return json.dumps({"status": error.status}).encode("ascii")
        if message.authorization_id and message.authorization_id != token.principal:
            raise SaslAuthenticationFailedError("the authorization id is not the principal of the token")
        self.authorization_id = token.principal
        self.expires_at_ms = token.expires_at_ms
        self.is_complete = True
        return b""


class OAuthBearerServer:
    """A factory of OAUTHBEARER mechanisms for one listener.

    Parameters
    ----------
    config:
        Properties of the listener without their prefixes: ``sasl.oauthbearer.*`` and
        ``sasl.server.callback.handler.class``.
    jaas_options:
        Options of the mechanism's login module. They apply only to the validation of unsigned tokens.

    Raises
    ------
    KafkaConfigurationError
        A property is missing, invalid or not allowed.
    KafkaError
        The keys cannot be loaded.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        jaas_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._validator = _validator(config, jaas_options or {}, clock)

    def __call__(self) -> SaslServerMechanism:
        return OAuthBearerServerMechanism(self._validator)

    def close(self) -> None:
        """Stop the thread that refreshes the keys, if there is one."""
        self._validator.close()


def _validator(config: Mapping[str, str], jaas_options: Mapping[str, str], clock: Clock) -> TokenValidator:
    handler = config.get(HANDLER, "").strip()
    if handler == UNSECURED_VALIDATOR:
        logger.warning("OAUTHBEARER accepts unsigned tokens: use this only for development")
        return UnsecuredValidator(jaas_options, clock)
    if handler not in _VALIDATORS:
        raise KafkaConfigurationError(
            f"{HANDLER}={handler!r} is not supported, because kafkacore loads no Java class: leave it out to "
            f"accept signed tokens"
        )
    try:
        from kafkacore.security.sasl.jwks import JWKS_URL, RefreshTimes, key_source
        from kafkacore.security.sasl.jwt_validation import JwtRules, JwtValidator
    except ModuleNotFoundError as error:
        raise KafkaConfigurationError(
            f"OAUTHBEARER on a broker needs {error.name}: install kafkacore[oauth]"
        ) from error
    rules = JwtRules.from_config(config)
    times = RefreshTimes(*(_positive(config, name, default) for name, default in _TIMES.items()))
    options = HttpsOptions(cafile=config.get(_CAFILE) or None)
    keys = key_source(config[JWKS_URL].strip(), options, times, clock)
    return JwtValidator(rules, keys, clock)


def _positive(config: Mapping[str, str], name: str, default: str) -> float:
    text = config.get(name, "").strip() or default
    if not text.isdecimal() or int(text) < 1:
        raise KafkaConfigurationError(f"{name}={text!r} must be a number of milliseconds above 0")
    return float(text)
