"""ACLs, users and quotas of a broker on a disk that loses power, and the state that a client expects.

Changes are made through the broker's own handlers, some with several entries at once. The findings are
returned.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any, Final

from model.broker_in_hand import BrokerInHand

from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest
from kafkacore.protocol.generated.describe_acls import DescribeAclsRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

#: Configuration of a broker with ACLs.
CONFIG: Final = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
NAMES: Final = ("a", "b", "c")
READ, DENY, ALLOW, LITERAL, TOPIC, SCRAM_SHA_256 = 3, 2, 3, 3, 2, 1

State = dict[Hashable, Any]


class Rights:
    """Makes random changes with :meth:`change`, and checks the state of a broker with :meth:`judge`."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        #: State after the last answered change.
        self.answered: State = {}
        #: State if the unanswered change, if any, was applied.
        self._pending: State | None = None
        self.changes = 0

    def change(self, broker: BrokerInHand) -> list[str]:
        """Make one change and return what is wrong with its response."""
        number = self.changes % 3
        self.changes += 1
        state = dict(self.answered)
        self._pending = state
        answers = (self._acls, self._user, self._quota)[number](broker, state)
        self._pending = None
        errors = [answer for answer in answers if answer.error_code]
        if errors:
            return [f"change {self.changes}: {errors}"]
        self.answered = state
        return []

    def judge(self, broker: BrokerInHand) -> list[str]:
        """Return each difference to both the last answered state and the state that was requested last."""
        found = found_in(broker)
        possible = [self.answered, *([] if self._pending is None else [self._pending])]
        wrong = [] if found in possible else [f"rights are {found}, not one of {possible}"]
        self.answered, self._pending = found, None
        return wrong

    def _acls(self, broker: BrokerInHand, state: State) -> Any:
        """Create or delete the entries of one name together."""
        name = self._chance.choice(NAMES)
        keys = [(name, principal) for principal in ("User:x", "User:y")]
        if keys[0] in state:
            for key in keys:
                del state[key]
            wanted = DeleteAclsRequest.DeleteAclsFilter(**_any_acl() | {"resource_name_filter": name})
            return broker.ask(DeleteAclsRequest(filters=[wanted])).filter_results
        permission = self._chance.choice((DENY, ALLOW))
        state |= dict.fromkeys(keys, permission)
        entries = [
            CreateAclsRequest.AclCreation(
                resource_type=TOPIC,
                resource_name=name,
                principal=principal,
                host="*",
                operation=READ,
                permission_type=permission,
            )
            for _, principal in keys
        ]
        return broker.ask(CreateAclsRequest(creations=entries)).results

    def _user(self, broker: BrokerInHand, state: State) -> Any:
        name = self._chance.choice(NAMES)
        shape = AlterUserScramCredentialsRequest
        gone, made = [], []
        if name in state and self._chance.random() < 0.5:
            del state[name]
            gone = [shape.ScramCredentialDeletion(name=name, mechanism=SCRAM_SHA_256)]
        else:
            state[name] = self._chance.randint(4096, 16384)
            made = [
                shape.ScramCredentialUpsertion(
                    name=name,
                    mechanism=SCRAM_SHA_256,
                    iterations=state[name],
                    salt=b"salt",
                    salted_password=self._chance.randbytes(32),
                )
            ]
        return broker.ask(shape(deletions=gone, upsertions=made)).results

    def _quota(self, broker: BrokerInHand, state: State) -> Any:
        """Change the quotas of two users in one request."""
        shape = AlterClientQuotasRequest
        entries = []
        is_removal = ("quota", NAMES[0]) in state and self._chance.random() < 0.3
        rate = float(self._chance.randint(1, 10**6))
        for name in NAMES[:2]:
            if is_removal:
                del state["quota", name]
            else:
                state["quota", name] = rate
            entity = shape.EntityData(entity_type="user", entity_name=name)
            change = shape.OpData(key="producer_byte_rate", value=rate, remove=is_removal)
            entries.append(shape.EntryData(entity=[entity], ops=[change]))
        return broker.ask(shape(entries=entries, validate_only=False)).entries


def found_in(broker: BrokerInHand) -> State:
    """Return the ACLs, users and quotas that a broker reports."""
    found: State = {}
    for resource in broker.ask(DescribeAclsRequest(**_any_acl())).resources:
        found |= {(resource.resource_name, acl.principal): acl.permission_type for acl in resource.acls}
    for user in broker.ask(DescribeUserScramCredentialsRequest(users=None)).results:
        (info,) = user.credential_infos
        found[user.user] = info.iterations
    for entry in broker.ask(DescribeClientQuotasRequest(components=[], strict=False)).entries:
        (part,), (limit,) = entry.entity, entry.values
        found["quota", part.entity_name] = limit.value
    return found


def _any_acl() -> dict[str, Any]:
    return {
        "resource_type_filter": TOPIC,
        "resource_name_filter": None,
        "pattern_type_filter": LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": READ,
        "permission_type": 1,
    }
