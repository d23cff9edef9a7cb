"""Configurations of groups and of client metrics that are set by requests.

The behaviour is that of Kafka's ``ConfigurationControlManager`` and ``ConfigurationsImage``. Configurations
of topics and brokers are stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kafkacore.broker.config.client_metrics_config import checked_client_metrics
from kafkacore.broker.config.group_config import checked_group_configs
from kafkacore.broker.config.group_limits import GroupLimits
from kafkacore.broker.topics.config_changes import Change, ResourceType, apply_change
from kafkacore.protocol.generated.metadata_records import ConfigRecord

#: Types of the resources whose configuration is stored in the metadata log.
IN_METADATA_LOG: Final = frozenset({ResourceType.CLIENT_METRICS, ResourceType.GROUP})


class ResourceConfigs:
    """All configurations of groups and client metrics. Only the network thread may use it.

    Parameters
    ----------
    group_limits:
        Settings of consumer groups, which are updated when the configuration of a group changes.
    """

    def __init__(self, group_limits: GroupLimits) -> None:
        self._group_limits = group_limits
        self._configs: dict[tuple[int, str], dict[str, str]] = {}

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """Return the values that are set for a resource."""
        return self._configs.get((kind, name), {})

    def names(self, kind: int) -> list[str]:
        """Return the names of the resources of a type that have a configuration."""
        return [name for each, name in self._configs if each == kind]

    def replace(self, kind: int, name: str, configs: Mapping[str, str]) -> list[ConfigRecord]:
        """Return the records that change the values of a resource to ``configs``.

        Raises
        ------
        InvalidRequestError, InvalidConfigurationError
            The name of the resource or a setting is invalid, as in Kafka.
        """
        now = self.of(kind, name)
        if kind == ResourceType.GROUP:
            checked = checked_group_configs(name, configs, self._group_limits.config)
        else:
            checked = checked_client_metrics(name, configs)
        changed = {key: value for key, value in checked.items() if now.get(key) != value}
        removed = dict.fromkeys(key for key in now if key not in configs)
        return [_record(kind, name, key, value) for key, value in (changed | removed).items()]

    def change(self, kind: int, name: str, changes: Sequence[Change]) -> list[ConfigRecord]:
        """Return the records that change individual values of a resource.

        The checks and errors are the same as those of :meth:`replace`.
        """
        configs = dict(self.of(kind, name))
        for change in changes:
            apply_change(change, configs, kind)
        return self.replace(kind, name, configs)

    def apply(self, record: ConfigRecord) -> None:
        """Apply a record to the values in memory.

        Raises
        ------
        ValueError
            Configurations of resources of this type are not stored in the metadata log.
        """
        if record.resource_type not in IN_METADATA_LOG:
            raise ValueError(f"unexpected configuration of a resource of type {record.resource_type}")
        if record.resource_type == ResourceType.GROUP:
            self._group_limits.update(record.resource_name, record.name, record.value)
        resource = (record.resource_type, record.resource_name)
        values = self._configs.setdefault(resource, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if not values:
            del self._configs[resource]

    def records(self) -> list[ConfigRecord]:
        """Return the records of all values, for rewriting the log."""
        return [
            _record(kind, name, key, value)
            for (kind, name), values in self._configs.items()
            for key, value in values.items()
        ]


def _record(kind: int, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
