"""Cluster metadata without the topics: ACLs, SCRAM credentials of users, and client quotas.

These metadata are stored in a separate log, in the format of Kafka's metadata records.
"""
