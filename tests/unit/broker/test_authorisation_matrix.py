"""Authorization of every API for every resource: without the right, with it, and with an ACL that denies it.

Without the right, a client gets Kafka's error and changes nothing. It cannot tell a resource that it may not
describe from a missing one. A served API without a question in the matrix is an error. The matrix must also
find planted bugs, such as a handler that skips a check (goal G13).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from model.authorisation_matrix import (
    FIELDS,
    LISTINGS,
    QUESTIONS,
    QUESTIONS_ABOUT_NOTHING,
    QUESTIONS_ABOUT_TRANSACTIONS,
    Field,
    Grant,
    Listing,
    Need,
    Question,
    apis,
    codes_of,
    each_code,
)
from model.authorisation_requests import Names, offset_commit, produce
from model.broker_in_hand import BrokerInHand, broker_in_hand, frame_of
from model.broker_state import state_about, state_of
from model.granted import Granted

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers import _produce_append
from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.requests import authorization
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest

SERVED = {h.request_class.NAME.removesuffix("Request"): h for h in HANDLERS}
ASKED = [each for each in (*QUESTIONS, *QUESTIONS_ABOUT_TRANSACTIONS) if each.api in SERVED]
MISSING = [(question, need) for question in ASKED for need in question.needs]
IDS = [f"{question.title}: {need.any_of[0].operation.name}" for question, need in MISSING]
NEW = list(QUESTIONS_ABOUT_NOTHING)
GHOST = Names("no-such-topic", UUID(int=4711), "no-such-group")
TURNS = 20

_numbers = count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInHand]:
    with broker_in_hand(
        tmp_path_factory.mktemp("authorised"),
        flush="os",
        offsets_topic_num_partitions=1,
        transaction_state_log_num_partitions=1,
        node_id=0,
    ) as broker:
        yield broker


@pytest.fixture(scope="module")
def untouched(broker: BrokerInHand) -> Names:
    """Return a topic and a group that refused requests must not change."""
    return world(broker)


@contextmanager
def granted(
    broker: BrokerInHand, allow: Collection[Grant] = (), deny: Collection[Grant] = ()
) -> Iterator[None]:
    broker.services.authorizer = Granted(allow, deny)
    try:
        yield
    finally:
        broker.services.authorizer = None


def ask(broker: BrokerInHand, message: Any, version: int | None = None) -> Any:
    """Send a request and return its response, or "closed" if the broker closes the connection instead."""
    if version is None:
        version = SERVED[message.NAME.removesuffix("Request")].max_version
    answers = broker.give(frame_of(message, version))
    for _ in range(TURNS):
        if answers:
            break
        broker.flush()
    assert len(answers) == 1, "not answered"
    if answers[0] == "closed":
        return "closed"
    return decode_response(answers[0], type(message), version)[1]


def world(broker: BrokerInHand) -> Names:
    """Create a topic with two records, a group with an offset, and a transactional id of the group's name."""
    number = next(_numbers)
    topic = broker.services.topics.create(f"topic-{number}", 1, {})
    names = Names(topic.name, topic.topic_id, f"group-{number}")
    for _ in range(2):
        assert codes_of(ask(broker, produce(names))) == set()
    broker.services.coordinator_log.ensure_topic()
    broker.services.transaction_log.ensure_topic()
    broker.flush()
    assert codes_of(ask(broker, offset_commit(names))) == set()
    producer = InitProducerIdRequest(transactional_id=names.group, transaction_timeout_ms=1000)
    assert codes_of(ask(broker, producer)) == set()
    return names


def needed(question: Question, names: Names, *, but: Need | None = None) -> list[Grant]:
    """Return the rights that the question needs, except those of ``but``."""
    return [grant.of(names) for need in question.needs if need is not but for grant in need.any_of]


def with_names(answer: Any, there: Names, instead: Names) -> str:
    """Return an answer as text, with the names ``there`` replaced by ``instead``."""
    text = re.sub(r"session_id=\d+", "session_id=1", repr(answer))
    for before, after in zip(there, instead, strict=True):
        text = text.replace(str(before), str(after)) if isinstance(before, str) else text
    return text


def check_refused(broker: BrokerInHand, names: Names, question: Question, missing: Need) -> None:
    """Check that without the right the answer has only its error, and nothing changes or is revealed."""
    before = state_of(broker)
    with granted(broker, needed(question, names, but=missing)):
        answer = ask(broker, question.ask(names), question.version)
        assert codes_of(answer) == {missing.code}
        assert state_of(broker) == before
    if question.hides and missing.any_of[0].resource_type in (ResourceType.TOPIC, ResourceType.GROUP):
        is_of_topic = missing.any_of[0].resource_type == ResourceType.TOPIC
        ghost = GHOST._replace(group=names.group) if is_of_topic else GHOST
        with granted(broker, needed(question, ghost, but=missing)):
            ghostly = ask(broker, question.ask(ghost), question.version)
        assert with_names(ghostly, ghost, names) == with_names(answer, names, names)


def test_every_api_that_is_served_is_in_the_matrix() -> None:
    assert set(SERVED) - apis() == set()


@pytest.mark.parametrize(("question", "need"), MISSING, ids=IDS)
def test_who_has_not_the_right_is_refused_and_nothing_is_touched(
    broker: BrokerInHand, untouched: Names, question: Question, need: Need
) -> None:
    check_refused(broker, untouched, question, need)


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.title)
def test_who_has_no_right_at_all_is_refused_by_the_first_question(
    broker: BrokerInHand, untouched: Names, question: Question
) -> None:
    before = state_of(broker)
    with granted(broker):
        assert codes_of(ask(broker, question.ask(untouched), question.version)) == {question.needs[0].code}
    assert state_of(broker) == before


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.title)
def test_each_right_that_is_enough_is_enough(broker: BrokerInHand, question: Question) -> None:
    for need in question.needs:
        for grant in need.any_of:
            names = world(broker)
            others = needed(question, names, but=need)
            with granted(broker, [*others, grant.of(names)]):
                assert codes_of(ask(broker, question.ask(names), question.version)) == question.codes


@pytest.mark.parametrize(("question", "need"), MISSING, ids=IDS)
def test_who_is_denied_what_he_is_allowed_is_refused(
    broker: BrokerInHand, untouched: Names, question: Question, need: Need
) -> None:
    names = untouched
    before = state_of(broker)
    denied = [grant.of(names) for grant in need.any_of]
    # The right to any topic is enough for an idempotent producer, so deny it for all topics.
    denied += [grant._replace(name="*") for grant in need.any_of]
    with granted(broker, needed(question, names), denied):
        assert codes_of(ask(broker, question.ask(names), question.version)) == {need.code}
    assert state_of(broker) == before


@pytest.mark.parametrize("question", NEW, ids=lambda question: question.title)
def test_a_topic_is_made_by_whoever_may(broker: BrokerInHand, question: Question) -> None:
    number = next(_numbers)
    for missing in question.needs:
        names = GHOST._replace(topic=f"new-{number}-{missing.code}-{missing.any_of[0].operation.name}")
        before = state_of(broker)
        with granted(broker, needed(question, names, but=missing)):
            answer = ask(broker, question.ask(names), question.version)
        assert codes_of(answer) == {missing.code}
        is_created = missing.any_of[0].operation == ACLOperation.DESCRIBE_CONFIGS
        # Without DESCRIBE_CONFIGS the topic is created, but its configuration is hidden.
        assert (state_of(broker) == before) is not is_created
    for grant in question.needs[-2 if len(question.needs[-1].any_of) == 1 else -1].any_of:
        names = GHOST._replace(topic=f"new-{number}-{grant.resource_type.name}")
        others = [
            each.of(names) for need in question.needs for each in need.any_of if grant not in need.any_of
        ]
        with granted(broker, [*others, grant.of(names)]):
            ask(broker, question.ask(names), question.version)
        assert broker.services.topics.get(names.topic) is not None


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.title)
def test_a_list_shows_what_may_be_described(broker: BrokerInHand, listing: Listing) -> None:
    names, other = world(broker), world(broker)
    with granted(broker):
        hidden = ask(broker, listing.ask(names), listing.version)
    besides = [grant.of(names) for grant in listing.besides]
    if not besides:
        assert codes_of(hidden) == set()
        assert listing.shown(hidden) == set()
    with granted(broker, besides):
        assert listing.shown(ask(broker, listing.ask(names), listing.version)) == set()
    with granted(broker, [*besides, listing.one.of(names)]):
        shown = listing.shown(ask(broker, listing.ask(names), listing.version))
    assert shown in ({names.topic}, {names.group})
    with granted(broker, [*besides, listing.everything.of(names)], [listing.one.of(other)]):
        all_but_one = listing.shown(ask(broker, listing.ask(names), listing.version))
    assert shown <= all_but_one
    if listing.one.resource_type == listing.everything.resource_type:
        assert other.topic not in all_but_one


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.title)
def test_operations_are_told_as_they_are_allowed(broker: BrokerInHand, field: Field) -> None:
    names = world(broker)
    supported = authorization.SUPPORTED_OPERATIONS[field.resource_type]
    besides = field.besides.of(names)
    assert field.bits(ask(broker, field.ask(names), field.version)) == sum(1 << each for each in supported)
    for operation in supported:
        grant = Grant(operation, field.resource_type).of(names)
        with granted(broker, [besides, grant]):
            bits = field.bits(ask(broker, field.ask(names), field.version))
        implied = {ACLOperation.ALTER_CONFIGS: {ACLOperation.DESCRIBE_CONFIGS}}.get(operation, set())
        assert bits == sum(1 << each for each in {operation, ACLOperation.DESCRIBE} | implied)


def test_operations_on_the_cluster_are_not_told_to_whoever_may_not_describe_it(broker: BrokerInHand) -> None:
    names = world(broker)
    asked = [field for field in FIELDS if field.resource_type.name == "CLUSTER"]
    assert len(asked) == 2
    for field in asked:
        with granted(broker, [Grant(ACLOperation.ALTER_CONFIGS, field.resource_type).of(names)]):
            answer = ask(broker, field.ask(names), field.version)
        assert field.bits(answer) == 0


# ---- Requests for two resources -------------------------------------------------------------------------


def merged(one: Any, other: Any) -> Any | None:
    """Add the lists of the second request to the first. Return ``None`` if no list differs."""
    lists = [slot for slot in type(one).__slots__ if isinstance(getattr(one, slot), list)]
    lists = [slot for slot in lists if repr(getattr(one, slot)) != repr(getattr(other, slot))]
    for slot in lists:
        setattr(one, slot, getattr(one, slot) + getattr(other, slot))
    return one if lists else None


def with_other_resource(names: Names, other: Names, need: Need) -> Names:
    """Return ``names`` with the topic or the group of ``other``, whichever the right is for."""
    if need.any_of[0].resource_type == ResourceType.GROUP:
        return names._replace(group=other.group)
    return names._replace(topic=other.topic, topic_id=other.topic_id)


SEVERAL = [
    (question, need)
    for question, need in MISSING
    if need.any_of[0].resource_type in (ResourceType.TOPIC, ResourceType.GROUP)
    and merged(
        question.ask(GHOST), question.ask(with_other_resource(GHOST, Names("t", UUID(int=8), "g"), need))
    )
]
IDS_OF_SEVERAL = [f"{question.title}: {need.any_of[0].operation.name}" for question, need in SEVERAL]


def check_each(
    broker: BrokerInHand, theirs: Names, question: Question, missing: Need, *, is_mine_first: bool
) -> None:
    """Check that of two topics or groups one is served, and the other is refused and unchanged."""
    mine = world(broker)
    theirs = with_other_resource(mine, theirs, missing)
    # The first alternative is the right to this topic or group; the others are more general.
    given = [need.any_of[0].of(mine) for need in question.needs]
    given += [need.any_of[0].of(theirs) for need in question.needs if need is not missing]
    with granted(broker, given):
        refused = list(each_code(ask(broker, question.ask(theirs), question.version)))
        before = state_about(broker, theirs)
        order = (mine, theirs) if is_mine_first else (theirs, mine)
        answer = ask(broker, merged(*map(question.ask, order)), question.version)
    assert state_about(broker, theirs) == before
    assert list(each_code(answer)).count(missing.code) == refused.count(missing.code) > 0
    others = question.codes if question.codes_of_others is None else question.codes_of_others
    assert codes_of(answer) == {missing.code} | others


@pytest.mark.parametrize("is_mine_first", [True, False])
@pytest.mark.parametrize(("question", "need"), SEVERAL, ids=IDS_OF_SEVERAL)
def test_each_of_several_is_asked_for_itself(
    broker: BrokerInHand, untouched: Names, question: Question, need: Need, is_mine_first: bool
) -> None:
    check_each(broker, untouched, question, need, is_mine_first=is_mine_first)


# ---- Planted bugs ---------------------------------------------------------------------------------------


def skip_check(name: str, real: Callable[..., Any], need: Need, *args: Any, **more: Any) -> Any:
    """Call a function of ``authorization``, but skip the check for one right."""
    operations = [each for each in args if isinstance(each, ACLOperation)]
    kinds = [each for each in args if isinstance(each, ResourceType)]
    for grant in need.any_of:
        # A function without a resource type in its arguments has it in its name.
        is_it = operations == [grant.operation] and kinds in ([], [grant.resource_type])
        if is_it or name == "require_idempotent_write":
            return set(args[-1]) if name == "allowed_names" else name.startswith("allowed") or None
    return real(*args, **more)


def handler_modules(question: Question) -> list[Any]:
    """Return the modules in which the handler of a request checks rights."""
    own = sys.modules[SERVED[question.api].handle.__module__]
    others = {"IncrementalAlterConfigs": "alter_configs", "DescribeTopicPartitions": "metadata"}
    found = [own, _produce_append] if question.api == "Produce" else [own]
    if question.api in others:
        found.append(sys.modules[f"kafkacore.broker.handlers.{others[question.api]}"])
    return found


class ChecksOnce:
    """Functions of ``authorization`` that check only the first resource of a request."""

    def __init__(self) -> None:
        self._allowed: set[tuple[Any, ...]] = set()

    def __call__(self, name: str, real: Callable[..., Any], _: Need, *args: Any, **more: Any) -> Any:
        asked = (args[0], *(each for each in args if isinstance(each, (ACLOperation, ResourceType))))
        if name not in ("require", "require_configs", "allowed", "allowed_names"):
            return real(*args, **more)
        if asked not in self._allowed:
            found = real(*args, **more)
            if found is False or found == set():
                return found
            self._allowed.add(asked)
        return set(args[-1]) if name == "allowed_names" else name == "allowed" or None


def plant(monkeypatch: pytest.MonkeyPatch, bug: Callable[..., Any], question: Question, need: Need) -> None:
    for place in handler_modules(question):
        for name, real in list(vars(place).items()):
            if getattr(real, "__module__", None) == authorization.__name__:
                monkeypatch.setattr(place, name, partial(bug, name, real, need))


@pytest.mark.parametrize(("question", "need"), SEVERAL, ids=IDS_OF_SEVERAL)
def test_a_handler_that_asks_for_the_first_of_several_is_found(
    broker: BrokerInHand, monkeypatch: pytest.MonkeyPatch, question: Question, need: Need
) -> None:
    plant(monkeypatch, ChecksOnce(), question, need)
    with pytest.raises(AssertionError):
        check_each(broker, world(broker), question, need, is_mine_first=True)
    assert not broker.errors, "the test must fail because of the planted bug, not another error"


@pytest.mark.parametrize(("question", "need"), MISSING, ids=IDS)
def test_a_handler_that_leaves_out_a_question_is_found(
    broker: BrokerInHand, monkeypatch: pytest.MonkeyPatch, question: Question, need: Need
) -> None:
    plant(monkeypatch, skip_check, question, need)
    with pytest.raises(AssertionError):
        check_refused(broker, world(broker), question, need)
    assert not broker.errors, "the test must fail because of the planted bug, not another error"
