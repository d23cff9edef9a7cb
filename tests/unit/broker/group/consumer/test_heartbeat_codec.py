"""The hand-written codec of ConsumerGroupHeartbeat, compared with the generated messages."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat, encode_heartbeat, read_heartbeat
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import encode_response
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.wire import Cursor, Writer

VERSIONS = [0, 1]
SAME_FIELDS = (
    "group_id",
    "member_id",
    "member_epoch",
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "subscribed_topic_names",
    "subscribed_topic_regex",
    "server_assignor",
)
FULL = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 7,
    "instance_id": "i",
    "rack_id": "r",
    "rebalance_timeout_ms": 5,
    "subscribed_topic_names": ["a", "b"],
    "server_assignor": "range",
    "topic_partitions": [ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=UUID(int=9), partitions=[3])],
}

texts = st.text(max_size=12)
int32s = st.integers(-(2**31), 2**31 - 1)
owned = st.lists(
    st.tuples(st.sampled_from([UUID(int=1), UUID(int=2)]), st.lists(int32s, max_size=3)), max_size=3
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    version = draw(st.sampled_from(VERSIONS))
    partitions = draw(st.none() | owned)
    request = ConsumerGroupHeartbeatRequest(
        group_id=draw(texts),
        member_id=draw(texts),
        member_epoch=draw(int32s),
        instance_id=draw(st.none() | texts),
        rack_id=draw(st.none() | texts),
        rebalance_timeout_ms=draw(int32s),
        subscribed_topic_names=draw(st.none() | st.lists(texts, max_size=3)),
        subscribed_topic_regex=draw(st.none() | texts) if version else None,
        server_assignor=draw(st.none() | texts),
        topic_partitions=None
        if partitions is None
        else [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=of_topic)
            for topic_id, of_topic in partitions
        ],
    )
    return request, version


def encoded(request: ConsumerGroupHeartbeatRequest, version: int) -> bytes:
    writer = Writer()
    request.encode(writer, version)
    return b"".join(bytes(piece) for piece in writer.pieces())


def read(version: int, **fields: object) -> ConsumerHeartbeat:
    request = ConsumerGroupHeartbeatRequest(**fields)  # type: ignore[arg-type]
    return read_heartbeat(Cursor(encoded(request, version)), version)


@given(requests())
def test_a_request_is_read_as_the_generated_message_has_it(
    asked: tuple[ConsumerGroupHeartbeatRequest, int],
) -> None:
    request, version = asked
    heartbeat = read_heartbeat(Cursor(encoded(request, version)), version)
    assert heartbeat.version == version
    assert [getattr(heartbeat, name) for name in SAME_FIELDS] == [
        getattr(request, name) for name in SAME_FIELDS
    ]
    reported = request.topic_partitions
    expected = None if reported is None else [(one.topic_id, one.partitions) for one in reported]
    assert heartbeat.topic_partitions == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_anywhere_is_malformed(version: int) -> None:
    whole = encoded(ConsumerGroupHeartbeatRequest(**FULL), version)  # type: ignore[arg-type]
    for size in range(len(whole)):
        with pytest.raises(MalformedMessageError):
            read_heartbeat(Cursor(whole[:size]), version)


@pytest.mark.parametrize(
    ("before", "null", "after"),
    [
        ("", "00", "0001"),
        ("0267", "00", "00000001"),
        ("0267026d000000010000ffffffff02", "00", "00000000"),
    ],
    ids=["group_id", "member_id", "subscribed_topic_names"],
)
def test_null_is_refused_where_it_is_not_allowed(before: str, null: str, after: str) -> None:
    with pytest.raises(MalformedMessageError, match="must not be null"):
        read_heartbeat(Cursor(bytes.fromhex(before + null + after)), 1)


def test_only_a_heartbeat_without_news_is_plain() -> None:
    plain = {"group_id": "g", "member_id": "m", "member_epoch": 7}
    assert read(1, **plain).is_plain
    assert not read(1, **{**plain, "member_epoch": 0}).is_plain
    assert not read(1, **{**plain, "member_epoch": -1}).is_plain
    assert read(1, **plain, instance_id="i").is_plain
    for name in FULL.keys() - plain.keys() - {"instance_id"}:
        assert not read(1, **{**plain, name: FULL[name]}).is_plain, name
    assert not read(1, **plain, subscribed_topic_regex="").is_plain
    assert not read(1, **plain, topic_partitions=[]).is_plain
    assert read(0, **FULL).is_full


@given(
    st.builds(
        ConsumerGroupHeartbeatResponse,
        throttle_time_ms=int32s,
        error_code=st.integers(-1, 133),
        error_message=st.none() | texts,
        member_id=st.none() | texts,
        member_epoch=int32s,
        heartbeat_interval_ms=int32s,
        assignment=st.none()
        | st.just(
            ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=UUID(int=3), partitions=[0, 5])
                ]
            )
        ),
    ),
    st.sampled_from(VERSIONS),
)
def test_a_response_is_written_as_the_generated_message_writes_it(
    response: ConsumerGroupHeartbeatResponse, version: int
) -> None:
    ours, expected = (
        b"".join(bytes(piece) for piece in encode(response, version, 77))
        for encode in (encode_heartbeat, encode_response)
    )
    assert ours == expected
