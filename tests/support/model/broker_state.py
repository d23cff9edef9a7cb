"""The state of a broker that requests can change, as one value to compare."""

from __future__ import annotations

from typing import Any

from model.authorisation_requests import Names
from model.broker_in_hand import BrokerInHand


def state_of(broker: BrokerInHand) -> Any:
    """Return topics, log end offsets, groups, configs, leaders, producer ids, ACLs, users and loggers.

    The end offsets include the internal topics, so committed offsets are covered.
    """
    services = broker.services
    topics = {name: services.topics.get(name) for name in services.topics.names()}
    return (
        {name: (one.topic_id, one.partition_count, dict(one.configs)) for name, one in topics.items()},
        {place: (log.log_start_offset, log.log_end_offset) for place, log in broker.logs.logs().items()},
        {one.group_id: (one.state, [m.member_id for m in one]) for one in services.groups.registry},
        [dict(services.dynamic_configs.of(node)) for node in (None, broker.config.node_id)],
        {place: services.cluster.leader_epoch(place) for place in broker.logs.logs()},
        services.producer_ids._next,
        (services.metadata.acls.version, services.metadata.users.users()),
        [(one.resource_name, one.name, one.value) for one in services.metadata.configs.records()],
        services.loggers.levels(),
    )


def state_about(broker: BrokerInHand, names: Names) -> Any:
    """Return the state of one topic and one group, including the group's committed offsets for the topic."""
    topics, ends, groups, *_ = state_of(broker)
    return (
        topics.get(names.topic),
        {place: end for place, end in ends.items() if place.topic == names.topic},
        groups.get(names.group),
        dict(broker.services.offsets.of_group(names.group).get(names.topic, {})),
    )
