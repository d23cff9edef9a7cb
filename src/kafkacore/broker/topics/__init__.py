"""The catalog of topics and its changes.

Does not know: requests, groups.
"""
