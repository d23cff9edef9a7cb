"""Declarations of every API of Apache Kafka 4.3, the source of :mod:`kafkacore.protocol.generated`.

There is one module per family of APIs. :mod:`~kafkacore.protocol.schema.declaration` describes the tables. No
module imports this package at run time: ``python -m kafkacore.protocol.generate`` generates code from the
declarations.
"""

from kafkacore.protocol.schema import (
    authentication,
    authorization,
    brokers,
    cluster,
    configs,
    consumer_groups,
    data,
    groups,
    metadata_records,
    offsets,
    quorum,
    records,
    removed_versions,
    replicas,
    share_groups,
    share_state,
    streams_groups,
    telemetry,
    topics,
    transactions,
)
from kafkacore.protocol.schema.declaration import Api, Message

_FAMILIES = (
    records,
    cluster,
    topics,
    configs,
    groups,
    offsets,
    consumer_groups,
    share_groups,
    share_state,
    streams_groups,
    transactions,
    authentication,
    authorization,
    replicas,
    quorum,
    brokers,
    telemetry,
)

#: All APIs in the order of their keys, including those that Kafka 4 removed.
APIS: tuple[Api, ...] = tuple(
    sorted((api for family in _FAMILIES for api in family.APIS), key=lambda api: api.key)
)

#: Messages that do not belong to an API, by the name of their generated module.
DATA: dict[str, tuple[Message, ...]] = {
    **data.MODULES,
    **metadata_records.MODULES,
    **removed_versions.MODULES,
}
