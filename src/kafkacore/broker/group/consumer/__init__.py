"""Groups of the consumer group protocol (KIP-848), in which the coordinator assigns the partitions.

Consumers of the classic protocol can be members of these groups, too.
"""
