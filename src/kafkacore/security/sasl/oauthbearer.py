"""The client's side of OAUTHBEARER (KIP-255, RFC 7628)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.logs import logger_of
from kafkacore.security.first_fetch import at_once, current_run
from kafkacore.security.sasl.mechanism import ClientMechanism, SaslConfig, SaslMechanism
from kafkacore.security.sasl.oauth_messages import ERROR_ACKNOWLEDGED, build_initial_response
from kafkacore.security.sasl.oauth_token import OAuthToken, RefreshSchedule
from kafkacore.security.sasl.token_cache import MAX_WAIT_MS, TokenCache
from kafkacore.text import shown

logger = logger_of(__name__)

OAUTHBEARER: Final = "OAUTHBEARER"


class AbstractTokenProvider(ABC):
    """Base class of token providers, as in kafka-python. Any object with a method ``token`` works, too.

    The first call of :meth:`token` occurs when the client is created. A background thread makes the later
    calls. If the last token is a JWT, the next call is due when 80 % of its lifetime has passed. For another
    token, the next call is due when a connection needs a token and the last token is older than five seconds.
    """

    def __init__(self, **config: object) -> None:  # noqa: B027
        pass

    @abstractmethod
    def token(self) -> str:
        """Return a valid token. This may block. After an exception, the client tries to connect again."""

    def extensions(self) -> Mapping[str, str]:
        """Return the SASL extensions to send with the token (KIP-342).

        Names must consist of letters, and values of printable ASCII characters.
        """
        return {}


class OAuthBearerMechanism(SaslMechanism):
    """One authentication by OAUTHBEARER."""

    name = OAUTHBEARER

    def __init__(self, tokens: TokenCache) -> None:
        self._tokens = tokens
        self._has_sent_token = False

    def step(self, challenge: bytes | None) -> bytes | None:
        if not self._has_sent_token:
            self._has_sent_token = True
            token = self._tokens.token()
            return build_initial_response(token.value, token.extensions)
        if self.refusal:
            raise SaslAuthenticationFailedError(f"the broker rejected the token: {self.refusal}")
        if challenge:
            # The client must end the exchange (RFC 7628, 3.2.3). The broker then reports the error again.
            self.refusal = shown(challenge.decode("utf-8", "replace"))
            return ERROR_ACKNOWLEDGED
        self.is_complete = True
        return None


def log_in(config: SaslConfig) -> SaslConfig:
    """Return the settings with a :class:`TokenCache` that has its first token, or gets it later.

    Raises
    ------
    KafkaConfigurationError
        The settings name no source of tokens, or are invalid.
    Exception
        The user's token provider or the request to the token endpoint failed.
    """
    provider = config.oauth_token_provider
    if provider is not None and config.oauthbearer_token_endpoint_url is not None:
        raise KafkaConfigurationError(
            "sasl_oauth_token_provider and sasl_oauthbearer_token_endpoint_url must not be set together: "
            "leave one of them out"
        )
    if provider is None and config.oauthbearer_token_endpoint_url is None:
        raise KafkaConfigurationError(
            "sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider or "
            "sasl_oauthbearer_token_endpoint_url"
        )
    if not config.is_encrypted:
        logger.warning(
            "sasl_mechanism='OAUTHBEARER' with security_protocol='SASL_PLAINTEXT' sends the token "
            "unencrypted: anyone who reads it can use it until it expires; use SASL_SSL"
        )
    retrieve = _of_provider(provider) if provider is not None else _of_endpoint(config)
    schedule = RefreshSchedule(
        config.login_refresh_window_factor,
        config.login_refresh_window_jitter,
        config.login_refresh_min_period_seconds,
        config.login_refresh_buffer_seconds,
    )
    run = current_run()
    # An event loop does not wait for a later token either: its next attempt to connect finds it.
    tokens = TokenCache(retrieve, SYSTEM_CLOCK, schedule, MAX_WAIT_MS if run is at_once else 0.0)
    run(tokens.log_in)
    return replace(config, login=tokens)


def _of_endpoint(config: SaslConfig) -> Callable[[], OAuthToken]:
    # Import ``oidc`` only here, because it imports the standard library's HTTP client, which nothing else
    # needs.
    from kafkacore.security.sasl.oidc import ClientCredentials

    return ClientCredentials(config, SYSTEM_CLOCK).retrieve


def _of_provider(provider: object) -> Callable[[], OAuthToken]:
    if not callable(getattr(provider, "token", None)):
        raise KafkaConfigurationError(
            "sasl_oauth_token_provider must have a method token() that returns text"
        )

    source = cast(AbstractTokenProvider, provider)

    def retrieve() -> OAuthToken:
        text = source.token()
        if not isinstance(text, str) or not text:
            raise KafkaConfigurationError(
                "sasl_oauth_token_provider.token() must return a str that is not empty"
            )
        extensions = source.extensions() if hasattr(source, "extensions") else {}
        return OAuthToken.of_text(text, dict(extensions or {}))

    return retrieve


def oauthbearer_client(config: SaslConfig, host: str) -> SaslMechanism:
    """Create the mechanism from settings that :func:`log_in` has returned."""
    return OAuthBearerMechanism(cast(TokenCache, config.login))


CLIENT: Final = ClientMechanism(oauthbearer_client, prepare=log_in)
