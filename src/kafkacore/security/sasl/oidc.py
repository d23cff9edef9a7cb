"""Fetching of tokens with client credentials (RFC 6749, 4.4).

Kafka's class is ``ClientCredentialsJwtRetriever``.
"""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import quote_plus, urlencode

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.https import HttpsError, HttpsOptions, HttpsUnavailableError, checked_url, fetch
from kafkacore.security.sasl.mechanism import SaslConfig
from kafkacore.security.sasl.oauth_token import OAuthToken, json_object

_URL: Final = "sasl_oauthbearer_token_endpoint_url"
_ID: Final = "sasl_oauthbearer_client_credentials_client_id"
_SECRET: Final = "sasl_oauthbearer_client_credentials_client_secret"  # noqa: S105 - the name of a setting


class ClientCredentials:
    """Fetches tokens from the configured token endpoint.

    Raises
    ------
    KafkaConfigurationError
        The endpoint is not allowed (:mod:`kafkacore.security.https`), or the id or the secret is missing.
    """

    def __init__(self, config: SaslConfig, clock: Clock) -> None:
        self._url = checked_url(config.oauthbearer_token_endpoint_url or "", _URL)
        client_id = (config.oauthbearer_client_credentials_client_id or "").strip()
        secret = config.oauthbearer_client_credentials_client_secret
        if not client_id or secret is None or not secret.text().strip():
            raise KafkaConfigurationError(f"{_URL} needs {_ID} and {_SECRET}")
        self._id, self._secret = client_id, secret
        self._quotes = config.oauthbearer_header_urlencode
        form = {"grant_type": "client_credentials"}
        if config.oauthbearer_scope and config.oauthbearer_scope.strip():
            form["scope"] = config.oauthbearer_scope.strip()
        self._body = urlencode(form)
        self._options = HttpsOptions(
            connect_timeout_ms=config.login_connect_timeout_ms,
            read_timeout_ms=config.login_read_timeout_ms,
            cafile=config.oauthbearer_https_cafile,
            proxy=config.proxy,
        )
        self._backoff_ms = config.login_retry_backoff_ms
        self._backoff_max_ms = config.login_retry_backoff_max_ms
        self._clock = clock

    def retrieve(self) -> OAuthToken:
        """Fetch a new token. This blocks.

        A temporary failure is retried with exponential back-off until ``sasl_login_retry_backoff_max_ms`` has
        passed.

        Raises
        ------
        HttpsError
            The endpoint returned no token. The message contains the response of the endpoint.
        """
        clock = self._clock
        deadline_ms = clock.monotonic_ms() + self._backoff_max_ms
        backoff_ms = self._backoff_ms
        while True:
            try:
                return self._request()
            except HttpsUnavailableError:
                left_ms = deadline_ms - clock.monotonic_ms()
                if left_ms <= 0:
                    raise
                clock.sleep_ms(min(backoff_ms, left_ms))
                backoff_ms *= 2

    def _request(self) -> OAuthToken:
        headers = {
            "Authorization": "Basic " + self._credentials(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        now_ms = self._clock.wall_ms()
        answer = fetch(self._url, self._options, body=self._body, headers=headers, clock=self._clock)
        try:
            document = json_object(answer)
        except ValueError as error:
            raise HttpsError(f"cannot parse the response of {self._url}: {error}") from None
        token = document.get("access_token")
        if not isinstance(token, str) or not token.strip():
            raise HttpsError(f"the response of {self._url} has no access_token")
        life_s = document.get("expires_in")
        lifetime_ms = None
        if isinstance(life_s, int | float) and not isinstance(life_s, bool) and 0 < life_s < 1e10:
            lifetime_ms = life_s * 1000.0
        return OAuthToken.of_text(token.strip(), lifetime_ms=lifetime_ms, now_ms=now_ms)

    def _credentials(self) -> str:
        parts = [self._id, self._secret.text().strip()]
        if self._quotes:
            parts = [quote_plus(part) for part in parts]
        return base64.b64encode(":".join(parts).encode("utf-8")).decode("ascii")
