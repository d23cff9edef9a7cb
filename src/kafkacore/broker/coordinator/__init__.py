"""The log that each coordinator of the broker keeps its state in: groups and transactions."""
