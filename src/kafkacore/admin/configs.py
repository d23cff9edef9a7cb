"""Configurations of topics, brokers, broker loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

from kafkacore.admin.arguments import instances, members, names, text
from kafkacore.admin.driver import Driver, raised_first, to_destination
from kafkacore.admin.requester import ANY
from kafkacore.admin.responses import as_member, error_of, member
from kafkacore.admin.time_limit import TimeLimit
from kafkacore.errors import KafkaError, UnsupportedVersionError, for_code
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.list_config_resources import ListConfigResourcesRequest
from kafkacore.structs import EnumHelper


class AlterConfigOp(EnumHelper, IntEnum):
    """What to do with a configuration value. ``APPEND`` and ``SUBTRACT`` are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResourceType(EnumHelper, IntEnum):
    """Type of the resource that a configuration belongs to."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigType(EnumHelper, IntEnum):
    """Type of a configuration value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSourceType(EnumHelper, IntEnum):
    """Where a configuration value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    def is_modified(self) -> bool:
        """Return whether the value is set for the resource itself."""
        return self not in (
            ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG,
            ConfigSourceType.STATIC_BROKER_CONFIG,
            ConfigSourceType.DEFAULT_CONFIG,
        )

    @classmethod
    def dynamic_for_resource_type(cls, resource_type: ConfigResourceType) -> ConfigSourceType:
        """Return the source of the values that are set for a resource of this type."""
        return cls[f"DYNAMIC_{resource_type.name}_CONFIG"] if resource_type else cls.UNKNOWN


class ConfigFilterType(EnumHelper, IntEnum):
    """Which configuration values ``describe_configs`` returns."""

    ALL = 0
    DYNAMIC = 1
    MODIFIED = 2
    DEFAULT = 3
    STATIC = 4

    def should_skip(self, config_source: ConfigSourceType) -> bool:
        """Return whether the filter leaves out values of this source.

        ``DYNAMIC`` selects the values that are not read-only, from any source.
        """
        if self is ConfigFilterType.MODIFIED:
            return not config_source.is_modified()
        if self is ConfigFilterType.DEFAULT:
            return config_source.is_modified()
        return self is ConfigFilterType.STATIC and config_source is not ConfigSourceType.STATIC_BROKER_CONFIG


class ConfigResource:
    """A resource whose configuration is described or altered.

    Parameters
    ----------
    resource_type:
        A :class:`ConfigResourceType`, or its name, such as ``"TOPIC"``.
    name:
        Name of the topic or group, or id of the broker. An empty broker name stands for the default of all
        brokers.
    configs:
        To describe: names of the values; ``None`` for all. To alter: a mapping of names to values, or to
        pairs of an :class:`AlterConfigOp` and a value.
    """

    __slots__ = ("configs", "name", "resource_type")

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Mapping[str, Any] | Collection[str] | None = None,
    ) -> None:
        self.resource_type = as_member(ConfigResourceType, resource_type)
        self.name = str(name)
        self.configs = configs

    def __repr__(self) -> str:
        # Omit ``configs`` from the representation, because a value may be a password.
        return f"ConfigResource({self.resource_type.name}, {self.name!r})"


class ConfigSynonym(TypedDict):
    """A source that may set a configuration value. Of several synonyms, the first one takes precedence."""

    name: str
    value: str | None
    source: str


class ConfigEntry(TypedDict):
    """A value in the result of ``describe_configs``. A sensitive value is returned as ``None``."""

    value: str | None
    read_only: bool
    config_source: str
    is_sensitive: bool
    synonyms: NotRequired[list[ConfigSynonym]]
    config_type: NotRequired[str]
    documentation: NotRequired[str | None]


#: Names of resource types in lower case → name of the resource → values.
ConfigDescriptions: TypeAlias = dict[str, dict[str, dict[str, ConfigEntry]]]
_Key: TypeAlias = tuple[ConfigResourceType, str]
#: Resource → name of a value → what to do with it, and the new value.
_Changes: TypeAlias = Mapping[_Key, Mapping[str, tuple[AlterConfigOp, str | None]]]


class ConfigAdmin:
    """The configuration operations of the admin client.

    Parameters
    ----------
    driver:
        Sends the requests. A request about the configuration of a broker goes to that broker.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def describe(
        self,
        resources: Iterable[ConfigResource],
        include_synonyms: bool,
        config_filter: object,
        raise_errors: bool,
        timeout_ms: float,
    ) -> ConfigDescriptions:
        """Describe configurations. Each resource succeeds or fails independently."""
        wanted = {_key(resource): resource for resource in _checked(resources)}
        chosen = as_member(ConfigFilterType, config_filter)
        request_class = DescribeConfigsRequest

        def build(keys: Sequence[_Key]) -> DescribeConfigsRequest:
            return request_class(
                resources=[
                    request_class.DescribeConfigsResource(
                        resource_type=key[0],
                        resource_name=key[1],
                        configuration_keys=_names(wanted[key]),
                    )
                    for key in keys
                ],
                include_synonyms=include_synonyms,
            )

        found = self._driver.run(_BY_RESOURCE, wanted, build, _described, timeout_ms)
        described: ConfigDescriptions = {}
        for (kind, name), entries in found.items():
            of_kind = described.setdefault(kind.name.lower(), {})
            if isinstance(entries, KafkaError):
                if raise_errors:
                    raise entries
                of_kind[name] = {}
            else:
                of_kind[name] = {each: entry for each, entry in entries.items() if _is_chosen(entry, chosen)}
        return described

    def alter(
        self,
        resources: Iterable[ConfigResource],
        validate_only: bool,
        raise_on_unknown: bool,
        incremental: bool | None,
        timeout_ms: float,
    ) -> dict[str, dict[str, str]]:
        """Set, delete, append and subtract values. Each resource succeeds or fails independently."""
        changes = {_key(resource): _changes(resource) for resource in _checked(resources)}
        return self._alter(changes, validate_only, raise_on_unknown, incremental, timeout_ms)

    def reset(
        self,
        resources: Iterable[ConfigResource],
        validate_only: bool,
        raise_on_unknown: bool,
        incremental: bool | None,
        timeout_ms: float,
    ) -> dict[str, dict[str, str]]:
        """Reset the named values of each resource, or all of its modified values."""
        wanted = _checked(resources)
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        modified = self._modified([_key(resource) for resource in wanted if not resource.configs], timeout_ms)
        changes: dict[_Key, dict[str, tuple[AlterConfigOp, str | None]]] = {}
        for resource in wanted:
            keys = _names(resource) or list(modified[_key(resource)])
            changes[_key(resource)] = dict.fromkeys(keys, (AlterConfigOp.DELETE, None))
        return self._alter(changes, validate_only, raise_on_unknown, incremental, limit.left_ms)

    def list_resources(
        self, resource_types: Iterable[object] | None, timeout_ms: float
    ) -> dict[str, list[str]]:
        """List the names of the resources that have a configuration."""
        types = [int(each) for each in members("resource_types", resource_types or (), ConfigResourceType)]
        response = self._driver.requester.send(ListConfigResourcesRequest(resource_types=types), timeout_ms)
        if response.error_code:
            raise error_of(response.error_code, None, "the list of configuration resources")
        found: dict[str, list[str]] = {}
        for resource in response.config_resources:
            kind = member(ConfigResourceType, resource.resource_type)
            found.setdefault(kind.name.lower(), []).append(resource.resource_name)
        return found

    def _alter(
        self,
        changes: _Changes,
        validate_only: bool,
        raise_on_unknown: bool,
        incremental: bool | None,
        timeout_ms: float,
    ) -> dict[str, dict[str, str]]:
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        if raise_on_unknown:
            self._check_known(changes, timeout_ms)
        if incremental is not False:
            results = self._send_incremental(changes, validate_only, limit.left_ms)
            too_old = all(isinstance(result, UnsupportedVersionError) for result in results.values())
            if incremental or not results or not too_old:
                return _outcomes(results)
        return _outcomes(self._send_whole(changes, validate_only, limit.left_ms))

    def _check_known(self, changes: _Changes, timeout_ms: float) -> None:
        resources = [ConfigResource(kind, name) for kind, name in changes]
        described = self.describe(resources, False, ConfigFilterType.DYNAMIC, False, timeout_ms)
        for (kind, name), values in changes.items():
            known = described[kind.name.lower()][name]
            # A resource that does not exist has no known values. The broker then rejects the request.
            unknown = sorted(set(values) - set(known)) if known else []
            if unknown:
                raise ValueError(
                    f"{kind.name.lower()} {name!r} has no configuration {', '.join(unknown)} that can be "
                    "altered; describe_configs(config_filter='dynamic') lists those that can be"
                )

    def _modified(self, keys: Sequence[_Key], timeout_ms: float) -> dict[_Key, dict[str, str]]:
        """Return the values that are set for each resource itself, without defaults."""
        described = self.describe(
            [ConfigResource(kind, name) for kind, name in keys],
            False,
            ConfigFilterType.MODIFIED,
            True,
            timeout_ms,
        )
        return {
            (kind, name): {
                each: entry["value"]
                for each, entry in described[kind.name.lower()][name].items()
                if entry["value"] is not None
            }
            for kind, name in keys
        }

    def _send_incremental(
        self,
        changes: _Changes,
        validate_only: bool,
        timeout_ms: float,
    ) -> dict[_Key, str | KafkaError]:
        request_class = IncrementalAlterConfigsRequest

        def build(keys: Sequence[_Key]) -> IncrementalAlterConfigsRequest:
            return request_class(
                resources=[
                    request_class.AlterConfigsResource(
                        resource_type=key[0],
                        resource_name=key[1],
                        configs=[
                            request_class.AlterableConfig(name=name, config_operation=op, value=value)
                            for name, (op, value) in changes[key].items()
                        ],
                    )
                    for key in keys
                ],
                validate_only=validate_only,
            )

        return self._driver.run(_BY_RESOURCE, changes, build, _altered, timeout_ms)

    def _send_whole(
        self,
        changes: _Changes,
        validate_only: bool,
        timeout_ms: float,
    ) -> dict[_Key, str | KafkaError]:
        """Send AlterConfigs with all values that are set, because the request resets every value it omits."""
        for values in changes.values():
            for name, (op, _) in values.items():
                if op not in (AlterConfigOp.SET, AlterConfigOp.DELETE):
                    raise ValueError(f"{name}: {op.name} needs IncrementalAlterConfigs (Kafka 2.3)")
        limit = TimeLimit(self._driver.requester.clock, timeout_ms)
        modified = self._modified(list(changes), timeout_ms)
        request_class = AlterConfigsRequest

        def whole(key: _Key) -> dict[str, str | None]:
            values: dict[str, str | None] = dict(modified[key])
            for name, (op, value) in changes[key].items():
                if op is AlterConfigOp.DELETE:
                    values.pop(name, None)
                else:
                    values[name] = value
            return values

        def build(keys: Sequence[_Key]) -> AlterConfigsRequest:
            return request_class(
                resources=[
                    request_class.AlterConfigsResource(
                        resource_type=key[0],
                        resource_name=key[1],
                        configs=[
                            request_class.AlterableConfig(name=name, value=value)
                            for name, value in whole(key).items()
                        ],
                    )
                    for key in keys
                ],
                validate_only=validate_only,
            )

        return self._driver.run(_BY_RESOURCE, changes, build, _altered, limit.left_ms)


def config_source_name(source: int) -> str:
    """Return the name of a configuration source, or ``UNKNOWN`` for an unknown number."""
    return member(ConfigSourceType, source).name


def _key(resource: ConfigResource) -> _Key:
    return resource.resource_type, resource.name


def _destination(key: _Key) -> int:
    """Return the broker's id if ``key`` is the configuration of a broker, otherwise ``ANY``."""
    kind, name = key
    if kind not in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) or not name:
        return ANY
    try:
        return int(name)
    except ValueError:
        raise ValueError(f"the name of a broker's configuration is the broker's id, not {name!r}") from None


_BY_RESOURCE: Final = to_destination(_destination)


def _names(resource: ConfigResource) -> list[str] | None:
    if resource.configs is None:
        return None
    return names(f"{resource!r}: configs", resource.configs)


def _checked(resources: Iterable[ConfigResource]) -> list[ConfigResource]:
    return instances("config_resources", resources, ConfigResource)


def _changes(resource: ConfigResource) -> dict[str, tuple[AlterConfigOp, str | None]]:
    if not isinstance(resource.configs, Mapping):
        raise TypeError(f"{resource!r}: configs must be a mapping of names to values")
    changes: dict[str, tuple[AlterConfigOp, str | None]] = {}
    for name, given in resource.configs.items():
        text(f"{resource!r}: configs", name)
        if isinstance(given, tuple) and len(given) != 2:
            raise ValueError(
                f"{resource!r}: {name} must have a value, or a pair of an AlterConfigOp and a value"
            )
        op, value = given if isinstance(given, tuple) else (AlterConfigOp.SET, given)
        chosen = as_member(AlterConfigOp, op)
        changes[name] = (chosen, None if chosen is AlterConfigOp.DELETE else _value(value))
    return changes


def _value(value: object) -> str | None:
    """Return the text of a value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _described(
    response: DescribeConfigsResponse, asked: Sequence[_Key]
) -> Iterable[tuple[_Key, dict[str, ConfigEntry] | KafkaError]]:
    for result in response.results:
        key = (member(ConfigResourceType, result.resource_type), result.resource_name)
        if result.error_code:
            yield key, error_of(result.error_code, result.error_message, _about(key))
            continue
        yield (
            key,
            {
                each.name: {
                    "value": each.value,
                    "read_only": each.read_only,
                    "config_source": config_source_name(each.config_source),
                    "is_sensitive": each.is_sensitive,
                    "synonyms": [
                        {
                            "name": synonym.name,
                            "value": synonym.value,
                            "source": config_source_name(synonym.source),
                        }
                        for synonym in each.synonyms
                    ],
                    "config_type": member(ConfigType, each.config_type).name,
                    "documentation": each.documentation or None,
                }
                for each in result.configs
            },
        )


def _is_chosen(entry: ConfigEntry, chosen: ConfigFilterType) -> bool:
    if chosen is ConfigFilterType.DYNAMIC:
        return not entry["read_only"]
    return not chosen.should_skip(ConfigSourceType[entry["config_source"]])


def _altered(response: Any, asked: Sequence[_Key]) -> Iterable[tuple[_Key, str | KafkaError]]:
    for result in response.responses:
        key = (member(ConfigResourceType, result.resource_type), result.resource_name)
        if result.error_code:
            yield key, for_code(result.error_code)(result.error_message or _about(key))
        else:
            yield key, "OK"


def _outcomes(results: Mapping[_Key, str | KafkaError]) -> dict[str, dict[str, str]]:
    """Return "OK" or the broker's error for each resource. Raise any other error, such as a time-out."""
    outcomes: dict[str, dict[str, str]] = {}
    final = {
        key: str(result) if isinstance(result, KafkaError) and hasattr(result, "errno") else result
        for key, result in results.items()
        if not isinstance(result, UnsupportedVersionError)
    }
    unsupported = {key: result for key, result in results.items() if key not in final}
    for (kind, name), outcome in raised_first({**final, **unsupported}).items():
        outcomes.setdefault(kind.name.lower(), {})[name] = outcome
    return outcomes


def _about(key: _Key) -> str:
    return f"configuration of {key[0].name.lower()} {key[1]!r}"
