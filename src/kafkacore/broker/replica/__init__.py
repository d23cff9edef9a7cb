"""Appends to partitions, fetches and fetch sessions."""
