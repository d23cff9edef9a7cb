"""The error classes: one for each error code of a broker, with Kafka's properties."""

from __future__ import annotations

import copy
import pickle

import pytest
from peers.jars import run_java

from kafkacore import errors
from kafkacore.errors import (
    BROKER_ERRORS,
    BrokerResponseError,
    CorruptRecordError,
    DecompressedTooLargeError,
    KafkaError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    UnknownError,
    for_code,
)
from kafkacore.structs import TopicPartition

ALL_ERRORS = sorted(
    {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KafkaError)},
    key=lambda kind: kind.__name__,
)


@pytest.mark.integration
def test_codes_names_and_flags_are_those_of_kafkas_errors() -> None:
    kafka = {}
    for line in run_java("ErrorCodes").decode().splitlines():
        code, name, retriable, invalid_metadata = line.split()
        kafka[int(code)] = (name, retriable == "true", invalid_metadata == "true")
    ours = {
        code: (error.message, error.retriable, error.invalid_metadata)
        for code, error in BROKER_ERRORS.items()
    }
    assert kafka[-1][0] == "UNKNOWN_SERVER_ERROR", "the Java program must list the errors"
    assert ours == kafka


def test_code_of_no_error_that_is_known_is_an_unknown_error() -> None:
    assert for_code(6) is NotLeaderForPartitionError
    assert for_code(32_000) is UnknownError
    assert for_code(-1) is UnknownError


def test_no_two_classes_claim_one_code() -> None:
    codes = [kind.errno for kind in ALL_ERRORS if "errno" in vars(kind) and kind is not BrokerResponseError]
    assert len(codes) == len(set(codes)) == len(BROKER_ERRORS)


def test_broker_error_says_its_code_its_name_and_what_more_there_is() -> None:
    assert str(MessageSizeTooLargeError()) == "[Error 10] MESSAGE_TOO_LARGE"
    assert str(MessageSizeTooLargeError("5 > 4")) == "[Error 10] MESSAGE_TOO_LARGE: 5 > 4"


def test_broker_error_without_a_code_is_its_sentence() -> None:
    assert str(BrokerResponseError("a-0 and a-1 failed")) == "a-0 and a-1 failed"
    assert str(BrokerResponseError()) == "BrokerResponseError"


def test_invalid_metadata_is_always_retriable() -> None:
    assert [kind for kind in ALL_ERRORS if kind.invalid_metadata and not kind.retriable] == []


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
def test_error_survives_pickling(kind: type[KafkaError]) -> None:
    error = kind("what is wrong")
    error.possibly_persisted = True
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (kind, str(error))
    assert again.possibly_persisted


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "length 12 < 61"),
        ({"offset": 7}, "length 12 < 61 (at offset 7)"),
        (
            {"topic_partition": TopicPartition("t", 3), "offset": 7},
            "length 12 < 61 (at TopicPartition(topic='t', partition=3), offset 7)",
        ),
    ],
)
def test_corrupt_record_says_where_and_survives_pickling_and_copying(
    place: dict[str, object], text: str
) -> None:
    error = CorruptRecordError("length 12 < 61", **place)  # type: ignore[arg-type]  # of two types
    assert str(error) == f"[Error 2] CORRUPT_MESSAGE: {text}"
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (again.reason, again.topic_partition, again.offset) == (
            "length 12 < 61",
            place.get("topic_partition"),
            place.get("offset"),
        )
        assert str(again) == str(error)


def test_kind_of_an_error_that_has_no_code_of_its_own_does_not_take_its_place() -> None:
    assert issubclass(DecompressedTooLargeError, CorruptRecordError)
    assert for_code(DecompressedTooLargeError.errno) is CorruptRecordError


def test_failures_of_authentication_have_a_base_of_their_own() -> None:
    codes = [errors.for_code(code) for code in (33, 34, 58)]
    assert all(issubclass(error, errors.AuthenticationFailedError) for error in codes)
    assert issubclass(errors.SslAuthenticationError, errors.AuthenticationFailedError)
    assert not issubclass(errors.TopicAuthorizationFailedError, errors.AuthenticationFailedError)
    assert not errors.AuthenticationFailedError.retriable
