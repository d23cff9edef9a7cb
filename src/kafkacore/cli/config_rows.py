"""Configuration values as rows of a table, for ``topics configs`` and ``configs describe``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacore.admin import ConfigResourceType, KafkaAdminClient


#: Sources that DescribeConfigs reports for values that are set for the resource itself.
_OWN = (
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "DYNAMIC_CLIENT_METRICS_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
)
#: Source of values that are set as the default of all brokers.
_DEFAULTS = ("DYNAMIC_DEFAULT_BROKER_CONFIG",)
#: Columns of the printed table. The output with ``--json`` has more fields.
COLUMNS = ("name", "config", "value", "source", "read_only")


def config_rows(
    admin: KafkaAdminClient, kind: ConfigResourceType, names: Iterable[str], every: bool
) -> list[dict[str, object]]:
    """Describe the configuration of resources of one type.

    Parameters
    ----------
    kind:
        Type of the resources.
    names:
        Names of the resources.
    every:
        Whether to return all values, instead of only the values that are set for the resource itself.
    """
    from kafkacore.admin import ConfigResource

    resources = [ConfigResource(kind, name) for name in names]
    described = admin.describe_configs(resources, config_filter="all")
    return [
        {
            "type": kind.name.lower().replace("_", "-"),
            "name": name,
            "config": config,
            "value": entry["value"],
            "source": entry["config_source"],
            "read_only": entry["read_only"],
            "sensitive": entry["is_sensitive"],
        }
        for name, entries in described.get(kind.name.lower(), {}).items()
        for config, entry in sorted(entries.items())
        if every or entry["config_source"] in (_DEFAULTS if not name else _OWN)
    ]
