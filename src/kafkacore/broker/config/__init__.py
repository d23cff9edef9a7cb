"""Settings of the broker, its listeners and its topics: names, defaults, checks and documentation."""
