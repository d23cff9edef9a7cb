"""The partitions of this node: appends, fetches, fetch sessions.

Does not know: sockets, how a message is encoded.
"""
