"""What the broker knows beside its topics: who may do what, users' credentials, and how much each may have.

Kept in a log of its own, in Kafka's metadata records.
"""
