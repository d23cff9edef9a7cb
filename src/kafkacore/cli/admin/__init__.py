"""Commands of an operator: groups, configurations, offsets, transactions, quotas, brokers and replicas."""
