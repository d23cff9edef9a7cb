"""Names of the maximum length: the broker answers every request, and error messages fit.

The requests are those of the authorization matrix, in every version that the broker supports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from model.authorisation_matrix import QUESTIONS, QUESTIONS_ABOUT_NOTHING, QUESTIONS_ABOUT_TRANSACTIONS
from model.authorisation_requests import Names, made
from model.broker_in_hand import BrokerInHand, broker_in_hand, frame_of
from model.granted import Granted

from kafkacore.broker.error_answer import MAX_MESSAGE_LENGTH, error_message
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.errors import IllegalArgumentError, InvalidRequestError, KafkaError
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.alter_client_quotas import AlterClientQuotasRequest
from kafkacore.protocol.generated.create_acls import CreateAclsRequest
from kafkacore.protocol.generated.describe_client_quotas import DescribeClientQuotasRequest

SERVED = {h.request_class.NAME: h for h in HANDLERS}
#: A string with the maximum length of a string field. Error messages escape each of its characters.
LONGEST = "\n" * 32_767
NAMES = Names(LONGEST, UUID(int=4711), LONGEST)
TURNS = 20


def quota(kind: str, key: str) -> Any:
    entity = [{"entity_type": kind, "entity_name": LONGEST}]
    ops = [{"key": key, "value": 1.0, "remove": False}]
    return made(AlterClientQuotasRequest, entries=[{"entity": entity, "ops": ops}])


def requests() -> list[Any]:
    """Return requests of every API that takes a name."""
    asked = [q.ask(NAMES) for q in (*QUESTIONS, *QUESTIONS_ABOUT_NOTHING, *QUESTIONS_ABOUT_TRANSACTIONS)]
    entry = {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3}
    named = dict.fromkeys(("resource_name", "principal", "host"), LONGEST)
    match = {"entity_type": LONGEST, "match_type": 0, "match": LONGEST}
    return [
        *asked,
        quota(LONGEST, "producer_byte_rate"),
        quota("user", LONGEST),
        made(CreateAclsRequest, creations=[entry | named]),
        made(DescribeClientQuotasRequest, components=[match]),
    ]


def frames() -> list[tuple[type[Any], int, bytes]]:
    """Return those requests in each version that can represent them."""
    found = []
    for message in requests():
        handler = SERVED[message.NAME]
        for version in range(handler.min_version, handler.max_version + 1):
            try:
                found.append((type(message), version, frame_of(message, version)))
            except (KafkaError, ValueError) as error:
                assert isinstance(error, IllegalArgumentError) or "version" in str(error)  # noqa: PT017
    return found


@pytest.mark.parametrize("is_refused", [False, True])
def test_whoever_asks_for_the_longest_names_is_answered(tmp_path: Path, is_refused: bool) -> None:
    asked = frames()
    assert len(asked) > 200
    with broker_in_hand(tmp_path, flush="os", offsets_topic_num_partitions=1) as broker:
        broker.services.coordinator_log.ensure_topic()
        broker.services.transaction_log.ensure_topic()
        broker.flush()
        broker.services.authorizer = Granted() if is_refused else None
        for kind, version, frame in asked:
            if kind.NAME == "JoinGroupRequest" and version < 4 and not is_refused:
                # The request waits for other members. test_group_handlers.py tests a join that succeeds.
                continue
            answer = answer_of(broker, frame)
            # These versions do not support topic ids.
            if (kind.NAME, version) not in (("MetadataRequest", 10), ("MetadataRequest", 11)):
                assert answer != "closed", (kind.NAME, version)
            if answer != "closed":
                decode_response(answer, kind, version)
        assert broker.errors == []


def answer_of(broker: BrokerInHand, frame: bytes) -> Any:
    answers = broker.give(frame)
    for _ in range(TURNS):
        if answers:
            break
        broker.flush()
    (answer,) = answers
    return answer


def test_sentence_is_cut_where_it_would_not_fit() -> None:
    assert error_message(InvalidRequestError("x" * MAX_MESSAGE_LENGTH)) == "x" * MAX_MESSAGE_LENGTH
    assert error_message(InvalidRequestError("x" * 40_000)) == "x" * MAX_MESSAGE_LENGTH + "…"
