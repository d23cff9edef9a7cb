"""The authorisation matrix on Apache Kafka with its StandardAuthorizer, and on our broker.

Both get the same requests from the same user with the same ACLs. A denied request gets the same response,
apart from the error message. An allowed request gets the same error codes, names and authorized operations.
Topics and groups are named after the operations allowed on them, so that these ACLs are created once. ACLs on
the cluster are created and removed by each test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from model.authorisation_matrix import (
    CLUSTER,
    DENIALS,
    DESCRIBE,
    FIELDS,
    GROUP,
    LISTINGS,
    QUESTIONS,
    QUESTIONS_ABOUT_NOTHING,
    QUESTIONS_ABOUT_TRANSACTIONS,
    READ,
    TOPIC,
    UNKNOWN_TOPIC,
    Field,
    Grant,
    Listing,
    Need,
    Question,
    codes_of,
)
from model.authorisation_requests import Names
from model.broker_in_hand import frame_of
from peers.authorised_sides import Side, asked_until, our_side, their_side
from peers.secure_kafka import SecureKafka

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.requests.authorization import SUPPORTED_OPERATIONS
from kafkacore.errors import UnsupportedVersionError
from kafkacore.protocol.generated.metadata import MetadataRequest

SERVED = {h.request_class.NAME.removesuffix("Request") for h in HANDLERS}
ASKED = [question for question in QUESTIONS if question.api in SERVED]
#: First version with topic ids that are accepted. Earlier versions have the field but reject it.
FIRST_BY_ID = {"Metadata: by id": 12}
TRANSACTIONS = list(QUESTIONS_ABOUT_TRANSACTIONS)
NOTHING = "authorised-nothing"
TXN = ResourceType.TRANSACTIONAL_ID


class Case(NamedTuple):
    """A question, and the operations that its user may perform on a topic and a group."""

    question: Question | Listing | Field
    grants: tuple[Grant, ...]
    topic: str
    group: str

    def given(self) -> list[Grant]:
        return [grant.of(Names(self.topic, UUID(int=0), self.group)) for grant in self.grants]


def named_after(grants: Collection[Grant], kind: ResourceType) -> str:
    rights = sorted({grant.operation.name.lower() for grant in grants if grant.resource_type == kind})
    if kind == GROUP:
        # A transactional id has the name of the group.
        rights += sorted({f"txn-{one.operation.name.lower()}" for one in grants if one.resource_type == TXN})
    return "-".join(["authorised", *rights]) if rights else NOTHING


def literal(needs: Collection[Need]) -> tuple[Grant, ...]:
    return tuple(grant for need in needs for grant in need.any_of if grant.resource_type != CLUSTER)


def refused_cases() -> Iterator[tuple[str, Case]]:
    for question in ASKED:
        for missing in question.needs:
            grants = literal([need for need in question.needs if need is not missing])
            title = f"{question.title}: without {missing.any_of[0].operation.name}"
            yield title, Case(question, grants, named_after(grants, TOPIC), named_after(grants, GROUP))


def allowed_cases() -> Iterator[tuple[str, Case]]:
    """Yield the allowed cases, each with its own topic and group because the request may change them."""
    for question in ASKED:
        if all(any(grant.resource_type != CLUSTER for grant in need.any_of) for need in question.needs):
            name = "allowed-" + re.sub(r"\W+", "-", question.title)
            yield question.title, Case(question, literal(question.needs), name, name)


def described_cases() -> Iterator[tuple[str, Case]]:
    for listing in LISTINGS:
        name = f"listed-{listing.api}-{listing.version}"
        yield listing.title, Case(listing, (*listing.besides, listing.one), name, name)
    for field in FIELDS:
        if field.resource_type != CLUSTER:
            some = sorted(SUPPORTED_OPERATIONS[field.resource_type])[::2]
            grants = (field.besides, *(Grant(each, field.resource_type) for each in some))
            name = f"told-{field.api}"
            yield field.title, Case(field, grants, name, name)


OF_A_TOPIC = [field for field in FIELDS if field.resource_type == TOPIC]
REFUSED, ALLOWED, DESCRIBED = dict(refused_cases()), dict(allowed_cases()), dict(described_cases())


class Sides(NamedTuple):
    theirs: Side
    ours: Side

    def make(self, cases: Collection[Case]) -> None:
        for side in self:
            side.make(sorted({case.topic for case in cases}), sorted({case.group for case in cases}))
            side.grant({grant for case in cases for grant in case.given()})


@pytest.fixture(scope="module")
def sides(secure_kafka: SecureKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("authorised")
    with our_side(folder) as ours, their_side(secure_kafka) as theirs:
        sides = Sides(theirs, ours)
        sides.make([*REFUSED.values(), Case(ASKED[0], (), NOTHING, NOTHING)])
        yield sides


@pytest.fixture(scope="module")
def sides_of_the_allowed(sides: Sides) -> Sides:
    """Create the ACLs of the allowed cases after the tests of the refused cases.

    WRITE on any topic also allows the user to be an idempotent producer, which the refused cases exclude.
    """
    sides.make([*ALLOWED.values(), *DESCRIBED.values()])
    return sides


#: Fields that differ between brokers: the text of an error, and which broker has answered.
OF_THE_BROKER = {"error_message", "brokers", "cluster_id"}


def without_sentences(value: Any, ids: dict[str, str]) -> Any:
    """Return a response as plain values, without the fields that differ between brokers."""
    if isinstance(value, list):
        return [without_sentences(each, ids) for each in value]
    if hasattr(type(value), "__slots__") and hasattr(type(value), "encode"):
        slots = [slot for slot in type(value).__slots__ if slot not in OF_THE_BROKER]
        found = {slot: without_sentences(getattr(value, slot), ids) for slot in slots}
        # The session id is random.
        return found | {"session_id": bool(value.session_id)} if "session_id" in found else found
    return ids.get(str(value), value)


def plain(side: Side, answer: Any, case: Case) -> Any:
    return without_sentences(answer, {str(side.names(case.topic, case.group).topic_id): "the topic's id"})


def ask(side: Side, question: Question | Listing | Field, case: Case) -> Any:
    return side.ask(question.ask(side.names(case.topic, case.group)), question.version)


def answer_with(codes: Collection[int], ask: Callable[..., Any], *args: Any) -> Any:
    """Return the first response with these error codes, or the last one without."""
    return asked_until(partial(ask, *args), lambda answer: codes_of(answer) == codes)


def is_refused(answer: Any) -> bool:
    return bool(codes_of(answer) & DENIALS)


@pytest.mark.parametrize("title", REFUSED)
def test_who_has_not_the_right_is_answered_as_by_apache_kafka(sides: Sides, title: str) -> None:
    case = REFUSED[title]
    assert isinstance(case.question, Question)
    code = expected(case, title)
    theirs, ours = [answer_with({code}, ask, side, case.question, case) for side in sides]
    assert codes_of(theirs) == {code}
    assert plain(sides.ours, ours, case) == plain(sides.theirs, theirs, case)


def expected(case: Case, title: str) -> int:
    """Return the error code of the need that this case lacks."""
    assert isinstance(case.question, Question)
    return next(
        need.code
        for need in case.question.needs
        if title.endswith(f": without {need.any_of[0].operation.name}")
        and not set(need.any_of) & set(case.grants)
    )


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.title)
def test_who_has_no_right_at_all_is_answered_as_by_apache_kafka_in_every_version(
    sides: Sides, question: Question
) -> None:
    case = Case(question, (), NOTHING, NOTHING)
    versions = versions_of(question, question.ask(sides.ours.names(NOTHING, NOTHING)))
    assert versions
    for version in versions:
        theirs, ours = [ask(side, question._replace(version=version), case) for side in sides]
        assert codes_of(ours) <= {question.needs[0].code}, version
        assert plain(sides.ours, ours, case) == plain(sides.theirs, theirs, case), version


def versions_of(question: Question, message: Any) -> list[int]:
    """Return the versions that can encode the message.

    A question by topic name has no version that asks by topic id.
    """
    handler = next(h for h in HANDLERS if h.request_class is type(message))
    first = max(handler.min_version, message.MIN_VERSION, FIRST_BY_ID.get(question.title, 0))
    last = handler.max_version if question.version is None else question.version
    found = []
    for version in range(first, last + 1):
        with suppress(UnsupportedVersionError):
            frame_of(message, version)
            found.append(version)
    return found


@pytest.mark.parametrize("question", TRANSACTIONS, ids=lambda question: question.title)
def test_who_may_have_no_transactions_is_answered_as_by_apache_kafka(
    sides: Sides, question: Question
) -> None:
    case = Case(question, (), NOTHING, NOTHING)
    theirs, ours = [ask(side, question, case) for side in sides]
    assert codes_of(theirs) == {question.needs[0].code}
    assert plain(sides.ours, ours, case) == plain(sides.theirs, theirs, case)


@pytest.mark.parametrize("title", ALLOWED)
def test_who_has_the_right_is_let_through_as_by_apache_kafka(sides_of_the_allowed: Sides, title: str) -> None:
    case = ALLOWED[title]
    assert isinstance(case.question, Question)
    codes = case.question.codes
    theirs, ours = [answer_with(codes, ask, side, case.question, case) for side in sides_of_the_allowed]
    assert codes_of(ours) == codes_of(theirs) == codes


#: Neither broker has had a transactional producer.
LISTING_OF_TRANSACTIONS = "ListTransactions: all"


@pytest.mark.parametrize("title", DESCRIBED)
def test_who_may_describe_some_is_told_as_by_apache_kafka(sides_of_the_allowed: Sides, title: str) -> None:
    case = DESCRIBED[title]
    theirs, ours = [ask(side, case.question, case) for side in sides_of_the_allowed]
    if isinstance(case.question, Field):
        assert case.question.bits(ours) == case.question.bits(theirs)
        return
    assert isinstance(case.question, Listing)
    assert case.question.shown(ours) == case.question.shown(theirs)
    if title != LISTING_OF_TRANSACTIONS:
        assert case.question.shown(ours) & {case.topic, case.group}


@pytest.mark.parametrize("question", QUESTIONS_ABOUT_NOTHING, ids=lambda question: question.title)
def test_a_topic_that_is_not_there_is_made_for_whoever_may_as_by_apache_kafka(
    sides_of_the_allowed: Sides, question: Question
) -> None:
    for number, missing in enumerate(question.needs):
        name = f"new-{question.api}-{number}"
        needs = [need for need in question.needs if need is not missing]
        case = Case(question, literal(needs), name, name)
        for side in sides_of_the_allowed:
            side.grant(case.given())
        message = question.ask(Names(name, UUID(int=0), name))
        theirs, ours = [answer_with({missing.code}, side.ask, message) for side in sides_of_the_allowed]
        made_ids = {str(topic.topic_id): "an id" for topic in (*theirs.topics, *ours.topics)}
        assert without_sentences(ours, made_ids) == without_sentences(theirs, made_ids)
        assert codes_of(theirs) == {missing.code}


@pytest.mark.parametrize("field", OF_A_TOPIC, ids=lambda field: field.api)
def test_operations_on_a_topic_that_is_not_there_are_told_as_by_apache_kafka(
    sides_of_the_allowed: Sides, field: Field
) -> None:
    names = Names(f"not-there-{field.api}", UUID(int=0), "")
    for side in sides_of_the_allowed:
        side.grant([Grant(operation, TOPIC).of(names) for operation in (DESCRIBE, READ)])
    message = field.ask(names)
    if isinstance(message, MetadataRequest):
        message.allow_auto_topic_creation = False
    theirs, ours = [answer_with({UNKNOWN_TOPIC}, side.ask, message) for side in sides_of_the_allowed]
    assert without_sentences(ours, {}) == without_sentences(theirs, {})
    assert codes_of(ours) == {UNKNOWN_TOPIC}


CLUSTER_OPERATIONS = sorted(SUPPORTED_OPERATIONS[CLUSTER])
#: Apache Kafka checks the replica, and answers NOT_LEADER_OR_FOLLOWER (6) if it is not one.
AS_A_FOLLOWER, NO_REPLICA = "Fetch: as a follower", {6}
#: For questions about permissions on the cluster.
ON_NOTHING = Case(ASKED[0], (), NOTHING, NOTHING)


@pytest.mark.parametrize("operation", CLUSTER_OPERATIONS, ids=lambda operation: operation.name)
def test_a_right_to_the_cluster_lets_through_as_by_apache_kafka(
    sides_of_the_allowed: Sides, operation: ACLOperation
) -> None:
    right = Grant(operation, CLUSTER)
    questions = [one for one in ASKED if any(right in need.any_of for need in one.needs)]
    given = {grant.of(Names("", UUID(int=0), "")) for grant in (right, Grant(DESCRIBE, CLUSTER))}
    for side in sides_of_the_allowed:
        side.grant(given)
    try:
        for question in questions:
            theirs, ours = [codes_of(ask_until_allowed(side, question)) for side in sides_of_the_allowed]
            assert ours == question.codes, question.title
            is_follower = question.title == AS_A_FOLLOWER
            assert theirs == (NO_REPLICA if is_follower else question.codes), question.title
        for field in FIELDS:
            if field.resource_type == CLUSTER:
                theirs, ours = [granted_bits(side, field, operation) for side in sides_of_the_allowed]
                assert ours == theirs, field.title
    finally:
        for side in sides_of_the_allowed:
            side.revoke(given)
    for question in questions:
        # A user who may write to any topic may use an idempotent producer.
        if question.api != "InitProducerId":
            refused = asked_until(partial(ask_harmlessly, sides_of_the_allowed.theirs, question), is_refused)
            assert is_refused(refused), question.title


def ask_until_allowed(side: Side, question: Question) -> Any:
    return asked_until(partial(ask_harmlessly, side, question), lambda answer: not is_refused(answer))


def granted_bits(side: Side, field: Field, operation: ACLOperation) -> int:
    bits: int = asked_until(
        lambda: field.bits(ask(side, field, ON_NOTHING)), lambda bits: bool(bits & 1 << operation)
    )
    return bits


def ask_harmlessly(side: Side, question: Question) -> Any:
    """Ask with validate_only where possible, because other questions use the same topic."""
    message = question.ask(side.names(NOTHING, NOTHING))
    if hasattr(message, "validate_only"):
        message.validate_only = True
    return side.ask(message, question.version)
