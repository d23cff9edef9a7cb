"""Operations on several items on a scripted network, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from kafkacore.admin.driver import GROUP_COORDINATORS, LEADERS, Driver, raised_first
from kafkacore.admin.requester import Requester
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.errors import (
    GroupIdNotFoundError,
    KafkaError,
    MalformedMessageError,
    NotCoordinatorError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.structs import TopicPartition
from kafkacore.testing.mock_client import MockClient, SentRequest

NOT_COORDINATOR, NOT_FOUND = NotCoordinatorError.errno, GroupIdNotFoundError.errno


@pytest.fixture
def mock() -> MockClient:
    made = MockClient(topics={"t": 2}, node_count=2)
    made.connect()
    return made


def requester_of(mock: MockClient) -> Requester:
    return Requester(mock.client, mock.metadata, mock.clock, "node0:9092", 30_000)


def coordinators(**nodes: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(key=key, node_id=node, host=f"node{node}", port=9092 + node)
            for key, node in nodes.items()
        ]
    )


def deleted(**codes: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=code)
            for group, code in codes.items()
        ]
    )


def read(response: DeleteGroupsResponse, asked: Sequence[str]) -> Iterable[tuple[str, str | KafkaError]]:
    for result in response.results:
        yield result.group_id, for_code(result.error_code)() if result.error_code else "OK"


def delete(mock: MockClient, *groups: str, timeout_ms: float = 10_000) -> dict[str, str | KafkaError]:
    driver = Driver(requester_of(mock), ExponentialBackoff(mock.clock, 100, 1_000))
    return driver.run(
        GROUP_COORDINATORS,
        groups,
        lambda keys: DeleteGroupsRequest(groups_names=list(keys)),
        read,
        timeout_ms,
    )


def deletions(mock: MockClient) -> list[tuple[int, list[str]]]:
    return [(each.node_id, each.message.groups_names) for each in mock.requests_of(DeleteGroupsRequest)]


def test_each_coordinator_gets_one_request(mock: MockClient) -> None:
    mock.prepare_response(coordinators(a=0, b=1, c=0))
    mock.prepare_response(deleted(a=0, c=0), node_id=0)
    mock.prepare_response(deleted(b=0), node_id=1)
    assert delete(mock, "a", "b", "c") == {"a": "OK", "b": "OK", "c": "OK"}
    assert sorted(deletions(mock)) == [(0, ["a", "c"]), (1, ["b"])]


def test_moved_group_is_looked_up_again_and_no_other(mock: MockClient) -> None:
    mock.prepare_response(coordinators(a=0, b=0))
    mock.prepare_response(deleted(a=0, b=NOT_COORDINATOR))
    mock.prepare_response(coordinators(b=1))
    mock.prepare_response(deleted(b=0), node_id=1)
    assert delete(mock, "a", "b") == {"a": "OK", "b": "OK"}
    assert deletions(mock) == [(0, ["a", "b"]), (1, ["b"])]


def test_one_failed_item_fails_no_other(mock: MockClient) -> None:
    mock.prepare_response(coordinators(a=0, b=0))
    mock.prepare_response(deleted(a=NOT_FOUND, b=0))
    results = delete(mock, "a", "b")
    assert isinstance(results["a"], GroupIdNotFoundError)
    assert results["b"] == "OK"
    with pytest.raises(GroupIdNotFoundError):
        raised_first(results)


def test_lost_connection_leads_to_another_lookup(mock: MockClient) -> None:
    mock.prepare_response(coordinators(a=0))
    mock.prepare_response(DeleteGroupsResponse, disconnected=True)
    mock.prepare_response(coordinators(a=1))
    mock.prepare_response(deleted(a=0), node_id=1)
    assert delete(mock, "a") == {"a": "OK"}


def test_missing_item_is_a_malformed_response(mock: MockClient) -> None:
    mock.prepare_response(coordinators(a=0, b=0))
    mock.prepare_response(deleted(a=0))
    results = delete(mock, "a", "b")
    assert results["a"] == "OK"
    assert isinstance(results["b"], MalformedMessageError)


def test_error_that_stays_is_returned_at_the_time_limit(mock: MockClient) -> None:
    def answer(request: SentRequest) -> FindCoordinatorResponse | DeleteGroupsResponse:
        if isinstance(request.message, FindCoordinatorRequest):
            return coordinators(a=0)
        return deleted(a=NOT_COORDINATOR)

    for _ in range(200):
        mock.prepare_response(answer)
    before_ms = mock.clock.monotonic_ms()
    assert isinstance(delete(mock, "a", timeout_ms=5_000)["a"], NotCoordinatorError)
    assert mock.clock.monotonic_ms() - before_ms <= 5_000


def test_coordinator_of_a_single_key_is_asked_key_by_key(mock: MockClient) -> None:
    for api in mock.api_versions.api_keys:
        if api.api_key == FindCoordinatorRequest.API_KEY:
            api.max_version = 3
    mock.disconnect(0)
    mock.poll()
    mock.disconnect(1)
    mock.poll()
    mock.prepare_response(FindCoordinatorResponse(node_id=0, host="node0", port=9092))
    mock.prepare_response(FindCoordinatorResponse(node_id=0, host="node0", port=9092))
    mock.prepare_response(deleted(a=0, b=0))
    assert delete(mock, "a", "b") == {"a": "OK", "b": "OK"}
    assert [each.message.key for each in mock.requests_of(FindCoordinatorRequest)] == ["a", "b"]


def test_leaders_of_partitions_come_from_the_metadata(mock: MockClient) -> None:
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 7)]
    found = LEADERS(requester_of(mock), partitions, mock.clock.monotonic_ms() + 1_000)
    assert [found[tp] for tp in partitions[:2]] == [0, 1]
    assert isinstance(found[partitions[2]], UnknownTopicOrPartitionError)


def test_unknown_broker_is_an_error_that_names_the_known_ones(mock: MockClient) -> None:
    with pytest.raises(UnknownBrokerIdError, match="no broker with the id 7; its brokers are 0, 1"):
        requester_of(mock).send(ListGroupsRequest(), 10_000, 7)
