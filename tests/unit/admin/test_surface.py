"""The admin client has the methods, arguments and names of kafka-python's."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
from collections.abc import Callable
from enum import Enum

import kafka.admin
import pytest
from kafka.util import EnumHelper

import kafkacore.admin
from kafkacore.admin import KafkaAdminClient, kafka_admin_client
from kafkacore.admin.requester import Requester
from kafkacore.errors import IllegalStateError
from kafkacore.testing.mock_client import MockClient


def methods() -> list[str]:
    found = {name for base in kafka.KafkaAdminClient.__mro__[:-1] for name in vars(base)}
    return sorted(n for n in found if not n.startswith("_") and callable(getattr(kafka.KafkaAdminClient, n)))


@pytest.mark.parametrize("name", methods())
def test_method_begins_with_the_arguments_of_kafka_pythons(name: str) -> None:
    theirs = list(inspect.signature(getattr(kafka.KafkaAdminClient, name)).parameters.values())
    ours = list(inspect.signature(getattr(KafkaAdminClient, name)).parameters.values())
    for wanted, found in zip(theirs, ours, strict=False):
        assert found.name == wanted.name
        assert found.kind == wanted.kind
        default = found.default
        # An enumeration's member may be another class.
        assert default == wanted.default or getattr(default, "name", "") == wanted.default.name
    assert len(ours) >= len(theirs)
    assert all(extra.default is not inspect.Parameter.empty for extra in ours[len(theirs) :])


@pytest.mark.parametrize("name", sorted(set(methods()) - {"close", "describe_groups"}))
def test_every_call_takes_a_time_limit(name: str) -> None:
    assert "timeout_ms" in inspect.signature(getattr(KafkaAdminClient, name)).parameters


@pytest.mark.parametrize("name", [*kafka.admin.__all__, "NewTopic", "NewPartitions"])
def test_name_of_kafka_python_exists(name: str) -> None:
    ours, theirs = getattr(kafkacore.admin, name), getattr(kafka.admin, name, None)
    assert name in kafkacore.admin.__all__
    if isinstance(theirs, type) and issubclass(theirs, Enum):
        assert {each.name: each.value for each in theirs}.items() <= {
            each.name: each.value for each in ours
        }.items()
        assert {each for each in dir(theirs) if not each.startswith("_")} <= set(dir(ours))
    elif isinstance(theirs, type) and hasattr(theirs, "_fields"):
        assert ours._fields == theirs._fields


@pytest.mark.parametrize(
    "theirs",
    [each for name in kafka.admin.__all__ if issubclass(each := getattr(kafka.admin, name), EnumHelper)],
)
def test_members_are_found_by_value_and_name_as_in_kafka_python(theirs: type[Enum]) -> None:
    ours = getattr(kafkacore.admin, theirs.__name__)
    for each in theirs:
        for given in (each.value, each.name, each.name.lower().replace("_", "-"), f" {each.name}\n"):
            assert ours.build_from(given).name == theirs.build_from(given).name  # type: ignore[attr-defined]
        assert ours.value_for(each.name.lower()) == theirs.value_for(each.name.lower())  # type: ignore[attr-defined]
        assert ours.build_from(ours[each.name]) is ours[each.name]
    for given in ("nonesuch", 99, None):
        with pytest.raises(ValueError, match=f"{theirs.__name__} has no member {given!r}"):
            ours.build_from(given)
        with pytest.raises(ValueError, match=theirs.__name__):
            theirs.build_from(given)  # type: ignore[attr-defined]


def test_sources_of_configuration_values_have_kafka_pythons_methods() -> None:
    for source in kafka.admin.ConfigSourceType:
        ours = kafkacore.admin.ConfigSourceType[source.name]
        assert ours.is_modified() is source.is_modified()
        for config_filter in kafka.admin.ConfigFilterType:
            our_filter = kafkacore.admin.ConfigFilterType[config_filter.name]
            assert our_filter.should_skip(ours) is config_filter.should_skip(source)
    for kind in kafka.admin.ConfigResourceType:
        theirs = kafka.admin.ConfigSourceType.dynamic_for_resource_type(kind)
        found = kafkacore.admin.ConfigSourceType.dynamic_for_resource_type(
            kafkacore.admin.ConfigResourceType[kind.name]
        )
        assert found.name == theirs.name


# ---- The object --------------------------------------------------------------------------------------------
@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> KafkaAdminClient:
    mock = MockClient(topics={"t": 1})
    monkeypatch.setattr(
        kafka_admin_client, "bootstrap_client", lambda config, clock: (mock.client, mock.metadata)
    )
    return KafkaAdminClient(bootstrap_servers="node0:9092", clock=mock.clock)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_client_cannot_be_copied(admin: KafkaAdminClient, duplicate: Callable[[object], object]) -> None:
    with admin, pytest.raises(TypeError, match="cannot be copied or pickled: its connections belong"):
        duplicate(admin)


def test_client_names_its_servers(admin: KafkaAdminClient) -> None:
    with admin:
        assert repr(admin) == "<KafkaAdminClient client_id='kafkacore' servers=node0:9092>"


def test_closed_client_refuses_calls(admin: KafkaAdminClient) -> None:
    admin.close()
    admin.close()
    with pytest.raises(IllegalStateError, match="is closed; create a new one"):
        admin.list_topics()


def test_client_of_a_parent_process_refuses_calls(
    admin: KafkaAdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    with (
        admin,
        pytest.raises(IllegalStateError, match=r"created before fork\(\).* create a new one in the child"),
    ):
        admin.list_topics()


@pytest.mark.parametrize(
    ("timeout_ms", "error", "words"),
    [
        (0, ValueError, "timeout_ms=0: it must be between 1 and 2147483647"),
        (-1, ValueError, "timeout_ms=-1: it must be between"),
        (float("nan"), ValueError, "timeout_ms=nan"),
        (float("inf"), ValueError, "timeout_ms=inf"),
        (2**31, ValueError, "timeout_ms=2147483648"),
        ("soon", TypeError, "timeout_ms: 'soon' is not a number of milliseconds"),
        (True, TypeError, "timeout_ms: True is not a number"),
    ],
)
def test_time_limit_is_checked(
    admin: KafkaAdminClient, timeout_ms: float, error: type[Exception], words: str
) -> None:
    with admin, pytest.raises(error, match=words):
        admin.list_topics(timeout_ms=timeout_ms)


def test_request_that_cannot_be_encoded_fails_only_its_call() -> None:
    from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
    from kafkacore.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse

    mock = MockClient()
    requester = Requester(mock.client, mock.metadata, mock.clock, "node0:9092", 30_000)
    with pytest.raises(TypeError):
        requester.send(DeleteGroupsRequest(groups_names=[5]), 1_000)  # type: ignore[list-item]
    mock.prepare_response(ListGroupsResponse())
    assert requester.send(ListGroupsRequest(), 1_000) == ListGroupsResponse()
