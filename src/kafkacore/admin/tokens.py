"""Delegation tokens (KIP-48): create, renew, expire and describe them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkacore.admin.arguments import listed
from kafkacore.admin.driver import Driver
from kafkacore.admin.requester import CONTROLLER
from kafkacore.admin.responses import error_of
from kafkacore.errors import IllegalArgumentError
from kafkacore.protocol.generated.create_delegation_token import CreateDelegationTokenRequest
from kafkacore.protocol.generated.describe_delegation_token import DescribeDelegationTokenRequest
from kafkacore.protocol.generated.expire_delegation_token import ExpireDelegationTokenRequest
from kafkacore.protocol.generated.renew_delegation_token import RenewDelegationTokenRequest


class DelegationToken(NamedTuple):
    """A delegation token. Times are milliseconds since the epoch.

    To log in with the token, use SCRAM with the token's id as user name and its base64-encoded HMAC as
    password.
    """

    token_id: str
    #: The secret.
    hmac: bytes
    owner: str
    requester: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    renewers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"DelegationToken(token_id={self.token_id!r}, hmac=[hidden], owner={self.owner!r}, "
            f"expiry_timestamp_ms={self.expiry_timestamp_ms})"
        )


class TokenAdmin:
    """The delegation token operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests to the controller.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def create(
        self, renewers: Iterable[str], owner: str | None, max_lifetime_ms: int, timeout_ms: float
    ) -> DelegationToken:
        """Create a token for the client's user, or for another owner (KIP-373)."""
        names = tuple(listed("renewers", renewers, "principals"))
        kind, name = (None, None) if owner is None else _principal(owner)
        response = self._driver.requester.send(
            CreateDelegationTokenRequest(
                owner_principal_type=kind,
                owner_principal_name=name,
                renewers=[
                    CreateDelegationTokenRequest.CreatableRenewers(
                        principal_type=each[0], principal_name=each[1]
                    )
                    for each in map(_principal, names)
                ],
                max_lifetime_ms=max_lifetime_ms,
            ),
            timeout_ms,
            CONTROLLER,
        )
        if response.error_code:
            raise error_of(response.error_code, None, "the delegation token was not created")
        return DelegationToken(
            response.token_id,
            response.hmac,
            f"{response.principal_type}:{response.principal_name}",
            f"{response.token_requester_principal_type}:{response.token_requester_principal_name}",
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
            names,
        )

    def renew(self, hmac: bytes, period_ms: int, timeout_ms: float) -> int:
        """Renew a token, and return the time when it expires."""
        response = self._driver.requester.send(
            RenewDelegationTokenRequest(hmac=_hmac(hmac), renew_period_ms=period_ms), timeout_ms, CONTROLLER
        )
        if response.error_code:
            raise error_of(response.error_code, None, "the delegation token was not renewed")
        return response.expiry_timestamp_ms

    def expire(self, hmac: bytes, period_ms: int, timeout_ms: float) -> int:
        """Change the time when a token expires, and return the new time."""
        response = self._driver.requester.send(
            ExpireDelegationTokenRequest(hmac=_hmac(hmac), expiry_time_period_ms=period_ms),
            timeout_ms,
            CONTROLLER,
        )
        if response.error_code:
            raise error_of(response.error_code, None, "the expiry of the delegation token was not changed")
        return response.expiry_timestamp_ms

    def describe(self, owners: Iterable[str] | None, timeout_ms: float) -> list[DelegationToken]:
        """Describe the tokens that the client's user may see."""
        request_class = DescribeDelegationTokenRequest
        response = self._driver.requester.send(
            request_class(
                owners=None
                if owners is None
                else [
                    request_class.DescribeDelegationTokenOwner(principal_type=each[0], principal_name=each[1])
                    for each in map(_principal, listed("owners", owners, "principals"))
                ]
            ),
            timeout_ms,
        )
        if response.error_code:
            raise error_of(response.error_code, None, "delegation tokens")
        return [
            DelegationToken(
                token.token_id,
                token.hmac,
                f"{token.principal_type}:{token.principal_name}",
                f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
                token.issue_timestamp,
                token.expiry_timestamp,
                token.max_timestamp,
                tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
            )
            for token in response.tokens
        ]


def _hmac(hmac: bytes) -> bytes:
    if not isinstance(hmac, bytes | bytearray):
        # The value is a secret, so it is not in the message.
        raise TypeError(f"hmac must be the bytes of DelegationToken.hmac, not {type(hmac).__name__}")
    return bytes(hmac)


def _principal(text: str) -> tuple[str, str]:
    kind, separator, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not separator or not kind or not name:
        raise IllegalArgumentError(f"{text!r} is not a principal such as 'User:alice'")
    return kind, name
