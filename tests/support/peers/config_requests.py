"""Configuration requests to any broker, with values and errors as they are on the wire."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eventually import BUDGET_MS, eventually

from kafkacore.admin.requester import Requester
from kafkacore.client import bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import for_code
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


class Entry(NamedTuple):
    """A config of DescribeConfigs. ``synonyms`` are (name, value, source)."""

    value: str | None
    source: int
    type: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...]


class Change(NamedTuple):
    """A change of one config of a resource."""

    kind: int
    resource: str
    name: str
    value: str | None
    operation: int = SET


class ConfigRequests:
    """Sends requests to one broker. Results are in the order of the request; ``None`` means success."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    def create(
        self, topics: Mapping[str, Mapping[str, str]], *, validate_only: bool = False
    ) -> list[str | None]:
        """Create topics of one partition with configs."""
        shape = CreateTopicsRequest
        asked = [
            shape.CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=1,
                configs=[shape.CreatableTopicConfig(name=key, value=text) for key, text in configs.items()],
            )
            for name, configs in topics.items()
        ]
        answer = self._ask(shape(topics=asked, timeout_ms=int(BUDGET_MS), validate_only=validate_only))
        errors = {topic.name: _error(topic.error_code) for topic in answer.topics}
        return [errors[name] for name in topics]

    def delete(self, topics: Sequence[str]) -> None:
        """Delete topics."""
        asked = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in topics]
        self._ask(DeleteTopicsRequest(topics=asked, timeout_ms=int(BUDGET_MS)))

    def change(self, changes: Sequence[Change], *, validate_only: bool = False) -> list[str | None]:
        """Send IncrementalAlterConfigs with one resource per change; a resource may occur only once."""
        shape = IncrementalAlterConfigsRequest
        resources = [
            shape.AlterConfigsResource(
                resource_type=change.kind,
                resource_name=change.resource,
                configs=[
                    shape.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                ],
            )
            for change in changes
        ]
        return self._altered(shape(resources=resources, validate_only=validate_only))

    def replace(self, changes: Sequence[Change], *, validate_only: bool = False) -> list[str | None]:
        """Send AlterConfigs with one resource per change, which becomes its only config."""
        shape = AlterConfigsRequest
        resources = [
            shape.AlterConfigsResource(
                resource_type=change.kind,
                resource_name=change.resource,
                configs=[shape.AlterableConfig(name=change.name, value=change.value)],
            )
            for change in changes
        ]
        return self._altered(shape(resources=resources, validate_only=validate_only))

    def _altered(self, request: Any) -> list[str | None]:
        return [_error(result.error_code) for result in self._ask(request).responses]

    def describe(self, resources: Sequence[tuple[int, str]]) -> list[dict[str, Entry]]:
        """Return every config of each resource."""
        shape = DescribeConfigsRequest
        asked = [
            shape.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in resources
        ]

        def results() -> list[Any]:
            answer = self._ask(shape(resources=asked, include_synonyms=True))
            # A broker learns of a new topic after its controller has responded.
            is_late = any(_error(one.error_code) == "UnknownTopicOrPartitionError" for one in answer.results)
            return [] if is_late else list(answer.results)

        found = []
        for result in eventually(results, f"a broker does not know {resources}") if resources else ():
            assert not result.error_code, result.error_message
            found.append({config.name: _entry(config) for config in result.configs})
        return found

    def _ask(self, request: Any) -> Any:
        return self._requester.send(request, BUDGET_MS)


def _error(code: int) -> str | None:
    return for_code(code).__name__ if code else None


def _entry(config: Any) -> Entry:
    synonyms = tuple((one.name, one.value, one.source) for one in config.synonyms)
    return Entry(
        config.value,
        config.config_source,
        config.config_type,
        config.read_only,
        config.is_sensitive,
        synonyms,
    )


@contextlib.contextmanager
def config_requests(servers: str) -> Iterator[ConfigRequests]:
    """Yield requests to the broker at ``servers``. The connection is closed at the end of the block."""
    client, metadata = bootstrap_client(resolve({}, {"bootstrap_servers": servers}), SYSTEM_CLOCK)
    with contextlib.closing(client):
        yield ConfigRequests(Requester(client, metadata, SYSTEM_CLOCK, servers, BUDGET_MS))
