"""Properties of the broker and of topics: their keys, defaults, checks and documentation.

Does not know: requests, logs, sockets.
"""
