"""Limits of the replication traffic of a reassignment, as ``kafka-reassign-partitions.sh`` sets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacore.cli.common import CommandError
from kafkacore.structs import TopicPartition, printable

if TYPE_CHECKING:
    from kafkacore.admin import ConfigResource, KafkaAdminClient
    from kafkacore.admin.partitions import Reassignment

#: Properties of a broker: bytes per second that it sends as a leader, receives as a follower, and copies
#: between its log directories.
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
#: Properties of a topic that list the throttled replicas, as ``PARTITION:BROKER``.
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
#: Sources of values that are set for a broker or a topic itself.
_OWN = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG")


def set_replication_throttle(
    admin: KafkaAdminClient,
    current: Mapping[TopicPartition, Iterable[int]],
    wanted: Mapping[TopicPartition, Iterable[int]],
    in_progress: Mapping[TopicPartition, Reassignment],
    bytes_per_second: int,
) -> None:
    """Limit the traffic from the current replicas of partitions to their new replicas.

    Parameters
    ----------
    current, wanted:
        Brokers of the replicas of each partition.
    in_progress:
        Reassignments that are already in progress. They are throttled as well, because this function replaces
        the list of throttled replicas, and a topic has only one such list.
    bytes_per_second:
        Limit of each broker, for sending and for receiving.
    """
    from kafkacore.admin import ConfigResource, ConfigResourceType

    moving = {
        tp: (set(each["replicas"]) - set(each["adding_replicas"]), set(each["adding_replicas"]))
        for tp, each in in_progress.items()
    }
    for tp, replicas in wanted.items():
        sources = moving[tp][0] if tp in moving else set(current[tp])
        moving[tp] = (sources, set(replicas) - sources)
    leaders: dict[str, list[str]] = {tp.topic: [] for tp in moving}
    followers: dict[str, list[str]] = {tp.topic: [] for tp in moving}
    for tp, (sources, destinations) in sorted(moving.items()):
        leaders[tp.topic] += [f"{tp.partition}:{broker}" for broker in sorted(sources)]
        followers[tp.topic] += [f"{tp.partition}:{broker}" for broker in sorted(destinations)]
    brokers = {broker for each in moving.values() for broker in (*each[0], *each[1])}
    rate = str(bytes_per_second)
    _alter(
        admin,
        [
            *(
                ConfigResource(
                    ConfigResourceType.TOPIC,
                    topic,
                    {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])},
                )
                for topic in leaders
            ),
            *(
                ConfigResource(
                    ConfigResourceType.BROKER, str(broker), {LEADER_RATE: rate, FOLLOWER_RATE: rate}
                )
                for broker in sorted(brokers)
            ),
        ],
    )


def set_log_dir_throttle(admin: KafkaAdminClient, brokers: Iterable[int], bytes_per_second: int) -> None:
    """Limit the traffic between the log directories of each of these brokers."""
    from kafkacore.admin import ConfigResource, ConfigResourceType

    _alter(
        admin,
        [
            ConfigResource(ConfigResourceType.BROKER, str(broker), {LOG_DIR_RATE: str(bytes_per_second)})
            for broker in sorted(set(brokers))
        ],
    )


def remove_throttles(admin: KafkaAdminClient, topics: Iterable[str]) -> list[str]:
    """Remove the limits of all brokers and of these topics.

    Like Kafka's tool, this function resets all brokers, because it does not know from which brokers a
    reassignment has read.

    Returns
    -------
    list of str
        The brokers and topics that had a limit, such as ``broker 1`` and ``topic orders``.
    """
    from kafkacore.admin import AlterConfigOp, ConfigResource, ConfigResourceType

    brokers = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    described = admin.describe_configs(
        [
            *(
                ConfigResource(
                    ConfigResourceType.BROKER, str(broker), [LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE]
                )
                for broker in brokers
            ),
            *(
                ConfigResource(ConfigResourceType.TOPIC, topic, [LEADERS, FOLLOWERS])
                for topic in sorted(set(topics))
            ),
        ],
        config_filter="all",
    )
    limited = [
        ConfigResource(
            ConfigResourceType[kind.upper()], name, dict.fromkeys(names, (AlterConfigOp.DELETE, None))
        )
        for kind, resources in described.items()
        for name, entries in resources.items()
        if (names := [config for config, entry in entries.items() if entry["config_source"] in _OWN])
    ]
    if limited:
        _alter(admin, limited)
    return [_name(each) for each in limited]


def _alter(admin: KafkaAdminClient, resources: list[ConfigResource]) -> None:
    outcome = admin.alter_configs(resources, raise_on_unknown=False)
    for each in resources:
        text = outcome[each.resource_type.name.lower()][each.name]
        if text != "OK":
            raise CommandError(f"the throttle of {_name(each)} was not changed: {printable(text)}")


def _name(resource: ConfigResource) -> str:
    return f"{resource.resource_type.name.lower()} {printable(resource.name)}"
