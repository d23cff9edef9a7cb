"""Clients for asyncio, with aiokafka's API."""
