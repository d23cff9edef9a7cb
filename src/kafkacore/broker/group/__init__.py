"""The group coordinator: group membership, committed offsets, and the topic that stores both.

:mod:`~kafkacore.broker.group.records` encodes and decodes the records of ``__consumer_offsets``.
:mod:`~kafkacore.broker.group.interfaces` defines how the parts of the coordinator use each other.
"""
