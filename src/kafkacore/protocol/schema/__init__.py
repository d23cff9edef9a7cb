"""Every API of Apache Kafka 4.3, as tables: the source of :mod:`kafkacore.protocol.generated`.

One module per family; :mod:`~kafkacore.protocol.schema.declaration` says how to read a table. Nothing
imports this package at run time: ``python -m kafkacore.protocol.generate`` turns it into code.
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

#: All APIs in the order of their keys, those that Kafka 4 removed included.
APIS: tuple[Api, ...] = tuple(
    sorted((api for family in _FAMILIES for api in family.APIS), key=lambda api: api.key)
)

#: Messages that are no API: module name → its messages.
DATA: dict[str, tuple[Message, ...]] = {
    **data.MODULES,
    **metadata_records.MODULES,
    **removed_versions.MODULES,
}
