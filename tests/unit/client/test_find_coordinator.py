"""FindCoordinator requests have one key up to version 3 and a list of keys from version 4."""

from __future__ import annotations

import pytest

from kafkacore.client.find_coordinator import TRANSACTION, coordinator_request
from kafkacore.protocol import decode_request, encode_request
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest


@pytest.mark.behaviour(
    "TransactionManager",
    "initialization finds the coordinator and gets a producer id and epoch",
)
@pytest.mark.parametrize(
    ("version", "key", "keys"), [(1, "t", []), (3, "t", []), (4, "", ["t"]), (6, "", ["t"])]
)
def test_lookup_is_encoded_in_every_version(version: int, key: str, keys: list[str]) -> None:
    request = coordinator_request("t", TRANSACTION)
    header, decoded = decode_request(b"".join(encode_request(request, version, 7, "client")))
    assert (header.request_api_version, header.correlation_id) == (version, 7)
    assert decoded == FindCoordinatorRequest(key=key, key_type=TRANSACTION, coordinator_keys=keys)
