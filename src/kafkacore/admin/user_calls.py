"""Passwords of users, by SCRAM: set, deleted, and described without the secret.

Does not know: how a request travels and is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacore.admin.calls import AdminCalls, error_of, member
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.errors import IllegalArgumentError, for_code
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkacore.structs import ScramMechanism


class UserCalls(AdminCalls):
    """Of one admin client."""

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialDeletion | UserScramCredentialUpsertion],
        raise_errors: bool = False,
    ) -> dict[str, str | None]:
        """Set and delete passwords.

        Parameters
        ----------
        alterations:
            One of each user: brokers refuse both of a user's mechanisms in the same call.
        raise_errors:
            Raise the first user's error.

        Returns
        -------
        dict
            User → what the broker says against it, or ``None`` where it is done.
        """
        shape = AlterUserScramCredentialsRequest
        request = shape(deletions=[], upsertions=[])
        for each in alterations:
            if isinstance(each, UserScramCredentialDeletion):
                request.deletions.append(
                    shape.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
                )
            elif isinstance(each, UserScramCredentialUpsertion):
                request.upsertions.append(
                    shape.ScramCredentialUpsertion(
                        name=each.user,
                        mechanism=each.mechanism,
                        iterations=each.iterations,
                        salt=each.salt,
                        salted_password=each.salted_password,
                    )
                )
            else:
                raise IllegalArgumentError(
                    "alterations must be of UserScramCredentialUpsertion and UserScramCredentialDeletion, "
                    f"not {type(each).__name__}"
                )
        results: dict[str, str | None] = {}
        for result in self._ask(request).results:
            if result.error_code and raise_errors:
                raise error_of(result.error_code, result.error_message, f"user {result.user!r}")
            results[result.user] = _said(result)
        return results

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Who has a password.

        Parameters
        ----------
        users:
            Of these; of all, by default.

        Returns
        -------
        dict
            User → ``{"error": None or text, "credential_infos": [{"mechanism": ScramMechanism, "iterations":
            int}]}``. That there is no such user is an error of it.
        """
        shape = DescribeUserScramCredentialsRequest
        if isinstance(users, str):
            raise IllegalArgumentError(f"users must be a list of names: [{users!r}]")
        wanted = None if users is None else [shape.UserName(name=user) for user in users]
        answer = self._ask(shape(users=wanted))
        if answer.error_code:
            raise error_of(answer.error_code, answer.error_message, "users")
        return {
            result.user: {
                "error": _said(result),
                "credential_infos": [
                    {"mechanism": member(ScramMechanism, info.mechanism), "iterations": info.iterations}
                    for info in result.credential_infos
                ],
            }
            for result in answer.results
        }


def _said(result: Any) -> str | None:
    """What the broker says against it; some errors have no words."""
    if not result.error_code:
        return None
    return result.error_message or for_code(result.error_code).__name__
