"""Appending to partitions, fetching from partitions, and fetch sessions."""
