"""Build the requests that alter and describe SCRAM credentials, and read their responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacore.access_control import ScramMechanism
from kafkacore.admin.arguments import names
from kafkacore.admin.responses import complete, error_of, error_text, member
from kafkacore.admin.results import UserScramCredentials
from kafkacore.admin.users import UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.errors import IllegalArgumentError
from kafkacore.protocol.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kafkacore.protocol.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


def alter(
    alterations: Iterable[UserScramCredentialDeletion | UserScramCredentialUpsertion],
) -> AlterUserScramCredentialsRequest:
    request_class = AlterUserScramCredentialsRequest
    request = request_class(deletions=[], upsertions=[])
    for each in alterations:
        if isinstance(each, UserScramCredentialDeletion):
            request.deletions.append(
                request_class.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            )
        elif isinstance(each, UserScramCredentialUpsertion):
            request.upsertions.append(
                request_class.ScramCredentialUpsertion(
                    name=each.user,
                    mechanism=each.mechanism,
                    iterations=each.iterations,
                    salt=each.salt,
                    salted_password=each.salted_password,
                )
            )
        else:
            raise IllegalArgumentError(
                "alterations must be UserScramCredentialUpsertion or UserScramCredentialDeletion objects, "
                f"not {type(each).__name__}"
            )
    return request


def altered(
    alterations: Sequence[UserScramCredentialDeletion | UserScramCredentialUpsertion],
    response: AlterUserScramCredentialsResponse,
    raise_errors: bool,
) -> dict[str, str | None]:
    results: dict[str, str | None] = {}
    for result in response.results:
        if result.error_code and raise_errors:
            raise error_of(result.error_code, result.error_message, f"user {result.user!r}")
        results[result.user] = error_text(result)
    return complete(results, [each.user for each in alterations])


def describe(users: Iterable[str] | None) -> DescribeUserScramCredentialsRequest:
    request_class = DescribeUserScramCredentialsRequest
    return request_class(
        users=None if users is None else [request_class.UserName(name=user) for user in names("users", users)]
    )


def described(response: DescribeUserScramCredentialsResponse) -> dict[str, UserScramCredentials]:
    if response.error_code:
        raise error_of(response.error_code, response.error_message, "users")
    return {
        result.user: {
            "error": error_text(result),
            "credential_infos": [
                {"mechanism": member(ScramMechanism, info.mechanism), "iterations": info.iterations}
                for info in result.credential_infos
            ],
        }
        for result in response.results
    }
