"""Every request that the broker serves, in every version: valid, truncated, changed and random.

The APIs come from ``registry.HANDLERS``, so that a new one is tested as soon as it is served. The broker
answers with a response of that API or closes the connection. It raises and logs no unexpected error,
allocates no memory for sizes that a frame only claims, and continues to serve other clients.
"""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from model.broker_harness import batch
from model.broker_in_hand import BrokerInHand, broker_in_hand, frame_of
from model.broker_state import state_of
from model.dose import IS_FULL, dose, new_seed, note
from model.granted import Granted
from model.slow_codec import RandomMessages

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import ApiHandler
from kafkacore.broker.purgatory.change_queue import run_here
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.schema import APIS
from kafkacore.protocol.schema.declaration import Field, Message

DECLARATIONS = {api.key: api.messages[0] for api in APIS if api.versions}
#: Versions that Kafka has removed are in test_removed_versions.py.
VERSIONS = [
    (h, version)
    for h in HANDLERS
    for version in range(max(h.min_version, h.request_class.MIN_VERSION), h.max_version + 1)
]
IDS = [f"{h.request_class.NAME}-v{version}" for h, version in VERSIONS]
TOPIC_ID = UUID(int=77)
#: Maximum bytes that the broker may allocate for a hostile frame. Counts in the frame must not matter.
LARGEST_ALLOCATION = 512 * 1024
MESSAGES = dose(6, 60)
CHANGES = dose(40, 600)


class LikelyMessages(RandomMessages):
    """Random requests that often use existing names, so that they pass the first check."""

    def _value(self, field: Field) -> Any:
        chance = self.random
        if chance.random() < 0.7:
            if field.type == "string":
                return chance.choice(
                    ("t", "t", "u", "group", "1", "range", "consumer", "", "..", "t/", "x" * 250)
                )
            if field.type == "uuid":
                return TOPIC_ID
            if field.type in ("int16", "int32") and not field.is_array:
                return chance.choice((0, 0, 1, 2, -1, 1000))
            if field.type == "records":
                return batch(b"value", b"other")
        return super()._value(field)


def declaration_of(handler: ApiHandler) -> Message:
    return DECLARATIONS[handler.request_class.API_KEY]


def random_messages(handler: ApiHandler, version: int, chance: random.Random, count: int) -> Iterator[Any]:
    for made in (LikelyMessages, RandomMessages):
        source = made(declaration_of(handler), handler.request_class, version, chance)
        for _ in range(count):
            yield source.make()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInHand]:
    # A changed frame may be a valid request for a million partitions, which does not test the parser.
    folder = tmp_path_factory.mktemp("every-request")
    with broker_in_hand(folder, max_partitions=60, flush="os") as broker:
        yield broker
        note("requests as a client would not send them", frames=broker.given, hung_up=broker.hung_up)


def serves_others(broker: BrokerInHand) -> bool:
    """Recreate topics that hostile requests have deleted. Return whether the next client is served."""
    catalog = broker.services.topics
    for name in ("t", "u"):
        if catalog.get(name) is None:
            if sum(topic.partition_count for topic in broker._log_manager.topics().values()) > 50:
                for other in list(broker._log_manager.topics()):
                    run_here(catalog._deleting(other, lambda topic: None))
            catalog.create(name, 2, {})
    answer = broker.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]))
    return [topic.error_code for topic in answer.topics] == [0]


def check(broker: BrokerInHand, answers: list[Any], frame: bytes) -> None:
    """Check that a response, if there is one, has the request's API and version."""
    assert len(answers) <= 1
    if answers and isinstance(answers[0], bytes):
        api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
        handler = next(h for h in HANDLERS if api_key == h.request_class.API_KEY)
        if not handler.min_version <= version <= handler.max_version:
            version = 0
        if version < handler.request_class.MIN_VERSION:
            assert struct.unpack_from(">i", answers[0])[0] == correlation_id
        else:
            assert decode_response(answers[0], handler.request_class, version)[0] == correlation_id
    assert not broker.errors, broker.errors[0]


def changed(frame: bytes, chance: random.Random) -> bytearray:
    """Return the frame with some bits, bytes or lengths changed, but with the same API key."""
    found = bytearray(frame)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(2, len(found))
        how = chance.randrange(5)
        if how == 0:
            found[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            found[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif how == 2:
            found[at : at + 4] = chance.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\0\0\0"))
        elif how == 3:
            found[at:at] = chance.randbytes(chance.choice((1, 4, 40)))
        else:
            del found[max(at, 8) : at + chance.choice((1, 2, 8))]
    return found


@pytest.mark.parametrize(("handler", "version"), VERSIONS, ids=IDS)
def test_no_request_of_any_version_surprises_the_broker(
    broker: BrokerInHand, handler: ApiHandler, version: int
) -> None:
    chance = random.Random(new_seed())
    for message in random_messages(handler, version, chance, MESSAGES):
        frame = frame_of(message, version)
        check(broker, broker.give(frame), frame)
        for _ in range(CHANGES):
            hostile = changed(frame, chance)
            check(broker, broker.give(hostile), bytes(hostile))
        step = 1 if IS_FULL else max(len(frame) // 40, 1)
        for size in range(chance.randrange(step), len(frame), step):
            # No request has optional bytes at its end, so each truncated one is invalid.
            assert broker.give(frame[:size]) == ["closed"], f"cut at {size} of {len(frame)}"
        check(broker, broker.give(frame + b"\0"), frame)
        broker.settle()
    assert serves_others(broker)


@pytest.mark.parametrize(("handler", "version"), VERSIONS, ids=IDS)
def test_no_request_of_any_version_touches_anything_for_whoever_has_no_right(
    broker: BrokerInHand, monkeypatch: pytest.MonkeyPatch, handler: ApiHandler, version: int
) -> None:
    assert serves_others(broker)
    broker.flush()
    before = state_of(broker)
    monkeypatch.setattr(broker.services, "authorizer", Granted())
    for message in random_messages(handler, version, random.Random(new_seed()), MESSAGES):
        frame = frame_of(message, version)
        check(broker, broker.give(frame), frame)
        broker.settle()
    assert state_of(broker) == before


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda each: each.request_class.NAME)
def test_no_count_or_length_takes_memory_that_its_bytes_do_not_fill(
    broker: BrokerInHand, handler: ApiHandler
) -> None:
    chance = random.Random(new_seed())
    huge = (
        b"\x7f\xff\xff\xff",
        b"\x00\xff\xff\xff",
        b"\xff\xff\xff\xff\x07",
        b"\xff\xff\xff\x7f",
        b"\x7f\xff",
    )
    for version in (max(handler.min_version, handler.request_class.MIN_VERSION), handler.max_version):
        message = max(
            random_messages(handler, version, chance, 6), key=lambda made: len(frame_of(made, version))
        )
        frame = frame_of(message, version)
        for at in range(8, len(frame), 1 if IS_FULL else max(len(frame) // 25, 1)):
            for count in huge:
                hostile = frame[:at] + count + frame[at + len(count) :]
                tracemalloc.start()
                try:
                    check(broker, broker.give(hostile), hostile)
                    _, peak = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
                assert peak < LARGEST_ALLOCATION, f"{peak} bytes for {hostile!r}"
    assert serves_others(broker)


def test_bytes_out_of_nowhere_are_answered_or_hung_up_on(broker: BrokerInHand) -> None:
    chance = random.Random(new_seed())
    keys = [h.request_class.API_KEY for h in HANDLERS]
    for _ in range(dose(5_000, 200_000)):
        head = struct.pack(
            ">hhi", chance.choice([*keys, chance.randrange(-10, 100)]), chance.randrange(-1, 20), 7
        )
        frame = head[: chance.choice((8, 8, 8, 3))] + chance.randbytes(chance.randrange(60))
        check(broker, broker.give(frame), frame)
    assert serves_others(broker)
