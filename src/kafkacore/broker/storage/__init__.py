"""File access of the broker, and its small state files: identity, checksummed JSON and producer ids."""
