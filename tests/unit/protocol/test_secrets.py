"""CVE-2026-33558: a debug log showed a request with a secret. None of our messages shows its secrets."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest

from kafkacore.protocol import generated
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.create_delegation_token import CreateDelegationTokenResponse
from kafkacore.protocol.generated.describe_delegation_token import DescribeDelegationTokenResponse
from kafkacore.protocol.generated.expire_delegation_token import ExpireDelegationTokenRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.renew_delegation_token import RenewDelegationTokenRequest
from kafkacore.protocol.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacore.protocol.message import HIDDEN, SECRET_FIELDS, Struct

CANARY = b"hunter2-zq7"
SPOKEN_OF = re.compile(r"hmac|password|salt|secret|auth_bytes")


def altered(shape: type[AlterConfigsRequest] | type[IncrementalAlterConfigsRequest]) -> Struct:
    config = shape.AlterableConfig(name="ssl.key.password", value=CANARY.decode())
    return shape(resources=[shape.AlterConfigsResource(configs=[config])])


def messages() -> Iterator[Struct]:
    """Yield messages with every field that Kafka's clients omit from their logs since then."""
    yield SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + CANARY)
    yield SaslAuthenticateResponse(auth_bytes=CANARY)
    scram = AlterUserScramCredentialsRequest
    yield scram(
        upsertions=[scram.ScramCredentialUpsertion(name="alice", salt=CANARY, salted_password=CANARY)]
    )
    yield CreateDelegationTokenResponse(hmac=CANARY)
    token = DescribeDelegationTokenResponse.DescribedDelegationToken(hmac=CANARY)
    yield DescribeDelegationTokenResponse(tokens=[token])
    yield ExpireDelegationTokenRequest(hmac=CANARY)
    yield RenewDelegationTokenRequest(hmac=CANARY)
    yield altered(AlterConfigsRequest)
    yield altered(IncrementalAlterConfigsRequest)


@pytest.mark.parametrize("message", list(messages()), ids=lambda message: type(message).__name__)
def test_cve_2026_33558_no_message_shows_the_secret_in_it(message: Struct) -> None:
    shown = f"{message!r} {message} {[message]} %r" % (message,)
    assert CANARY.decode() not in shown
    assert shown.count(HIDDEN) >= 4


def test_topic_configs_are_shown() -> None:
    """Secrets are hidden by their place in a message; other configuration values stay visible."""
    config = importlib.import_module("kafkacore.protocol.generated.create_topics").CreateTopicsRequest
    assert "retention.ms" in repr(config.CreatableTopicConfig(name="retention.ms", value="7"))
    assert "value='7'" in repr(config.CreatableTopicConfig(name="retention.ms", value="7"))


def structs(owner: type) -> Iterator[type]:
    yield owner
    for _, inner in inspect.getmembers(owner, inspect.isclass):
        if issubclass(inner, Struct) and inner.__qualname__.startswith(owner.__qualname__ + "."):
            yield from structs(inner)


def test_every_field_that_is_called_like_a_secret_is_one() -> None:
    found = set()
    for module in pkgutil.iter_modules(generated.__path__, generated.__name__ + "."):
        for _, message in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(message, Struct):
                found |= {name for struct in structs(message) for name in getattr(struct, "__slots__", ())}
    assert {name for name in found if SPOKEN_OF.search(name)} <= SECRET_FIELDS
    assert found >= SECRET_FIELDS
