"""Parts of a consumer, connected to a model cluster with a virtual clock."""

from model.consumer_fixtures import clock, make_consumer, make_fetcher, make_network_client

__all__ = ["clock", "make_consumer", "make_fetcher", "make_network_client"]
