"""Types of the dictionaries that the admin client returns. Keys are those of kafka-python."""

from __future__ import annotations

from typing import TypedDict

from kafkacore.access_control import ScramMechanism
from kafkacore.admin.acls import ACL
from kafkacore.errors import BrokerResponseError


class CreatedAcls(TypedDict):
    """The outcome of ``create_acls``."""

    succeeded: list[ACL]
    failed: list[type[BrokerResponseError]]


class ScramCredentialInfo(TypedDict):
    """One SCRAM credential of a user."""

    mechanism: ScramMechanism
    iterations: int


class UserScramCredentials(TypedDict):
    """The SCRAM credentials of one user in the result of ``describe_user_scram_credentials``."""

    error: str | None
    credential_infos: list[ScramCredentialInfo]


class ClientQuotas(TypedDict):
    """The quotas of one entity in the result of ``describe_client_quotas``."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


class AlteredClientQuotas(TypedDict):
    """The outcome of ``alter_client_quotas`` for one entity."""

    entity: dict[str, str | None]
    error: str | None
