"""Sockets, the request pump, the dispatch of requests to their handlers.

Does not know: what a handler does.
"""
