"""The group coordinator: members and their generations, committed offsets, and the topic that keeps both.

:mod:`~kafkacore.broker.group.records` are the records of ``__consumer_offsets``,
:mod:`~kafkacore.broker.group.interfaces` what the parts ask of each other.
"""
