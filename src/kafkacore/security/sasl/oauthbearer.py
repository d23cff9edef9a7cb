"""OAUTHBEARER, the client's side: a token provider in, the token to the broker out (KIP-255, RFC 7628).

Does not know: frames, how a token is got.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.sasl.oauth_messages import ERROR_ACKNOWLEDGED, build_initial_response
from kafkacore.security.sasl.oauth_token import OAuthToken, RefreshSchedule
from kafkacore.security.sasl.token_cache import TokenCache
from kafkacore.text import shown

logger = logging.getLogger(__name__)

OAUTHBEARER: Final = "OAUTHBEARER"


class AbstractTokenProvider(ABC):
    """Where a client gets its tokens: kafka-python's class, and like there it may be left out of the bases.

    :meth:`token` is called when the client is made, and by a thread of its own when the token before has
    lived for 80 % of its time (of a JWT; of other tokens for every connect that is five seconds later).
    """

    def __init__(self, **config: object) -> None:  # noqa: B027
        pass

    @abstractmethod
    def token(self) -> str:
        """A token that is valid now. It may block; what it raises fails the connect, which is tried again."""

    def extensions(self) -> Mapping[str, str]:
        """SASL extensions (KIP-342) that go with it: names of letters, values of printable ASCII."""
        return {}


class OAuthBearerMechanism(SaslMechanism):
    """One authentication: the token, and the server's word on it."""

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
            raise SaslAuthenticationFailedError(f"the broker refused the token: {self.refusal}")
        if challenge:
            # The exchange is to be ended by the client (RFC 7628, 3.2.3); the broker says why once more then.
            self.refusal = shown(challenge.decode("utf-8", "replace"))
            return ERROR_ACKNOWLEDGED
        self.is_complete = True
        return None


def log_in(config: SaslConfig) -> SaslConfig:
    """The settings with a :class:`TokenCache`, which has its first token.

    Raises
    ------
    KafkaConfigurationError
        It is not said where tokens come from, or what is said cannot be.
    Exception
        What the user's provider raised, or why the token endpoint gave none.
    """
    provider = config.oauth_token_provider
    if provider is not None and config.oauthbearer_token_endpoint_url is not None:
        raise KafkaConfigurationError(
            "sasl_oauth_token_provider, sasl_oauthbearer_token_endpoint_url: both give tokens, leave one out"
        )
    if provider is None and config.oauthbearer_token_endpoint_url is None:
        raise KafkaConfigurationError(
            "sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider or "
            "sasl_oauthbearer_token_endpoint_url"
        )
    if not config.is_encrypted:
        logger.warning(
            "sasl_mechanism='OAUTHBEARER' with security_protocol='SASL_PLAINTEXT' sends the token in clear "
            "text, and who reads it can use it while it is valid: use SASL_SSL"
        )
    retrieve = _of_provider(provider) if provider is not None else _of_endpoint(config)
    schedule = RefreshSchedule(
        config.login_refresh_window_factor,
        config.login_refresh_window_jitter,
        config.login_refresh_min_period_seconds,
        config.login_refresh_buffer_seconds,
    )
    tokens = TokenCache(retrieve, SYSTEM_CLOCK, schedule)
    tokens.log_in()
    return replace(config, login=tokens)


def _of_endpoint(config: SaslConfig) -> Callable[[], OAuthToken]:
    # Imported here: with it comes the standard library's HTTP, which nothing else needs.
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
                "sasl_oauth_token_provider.token() must return text, and none was given"
            )
        extensions = source.extensions() if hasattr(source, "extensions") else {}
        return OAuthToken.of_text(text, dict(extensions or {}))

    return retrieve


def oauthbearer_client(config: SaslConfig, host: str) -> SaslMechanism:
    """For settings that :func:`log_in` gave."""
    return OAuthBearerMechanism(cast(TokenCache, config.login))
