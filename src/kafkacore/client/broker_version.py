"""Determine the release of Apache Kafka to which the API versions of a broker correspond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacore.protocol import ApiKey

#: Releases, newest first. Each release has an API and the version of that API which the release added. A 3.4
#: broker with KRaft supports the same versions as a 3.3 broker, so it counts as 3.3.
_ADDED_IN: Final[tuple[tuple[tuple[int, ...], ApiKey, int], ...]] = (
    ((4, 3), ApiKey.DESCRIBE_LOG_DIRS, 5),
    ((4, 2), ApiKey.OFFSET_FETCH, 10),
    ((4, 1), ApiKey.FETCH, 18),
    ((4, 0), ApiKey.PRODUCE, 12),
    ((3, 9), ApiKey.FIND_COORDINATOR, 6),
    ((3, 8), ApiKey.INIT_PRODUCER_ID, 5),
    ((3, 7), ApiKey.FETCH, 16),
    ((3, 6), ApiKey.ADD_PARTITIONS_TO_TXN, 4),
    ((3, 5), ApiKey.FETCH, 15),
    ((3, 4), ApiKey.UPDATE_METADATA, 8),
    ((3, 3), ApiKey.DESCRIBE_LOG_DIRS, 4),
    ((3, 2), ApiKey.JOIN_GROUP, 9),
    ((3, 1), ApiKey.METADATA, 12),
    ((3, 0), ApiKey.OFFSET_FETCH, 8),
    ((2, 8), ApiKey.METADATA, 11),
    ((2, 7), ApiKey.FETCH, 12),
    ((2, 6), ApiKey.LIST_GROUPS, 4),
    ((2, 5), ApiKey.OFFSET_FETCH, 7),
    ((2, 4), ApiKey.METADATA, 9),
    ((2, 3), ApiKey.METADATA, 8),
    ((2, 2), ApiKey.JOIN_GROUP, 4),
    ((2, 1), ApiKey.PRODUCE, 7),
    ((2, 0), ApiKey.PRODUCE, 6),
    ((1, 1), ApiKey.FETCH, 7),
    ((1, 0), ApiKey.PRODUCE, 5),
    ((0, 11), ApiKey.PRODUCE, 3),
    ((0, 10, 2), ApiKey.OFFSET_FETCH, 2),
    ((0, 10, 1), ApiKey.FETCH, 3),
)
#: The first release that supports the ApiVersions request.
_OLDEST: Final = (0, 10, 0)


def broker_version(newest: Mapping[int, int]) -> tuple[int, ...]:
    """Return the newest Apache Kafka release that matches the API versions of a broker.

    Parameters
    ----------
    newest:
        API key → newest version that the broker supports.

    Returns
    -------
    tuple of int
        The release, such as ``(4, 3)``. The release is only approximate if the broker is not Apache Kafka.
    """
    for release, api_key, version in _ADDED_IN:
        if newest.get(api_key, -1) >= version:
            return release
    return _OLDEST
