"""Validation of a client's JSON Web Token on a broker, as in Kafka's ``BrokerJwtValidator``.

PyJWT, of the extra ``[oauth]``, checks the signature, the issuer and the audience. Keys, an issuer and an
audience must be configured: without them, Kafka accepted any token (CVE-2026-33557, CVE-2026-110985).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import jwt

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.sasl.jwks import JWKS_URL, KeySource, VerificationKey
from kafkacore.security.sasl.token_rules import (
    TokenRefusedError,
    ValidToken,
    check_scope,
    check_times,
    principal_name,
    token_header,
)
from kafkacore.text import shown

#: Supported signature algorithms. All of them use key pairs: with a symmetric algorithm, an attacker could
#: sign tokens with the public key.
ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_ALGORITHMS: Final = "sasl.oauthbearer.allowed.algorithms"
#: Value of the audience property that accepts tokens for any audience or for none.
ANY_AUDIENCE: Final = "*"


@dataclass(frozen=True, kw_only=True)
class JwtRules:
    """The requirements for a token. Each field is the Kafka broker property of the same name.

    Attributes
    ----------
    audience:
        Accepted audiences. A token must have one of them. If this set is empty, any audience is accepted.
    required_scope:
        Required scopes. A token must have all of them.
    """

    issuer: str
    audience: frozenset[str]
    required_scope: frozenset[str] = frozenset()
    principal_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_ms: float = 30_000.0
    algorithms: frozenset[str] = ALGORITHMS

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> JwtRules:
        """Read the rules from the properties of a listener.

        Raises
        ------
        KafkaConfigurationError
            A mandatory property is missing, or a value is invalid.
        """
        for name in (JWKS_URL, ISSUER, AUDIENCE):
            if not config.get(name, "").strip():
                raise KafkaConfigurationError(
                    f"OAUTHBEARER needs {name}: without it, the broker would accept tokens that were not "
                    f"issued for it"
                )
        audience = _words(config[AUDIENCE].replace(",", " "))
        skew = config.get("sasl.oauthbearer.clock.skew.seconds", "30").strip()
        if not skew.isdecimal():
            raise KafkaConfigurationError(f"sasl.oauthbearer.clock.skew.seconds={skew!r} must be a number")
        algorithms = (
            _words(config.get("sasl.oauthbearer.allowed.algorithms", "").replace(",", " ")) or ALGORITHMS
        )
        if not algorithms <= ALGORITHMS:
            raise KafkaConfigurationError(
                f"{_ALGORITHMS}: {', '.join(sorted(algorithms - ALGORITHMS))} cannot be allowed; supported "
                f"are {', '.join(sorted(ALGORITHMS))}"
            )
        return cls(
            issuer=config[ISSUER].strip(),
            audience=frozenset() if audience == {ANY_AUDIENCE} else audience,
            required_scope=_words(config.get("sasl.oauthbearer.required.scope", "").replace(",", " ")),
            principal_claim=config.get("sasl.oauthbearer.sub.claim.name", "").strip() or "sub",
            scope_claim=config.get("sasl.oauthbearer.scope.claim.name", "").strip() or "scope",
            clock_skew_ms=int(skew) * 1000.0,
            algorithms=algorithms,
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class JwtValidator:
    """Accepts tokens that are signed with a known key and satisfy the rules."""

    def __init__(self, rules: JwtRules, keys: KeySource, clock: Clock) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock

    def validate(self, token: str) -> ValidToken:
        """Check a token and return its relevant claims.

        Raises
        ------
        TokenRefusedError
            The token is not valid. No other exception is raised, whatever the text.
        """
        key, algorithm = self._key_of(token)
        rules = self._rules
        try:
            claims = jwt.decode(
                token,
                key.jwk.key,
                algorithms=[algorithm],
                issuer=rules.issuer,
                audience=sorted(rules.audience) or None,
                # PyJWT does not check the times: check_times() does, with the clock of this validator.
                options={
                    "require": ["exp", "iat", rules.principal_claim],
                    "verify_aud": bool(rules.audience),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                    "verify_sub": False,
                    "verify_jti": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            raise TokenRefusedError(f"{type(error).__name__}: {shown(str(error))}") from None
        expires_at_ms = check_times(claims, self._clock.wall_ms(), rules.clock_skew_ms)
        scope = check_scope(claims, rules.scope_claim, rules.required_scope)
        return ValidToken(principal_name(claims, rules.principal_claim), expires_at_ms, scope)

    def close(self) -> None:
        self._keys.close()

    def _key_of(self, token: str) -> tuple[VerificationKey, str]:
        header = token_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
            raise TokenRefusedError(f"the signature algorithm {shown(str(algorithm))} is not allowed")
        if "crit" in header:
            raise TokenRefusedError("the header has critical extensions (crit), which are not supported")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefusedError("the key id is not text")
        key = self._keys.key(key_id)
        if key is None:
            raise TokenRefusedError(f"the token is signed with the unknown key {shown(str(key_id))}")
        if not key.supports(algorithm):
            raise TokenRefusedError(f"the key may not be used with {algorithm}")
        return key, algorithm
