"""The topic catalog, topic and broker configuration, and the leaders of partitions."""
