"""Consumers that are connected to a model cluster with a virtual clock."""

from model.consumer_fixtures import clock, make_consumer

__all__ = ["clock", "make_consumer"]
