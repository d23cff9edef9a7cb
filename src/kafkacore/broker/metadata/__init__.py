"""Cluster metadata other than topics: ACLs, SCRAM credentials of users, and client quotas.

They are stored in a log of their own, in the format of Kafka's metadata records.
"""
