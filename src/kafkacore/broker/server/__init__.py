"""The broker's socket server and the dispatch of requests to their handlers."""
